"""Live episodes as a task of inspect_ai: `inspect eval robustbench_tc/live --model … -T dataset=DIR`.

A sample is a row: the task in its world, with or without a fault. `inspect_task` imports this module, which
is what the entry point names.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample as InspectSample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    GenerateConfig,
    get_model,
)
from inspect_ai.scorer import Metric, SampleScore, Score as InspectScore, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall

from robustbench_tc.errors import UserError
from robustbench_tc.eval import wire
from robustbench_tc.eval.live.score import LiveScore
from robustbench_tc.eval.models import DEFAULT_DECODING
from robustbench_tc.eval.run import received
from robustbench_tc.eval.stats.packs.live import lines
from robustbench_tc.schema import loads

from .dialogue import Dialogue
from .inspect_model import InspectBackend, messages
from .live_rows import LiveRows

Names = str | list[str]


@task
def live(
    dataset: str = "robustbench-tc-live",
    types: Names = "",
    ids: Names = "",
    limit: int | None = None,
    mode: str = "fc",
    worlds: Names = "",
    world_python: str | None = None,
    revision: str | None = None,
) -> Task:
    """Rows of a live dataset, chosen as `rbtc live run` chooses them."""
    try:
        rows = LiveRows(
            dataset,
            types=types,
            ids=ids,
            limit=limit,
            mode=mode,
            worlds=worlds,
            world_python=world_python,
            revision=revision,
        )
    except UserError as error:
        raise PrerequisiteError(str(error)) from None
    samples = [
        InspectSample(
            id=about["id"],
            input=messages(wire.Ask(about["messages"])),
            metadata={"task": about["clean_id"], "kind": about["type"]},
        )
        for about in rows.rows()
    ]
    return Task(
        dataset=MemoryDataset(samples, name=dataset),
        solver=_played(rows),
        scorer=_success(),
        config=GenerateConfig(**DEFAULT_DECODING),
    )


def _played(rows: LiveRows) -> Solver:
    @solver(name="played")
    def made() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            model = get_model()
            backend = InspectBackend(model)
            name = model.api.service_model_name()
            dialogue = rows.begin(str(state.sample_id), name, state.epoch - 1)
            try:
                await _play(dialogue, backend, state)
                state.metadata["score"] = msgspec.to_builtins(await dialogue.scored())
            finally:
                await dialogue.close()
            return state

        return solve

    return made()


async def _play(dialogue: Dialogue, backend: InspectBackend, state: TaskState) -> None:
    while (ask := dialogue.ask()) is not None:
        answer = await received(backend, ask, dialogue.base(), dialogue.tools)
        if answer.status == "request_error":  # no answer was had: the sample fails, it is not wrong
            raise backend.error or RuntimeError(answer.error)
        await dialogue.reply(answer)
        if backend.output is not None:
            state.output = backend.output
            state.messages = [*_shown(ask), backend.output.message]


def _shown(ask: wire.Ask) -> list[ChatMessage]:
    """A request as the log shows it: native calls and their results as such."""
    found = messages(ask)
    for place, said in enumerate(ask.messages):
        if said["role"] == "tool":
            found[place] = ChatMessageTool(content=said["content"], tool_call_id=said["tool_call_id"])
        elif calls := said.get("tool_calls"):
            found[place] = ChatMessageAssistant(
                content=said["content"] or "", tool_calls=[_call(one) for one in calls]
            )
    return found


def _call(one: dict[str, Any]) -> ToolCall:
    try:
        arguments = loads(one["function"]["arguments"])
    except ValueError:
        arguments = one["function"]["arguments"]
    whole = arguments if isinstance(arguments, dict) else {"arguments": arguments}
    return ToolCall(id=one["id"], function=one["function"]["name"], arguments=whole)


def _success() -> Scorer:
    @scorer(metrics=[table()], name="success")
    def made() -> Scorer:
        async def score(state: TaskState, target: Target) -> InspectScore:
            found = state.metadata["score"]
            why = f"ended: {found['ended']}; silent failure: {found['silent_failure']}"
            return InspectScore(value="C" if found["success"] else "I", explanation=why, metadata=found)

        return score

    return made()


@metric(scores="unreduced")
def table() -> Metric:
    """Success of the clean rows; of each kind of fault success, and Δ to the clean rows of the same tasks."""

    def of(scores: Sequence[SampleScore]) -> dict[str, Any]:
        found = [msgspec.convert(one.score.metadata, LiveScore) for one in scores]
        clean = [bool(one.success) for one in found if one.type_code == "clean"]
        values = {"clean": sum(clean) / len(clean)} if clean else {}
        for line in lines(found):
            values |= {f"success_{line.name}": line.success.value, f"delta_{line.name}": line.delta.value}
        return {name: value for name, value in values.items() if value is not None}

    return of
