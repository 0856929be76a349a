"""How one reply was read and judged, step by step: `rbtc score RUN --explain ID`."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.schema import Prediction, Sample, Verdict, dumps
from robustbench_tc.shown import Part

from . import predictions, verdicts
from .parse import READER_VERSION, Parsed
from .record import RunFolder
from .score import judge, read

SHOWN = 2_000
"""Characters of a passage that are shown."""


class Passage(msgspec.Struct, frozen=True):
    """A part of the reply: reasoning, an invented turn, or the final answer."""

    kind: str
    start: int
    end: int
    text: str
    """Its beginning."""


class Explanation(msgspec.Struct, frozen=True):
    """How one reply was read, and what came of it."""

    id: str
    repeat: int
    reader: str
    passages: tuple[Passage, ...]
    tried: tuple[str, ...]
    """Variants in the order they were tried; the last one found the calls."""
    verdict: Verdict


class Explained(NamedTuple):
    """The replies to one row, a repeat each."""

    replies: list[Explanation]

    def shown(self) -> Iterator[Part]:
        """Passages, variants, calls, verdict and flags."""
        for one in self.replies:
            verdict = one.verdict
            yield f"{one.id}, repeat {one.repeat}, read by reader {one.reader}"
            for part in one.passages:
                yield f"{part.kind} [{part.start}:{part.end}] {part.text!r}"
            tried = "native calls" if verdict.variant == "fc" else ", ".join(one.tried)
            yield f"tried: {tried or 'nothing'}"
            for call in verdict.calls:
                yield f"call: {call.name} {dumps(call.parameters)}"
            said = "right" if verdict.correct else f"wrong ({verdict.error_mode}: {verdict.reason})"
            yield f"verdict: {said}, score {verdict.score:g}, variant {verdict.variant}"
            if verdict.stage:
                yield f"stage: {verdict.stage}, {verdict.stage_detail}"
            yield f"flags: {', '.join(verdict.flags) or 'none'}"


def explained(folder: RunFolder, wanted: str, dataset: str | None = None) -> Explained:
    """The replies of a run to the row `wanted`, read again. Raises UserError where no answer was had."""
    data = verdicts.dataset_of(folder, dataset)
    anchors = data.anchors()
    found = [one for one in predictions.read(folder.predictions_path) if one.id == wanted]
    if not found:
        raise unknown("row of this run", wanted, data.by_id)
    for one in found:
        if one.status == "request_error":
            raise UserError(f"{one.id}: no answer was had ({one.error}): run the same rbtc eval again")
    return Explained([explain(one, data.by_id[wanted], anchors[wanted]) for one in found])


def explain(one: Prediction, row: Sample, clean: Sample) -> Explanation:
    """Reads the scored reply of `one` again. Raises ValueError where no answer was had."""
    verdict = judge(one, row, clean)
    parsed = read(one, row) if one.status == "ok" else Parsed((), None)
    text = one.raw_output or ""
    passages = tuple(
        Passage(part.kind, part.start, part.end, text[part.start : part.end][:SHOWN])
        for part in parsed.segments
    )
    return Explanation(one.id, one.repeat, READER_VERSION, passages, parsed.tried, verdict)
