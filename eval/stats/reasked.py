"""A submission against an endpoint that is said to be the model: some of its rows asked again.

Each row is asked once. Sampling and servers differ, so other verdicts alone fail nothing: a difference of
accuracy does that is more than chance.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from .lattice import Ints
from .paired import compare
from .runs import Outcomes


class Answered(msgspec.Struct, frozen=True):
    """One row, in the submission and asked again."""

    clean_id: str
    type_code: str
    submitted: int
    """Right answers of the submission's `repeats`."""
    again: bool


class Reasked(msgspec.Struct, frozen=True, kw_only=True):
    """What came out over some rows."""

    rows: int
    submitted: float
    """The submission's accuracy on these rows."""
    again: float
    low: float
    """again − submitted: the ends of its 95 % interval, paired, whole samples as units."""
    high: float
    p: float
    """Exact paired test of no difference."""

    @property
    def fits(self) -> bool:
        """Whether the interval of the difference holds 0."""
        return self.low <= 0 <= self.high


def reasked(rows: Sequence[Answered], repeats: int) -> Reasked:
    """Compares the verdicts. `rows` is not empty and has no row twice."""
    clean_ids = tuple(sorted({row.clean_id for row in rows}))
    types = tuple(sorted({row.type_code for row in rows}))
    at = [(clean_ids.index(row.clean_id), types.index(row.type_code)) for row in rows]
    there = np.zeros((len(clean_ids), len(types)), dtype=np.int64)
    submitted, again = there.copy(), there.copy()
    for place, row in zip(at, rows, strict=True):
        there[place], submitted[place], again[place] = 1, row.submitted, row.again
    pair = compare(
        _outcomes(clean_ids, types, submitted, there * repeats, repeats),
        _outcomes(clean_ids, types, again, there, 1),
        types,
    )
    assert pair is not None  # there is a row
    return Reasked(
        rows=len(rows),
        submitted=pair.a,
        again=pair.b,
        low=pair.difference.low,
        high=pair.difference.high,
        p=pair.p,
    )


def _outcomes(
    clean_ids: tuple[str, ...], types: tuple[str, ...], correct: Ints, n: Ints, repeats: int
) -> Outcomes:
    nothing = np.zeros_like(n)
    return Outcomes(
        clean_ids=clean_ids,
        types=types,
        correct=correct,
        n=n,
        missing=nothing,
        pairs=nothing,
        kept=nothing,
        lost=nothing,
        gained=nothing,
        unmet=nothing,
        repeats=repeats,
    )
