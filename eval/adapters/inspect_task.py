"""The benchmark as a task of inspect_ai: `inspect eval robustbench_tc/benchmark --model … -T dataset=DIR`.

inspect_ai loads this module through its entry point; nothing of ours imports it. A sample is a row.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample as InspectSample
from inspect_ai.model import GenerateConfig, get_model, messages_from_openai
from inspect_ai.scorer import Metric, SampleScore, Score as InspectScore, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from robustbench_tc.errors import UserError
from robustbench_tc.eval.models import DEFAULT_DECODING
from robustbench_tc.schema import LiveRow, Sample, dataset_label, dumps

from .figures import Row, figures
from .foreign import KEY
from .inspect_model import InspectSpeaker, messages
from .rows import Rows

Names = str | list[str]


@task
def benchmark(
    dataset: str = "robustbench-tc",
    types: Names = "",
    sources: Names = "",
    ids: Names = "",
    limit: int | None = None,
    samples: int | None = None,
    mode: str = "fc",
    worlds: Names = "",
    world_python: str | None = None,
    revision: str | None = None,
) -> Task:
    """Rows of a dataset, live ones in their worlds, chosen as `rbtc eval` chooses them."""
    try:
        rows = Rows(
            dataset,
            revision=revision,
            types=types,
            sources=sources,
            ids=ids,
            limit=limit,
            samples=samples,
            mode=mode,
            worlds=worlds,
            world_python=world_python,
        )
    except UserError as error:
        raise PrerequisiteError(str(error)) from None
    return Task(
        dataset=MemoryDataset([_sample(rows, row) for row in rows.rows.values()], name=dataset),
        solver=_played(rows),
        scorer=verdict(),
        config=GenerateConfig(**DEFAULT_DECODING),
        metadata=None if rows.live else {KEY: msgspec.to_builtins(rows.origin)},
        version=dataset_label(rows.data.version, rows.settings.fingerprint),
    )


def _sample(rows: Rows, row: Sample | LiveRow) -> InspectSample:
    ask = rows.begin(row.id).dialogue.ask()
    assert ask is not None
    golds = () if isinstance(row, LiveRow) else row.golden_answers
    return InspectSample(
        id=row.id,
        input=messages(ask),
        target=["; ".join(f"{call.name} {dumps(call.parameters)}" for call in one) for one in golds],
        metadata=rows.identity(row),
    )


def _played(rows: Rows) -> Solver:
    @solver(name="played")
    def made() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            model = get_model()
            speaker = InspectSpeaker(model)
            playing = rows.begin(str(state.sample_id), model.api.service_model_name(), state.epoch - 1)
            dialogue = playing.dialogue
            try:
                while (ask := dialogue.ask()) is not None:
                    answer = await speaker.reply(dialogue, ask, dialogue.base())
                    if answer.status == "request_error":  # the sample fails, it is not wrong
                        raise speaker.error or RuntimeError(answer.error)
                    await playing.reply(answer)
                    state.messages = await messages_from_openai(ask.messages)
                    if speaker.output is not None:
                        state.output = speaker.output
                        state.messages.append(speaker.output.message)
                state.metadata |= msgspec.to_builtins(await playing.score())
            finally:
                await playing.close()
            return state

        return solve

    return made()


@metric(scores="unreduced")
def table() -> Metric:
    """Clean accuracy, and for each component, or kind of fault, accuracy and Δ, from our statistics."""

    def of(scores: Sequence[SampleScore]) -> dict[str, Any]:
        rows = []
        for one in scores:
            clean_id, _, code = str(one.sample_id).rpartition("::")
            said = one.score.metadata or {}
            right = one.score.value in ("C", 1, 1.0, True)
            rows.append(Row(clean_id, code, said.get("repeat", 0), right, said.get("met", True)))
        return dict(figures(rows))

    return of


@scorer(metrics=[table()])
def verdict() -> Scorer:
    """What `Rows` said of the row, once it was played."""

    async def score(state: TaskState, target: Target) -> InspectScore:
        found: dict[str, Any] = state.metadata["record"]
        calls = [f"{call['name']} {dumps(call['parameters'])}" for call in found.get("calls", ())]
        return InspectScore(
            value="C" if state.metadata["reward"] else "I",
            answer="; ".join(calls),
            explanation=found.get("reason") or found.get("ended"),
            metadata={"repeat": state.epoch - 1, "verdict": found, "met": state.metadata["met"]},
        )

    return score
