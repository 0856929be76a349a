"""The benchmark as a task of inspect_ai: `inspect eval robustbench_tc/benchmark --model … -T dataset=DIR`.

inspect_ai loads this module through its entry point; nothing of ours imports it. A sample is a row.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample as InspectSample
from inspect_ai.model import (
    GenerateConfig,
    get_model,
)
from inspect_ai.scorer import Metric, SampleScore, Score as InspectScore, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from robustbench_tc.errors import UserError
from robustbench_tc.eval import wire
from robustbench_tc.eval.models import DEFAULT_DECODING
from robustbench_tc.eval.speakers import ModelSpeaker
from robustbench_tc.schema import Json, Prediction, Sample, dataset_label, dumps

from .bench import KEY, Bench
from .figures import figures
from .inspect_live import live
from .inspect_model import InspectBackend, messages

Names = str | list[str]

__all__ = ["benchmark", "live"]


@task
def benchmark(
    dataset: str = "robustbench-tc",
    types: Names = "",
    sources: Names = "",
    samples: int | None = None,
    mode: str = "fc",
    revision: str | None = None,
) -> Task:
    """Rows of a release folder or of `org/name` on the Hub, chosen as `rbtc eval` chooses them."""
    try:
        bench = Bench(dataset, revision=revision, types=types, sources=sources, samples=samples, mode=mode)
    except UserError as error:
        raise PrerequisiteError(str(error)) from None
    return Task(
        dataset=MemoryDataset([_sample(bench, row) for row in bench.rows], name=dataset),
        solver=_all_replies(bench),
        scorer=_verdicts(bench),
        config=GenerateConfig(**DEFAULT_DECODING),
        metadata={KEY: msgspec.to_builtins(bench.origin)},
        version=dataset_label(bench.data.version, bench.origin.fingerprint),
    )


def _sample(bench: Bench, row: Sample) -> InspectSample:
    gold = ["; ".join(f"{call.name} {dumps(call.parameters)}" for call in one) for one in row.golden_answers]
    return InspectSample(
        id=row.id,
        input=messages(wire.first(row, bench.mode)),
        target=gold,
        metadata=bench.identity(row),
    )


def _all_replies(bench: Bench) -> Solver:
    @solver(name="all_replies")
    def made() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            model = get_model()
            backend = InspectBackend(model)
            speaker = ModelSpeaker(backend)
            dialogue = bench.begin(str(state.sample_id), model.api.service_model_name(), state.epoch - 1)
            while (ask := dialogue.ask()) is not None:
                answer = await speaker.reply(dialogue, ask, dialogue.base())
                if answer.status == "request_error":  # no answer was had: the sample fails, it is not wrong
                    raise backend.error or RuntimeError(answer.error)
                dialogue.reply(dialogue.noted(answer))
                state.messages = messages(ask)
                if backend.output is not None:
                    state.output = backend.output
                    state.messages.append(backend.output.message)
            state.metadata["prediction"] = msgspec.to_builtins(bench.prediction(dialogue))
            return state

        return solve

    return made()


def _verdicts(bench: Bench) -> Scorer:
    @scorer(metrics=[table()], name="verdict")
    def made() -> Scorer:
        async def score(state: TaskState, target: Target) -> InspectScore:
            found = msgspec.convert(state.metadata["prediction"], Prediction)
            verdict = bench.verdict(found)
            calls = "; ".join(f"{call.name} {dumps(call.parameters)}" for call in verdict.calls)
            said: dict[str, Json] = {"repeat": found.repeat, "verdict": msgspec.to_builtins(verdict)}
            value = "C" if verdict.correct else "I"
            return InspectScore(value=value, answer=calls, explanation=verdict.reason, metadata=said)

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
