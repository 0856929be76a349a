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
from robustbench_tc.eval.live.score import LiveScore
from robustbench_tc.eval.models import DEFAULT_DECODING
from robustbench_tc.eval.speakers import ModelSpeaker
from robustbench_tc.eval.stats.packs.live import lines
from robustbench_tc.schema import LiveRow, Sample, dataset_label, dumps

from .figures import figures
from .inspect_model import InspectBackend, messages
from .rows import KEY, Rows

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
        scorer=_score(live_table() if rows.live else table()),
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
            backend = InspectBackend(model)
            speaker = ModelSpeaker(backend)
            playing = rows.begin(str(state.sample_id), model.api.service_model_name(), state.epoch - 1)
            dialogue = playing.dialogue
            try:
                while (ask := dialogue.ask()) is not None:
                    answer = await speaker.reply(dialogue, ask, dialogue.base())
                    if (
                        answer.status == "request_error"
                    ):  # no answer was had: the sample fails, it is not wrong
                        raise backend.error or RuntimeError(answer.error)
                    await playing.reply(answer)
                    state.messages = await messages_from_openai(ask.messages)
                    if backend.output is not None:
                        state.output = backend.output
                        state.messages.append(backend.output.message)
                state.metadata |= msgspec.to_builtins(await playing.score())
            finally:
                await playing.close()
            return state

        return solve

    return made()


def _score(table: Metric) -> Scorer:
    @scorer(metrics=[table], name="verdict")
    def made() -> Scorer:
        async def score(state: TaskState, target: Target) -> InspectScore:
            found: dict[str, Any] = state.metadata["record"]
            calls = "; ".join(
                f"{call['name']} {dumps(call['parameters'])}" for call in found.get("calls", ())
            )
            return InspectScore(
                value="C" if state.metadata["reward"] else "I",
                answer="; ".join(calls),
                explanation=found.get("reason") or found.get("ended"),
                metadata={"repeat": state.epoch - 1, "verdict": found},
            )

        return score

    return made()


@metric(scores="unreduced")
def table() -> Metric:
    """Clean accuracy, and for each component accuracy, Δ and retention, from our statistics."""

    def of(scores: Sequence[SampleScore]) -> dict[str, Any]:
        rows = []
        for one in scores:
            identity, said = one.sample_metadata or {}, one.score.metadata or {}
            right = one.score.value in ("C", 1, 1.0, True)
            rows.append((identity["clean_id"], identity["type"], said.get("repeat", 0), right))
        return dict(figures(rows))

    return of


@metric(scores="unreduced")
def live_table() -> Metric:
    """Success of the clean rows; of each kind of fault success, and Δ to the clean rows of the same tasks."""

    def of(scores: Sequence[SampleScore]) -> dict[str, Any]:
        found = [msgspec.convert((one.score.metadata or {})["verdict"], LiveScore) for one in scores]
        clean = [bool(one.success) for one in found if one.type_code == "clean"]
        values = {"clean": sum(clean) / len(clean)} if clean else {}
        for line in lines(found):
            values |= {f"success_{line.name}": line.success.value, f"delta_{line.name}": line.delta.value}
        return {name: value for name, value in values.items() if value is not None}

    return of
