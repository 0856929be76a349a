"""Two runs over the same rows: differences of accuracy and of Δ, with exact paired tests.

Only rows that both runs answered completely are paired; what is left out is counted. Differences are b − a.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from robustbench_tc import taxonomy

from .intervals import Interval, cluster_mean, resampling, simulated
from .lattice import Floats, Ints
from .runs import Outcomes
from .significance import paired_p
from .summary import Convention
from .values import closure


class Pair(msgspec.Struct, frozen=True):
    """Two runs over some types. With repeats, counts of flips are in answers."""

    n: int
    """Rows that both answered."""
    left_out: int
    """Rows that one of them did not answer, or not every time it was asked."""
    a: float
    """Accuracy of a over the n rows."""
    b: float
    only_a: int
    only_b: int
    difference: Interval
    """b − a."""
    p: float
    """Exact paired test, clean_ids (or, in the paper's convention, rows) as units."""


class _Sums(NamedTuple):
    total: Ints
    """Σ (b − a) per unit, times `factor`."""
    rows: Ints
    """Rows per unit, times `factor`."""
    factor: int


def compare(
    a: Outcomes, b: Outcomes, codes: Iterable[str], convention: Convention = "cluster"
) -> Pair | None:
    """The two runs over `codes`; None where no row was answered by both."""
    at = _at(a, codes)
    both = _both(a, b)[:, at]
    n = int(both.sum())
    if n == 0:
        return None
    sums = _sums(a, b, at, by_row=convention == "paper")
    sides = [int((one.correct[:, at] * both).sum()) / (n * one.repeats) for one in (a, b)]
    flips = np.where(both, b.correct[:, at] * a.repeats - a.correct[:, at] * b.repeats, 0)
    only_a, only_b = (round(float(np.maximum(side, 0).sum()) / sums.factor) for side in (-flips, flips))
    interval = cluster_mean(sums.total, sums.rows, difference=True)
    return Pair(
        n=n,
        left_out=int((_wanted(a) | _wanted(b))[:, at].sum()) - n,
        a=sides[0],
        b=sides[1],
        only_a=only_a,
        only_b=only_b,
        difference=msgspec.structs.replace(interval, n=n),
        p=paired_p(sums.total),
    )


class DeltaPair(msgspec.Struct, frozen=True):
    """Δ of two runs over the same rows; `difference` is a's Δ minus b's, positive where b loses less."""

    a: float
    b: float
    difference: Interval
    closed: Interval | None
    """The share of a's Δ that b closes; None where a's Δ is not surely above 0."""


def compare_deltas(a: Outcomes, b: Outcomes, codes: Iterable[str]) -> DeltaPair | None:
    """Clean minus `codes`, both over rows that both runs answered, clean_ids resampled together."""
    both = _both(a, b)
    clean_at, at = _at(a, [taxonomy.CLEAN]), _at(a, codes)
    columns = []
    for one in (a, b):
        right = one.correct * both
        columns += [right[:, clean_at].sum(axis=1), right[:, at].sum(axis=1)]
    rows = [both[:, clean_at].sum(axis=1), both[:, at].sum(axis=1)]
    if not rows[0].any() or not rows[1].any():
        return None
    stacked = np.stack([*columns, *rows], axis=1)

    def deltas(sums: Floats) -> tuple[Floats, Floats]:
        clean_a, of_a, clean_b, of_b, clean_n, n = sums
        return (
            clean_a / (clean_n * a.repeats) - of_a / (n * a.repeats),
            clean_b / (clean_n * b.repeats) - of_b / (n * b.repeats),
        )

    of_a, of_b = (float(found) for found in deltas(stacked.sum(axis=0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn_a, drawn_b = deltas(resampling(len(stacked)).sums(stacked))
        rows_used = int(stacked[:, 4:].sum())
        difference = simulated(drawn_a - drawn_b, of_a - of_b, rows_used, difference=True)
        closed, share = None, closure(of_a, of_b)
        if share is not None and simulated(drawn_a, of_a, rows_used).low > 0:
            closed = simulated((drawn_a - drawn_b) / drawn_a, share, rows_used)
    return DeltaPair(of_a, of_b, difference, closed)


def _at(outcomes: Outcomes, codes: Iterable[str]) -> list[int]:
    return [outcomes.types.index(code) for code in codes if code in outcomes.types]


def _wanted(one: Outcomes) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (one.n + one.missing) > 0
    return found


def _both(a: Outcomes, b: Outcomes) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (a.n == a.repeats) & (b.n == b.repeats)
    return found


def _sums(a: Outcomes, b: Outcomes, at: list[int], *, by_row: bool) -> _Sums:
    """With different numbers of repeats, rates are put over a common denominator: `factor`."""
    factor = a.repeats * b.repeats
    both = _both(a, b)[:, at]
    difference = np.where(both, b.correct[:, at] * a.repeats - a.correct[:, at] * b.repeats, 0)
    if by_row:
        return _Sums(difference[both], np.full(int(both.sum()), factor), factor)
    return _Sums(difference.sum(axis=1), both.sum(axis=1) * factor, factor)
