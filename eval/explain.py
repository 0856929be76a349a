"""How one reply was read and judged, step by step: `rbtc score RUN --explain ID`."""

import msgspec

from robustbench_tc.schema import Prediction, Sample, Verdict

from .parse import READER_VERSION, Parsed
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
    """What `--explain` prints."""

    id: str
    repeat: int
    reader: str
    passages: tuple[Passage, ...]
    tried: tuple[str, ...]
    """Variants in the order they were tried; the last one found the calls."""
    verdict: Verdict


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
