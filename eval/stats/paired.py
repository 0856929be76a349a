"""Two runs over the same rows: differences of accuracy and of Δ, with paired tests.

Only rows that both runs answered completely are paired; what is left out is counted. Differences are b − a.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from robustbench_tc import taxonomy

from .confidence import Estimate, combined, difference, quotient, shares
from .intervals import Interval, of_estimate, per_unit, resampled_mean
from .lattice import Floats, Ints
from .runs import Outcomes
from .significance import paired_p, signs_p
from .summary import Convention
from .values import beyond_core


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


def compare(
    a: Outcomes, b: Outcomes, codes: Iterable[str], convention: Convention = "cluster"
) -> Pair | None:
    """The two runs over `codes`; None where no row was answered by both."""
    return compare_lines(a, b, {"": tuple(codes)}, convention).get("")


def compare_lines(
    a: Outcomes, b: Outcomes, lines: Mapping[str, Sequence[str]], convention: Convention = "cluster"
) -> dict[str, Pair]:
    """The two runs over the types of each line; lines of which both answered no row are left out."""
    both = _both(a, b)
    at = {name: where for name, codes in lines.items() if both[:, (where := _at(a, codes))].any()}
    estimates = _estimates(a, b, both, at.values())
    factor = a.repeats * b.repeats
    found = {}
    for i, (name, where) in enumerate(at.items()):
        sides = [one.at(i) for one in estimates]
        rows = both[:, where]
        n = int(rows.sum())
        flips = _flips(a, b, where, both)
        sums = flips[rows > 0] if convention == "paper" else a.by_unit(flips.sum(axis=1))
        only_a, only_b = (round(float(np.maximum(side, 0).sum()) / factor) for side in (-flips, flips))
        interval = (
            resampled_mean(sums, factor)
            if convention == "paper"
            else of_estimate(difference(sides[1], sides[0]), n, "mover")
        )
        right = [int(one.correct[:, where][rows > 0].sum()) / (n * one.repeats) for one in (a, b)]
        found[name] = Pair(
            n=n,
            left_out=int(((_wanted(a) | _wanted(b)) & (both == 0))[:, where].sum()),
            a=right[0],
            b=right[1],
            only_a=only_a,
            only_b=only_b,
            difference=msgspec.structs.replace(interval, n=n),
            p=paired_p(sums),
        )
    return found


class DeltaPair(msgspec.Struct, frozen=True):
    """Δ of two runs over the same rows; `difference` is a's Δ minus b's, positive where b loses less."""

    a: float
    b: float
    difference: Interval
    """Its p swaps the two models within clean_ids at random (`significance.signs_p`)."""
    closed: Interval | None
    """The share of a's Δ that b closes, with Fieller's set; None where that set has no ends: it cannot be
    said."""


def compare_types(
    a: Outcomes, b: Outcomes, codes: Iterable[str], convention: Convention = "cluster"
) -> dict[str, Pair]:
    """`compare_lines` of single types; those of the core are worked out apart, so that no other moves a
    digit of theirs."""
    core: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for code in codes:
        (others if beyond_core([code]) else core)[code] = [code]
    return compare_lines(a, b, core, convention) | compare_lines(a, b, others, convention)


def compare_delta_lines(a: Outcomes, b: Outcomes, lines: Mapping[str, Sequence[str]]) -> dict[str, DeltaPair]:
    """Δ of each line; lines without a row on one of its sides are left out."""
    both = _both(a, b)
    at = {name: _at(a, codes) for name, codes in {taxonomy.CLEAN: (taxonomy.CLEAN,), **lines}.items()}
    at = {name: where for name, where in at.items() if both[:, where].any()}
    if taxonomy.CLEAN not in at:
        return {}
    estimates = _estimates(a, b, both, at.values())
    totals = {name: a.by_unit(_flips(a, b, where, both).sum(axis=1)) for name, where in at.items()}
    rows = {name: int(both[:, where].sum()) for name, where in at.items()}
    names, clean = list(at), taxonomy.CLEAN
    there = [name for name in lines if name in at]
    if not there:
        return {}
    # a's Δ − b's, times both numbers of rows: whole numbers per clean_id
    p_values = signs_p([totals[name] * rows[clean] - totals[clean] * rows[name] for name in there])
    found = {}
    for name, p in zip(there, p_values, strict=True):
        deltas = [difference(one.at(names.index(clean)), one.at(names.index(name))) for one in estimates]
        n = rows[clean] + rows[name]
        left = quotient(deltas[1], deltas[0])
        closed = Interval(1 - left[0], 1 - left[2], 1 - left[1], n, "fieller") if left else None
        found[name] = DeltaPair(
            float(deltas[0].value),
            float(deltas[1].value),
            of_estimate(combined(deltas, (1.0, -1.0), 2.0), n, "mover", p),
            closed,
        )
    return found


def _estimates(a: Outcomes, b: Outcomes, both: Ints, lines: Iterable[list[int]]) -> tuple[Estimate, ...]:
    """The accuracies of a and of b over the common rows of each line."""
    columns = list(lines)
    if not columns:
        return ()
    rows = np.stack([a.by_unit(both[:, where].sum(axis=1)) for where in columns])

    def of(one: Outcomes) -> Floats:
        right = one.correct * (both > 0)
        found: Floats = np.stack([a.by_unit(right[:, where].sum(axis=1)) for where in columns]) / one.repeats
        return found

    return shares(of(a), rows), shares(of(b), rows)


def _at(outcomes: Outcomes, codes: Iterable[str]) -> list[int]:
    return [outcomes.types.index(code) for code in codes if code in outcomes.types]


def _wanted(one: Outcomes) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (one.n + one.missing) > 0
    return found


def _both(a: Outcomes, b: Outcomes) -> Ints:
    """[clean ids, types]: rows that both answered completely; a row with its control counts as two."""
    whole = (a.n == a.answers) & (b.n == b.answers)
    found: Ints = whole * (a.answers // a.repeats)
    return found


def _flips(a: Outcomes, b: Outcomes, at: list[int], both: Ints) -> Ints:
    """b − a of each row in `both`. With different numbers of repeats, rates are put over a common
    denominator, the product of these."""
    return np.where(both[:, at], b.correct[:, at] * a.repeats - a.correct[:, at] * b.repeats, 0)


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
    asked = sorted((row.clean_id, row.submitted, row.again * repeats) for row in rows)
    n, submitted, again = per_unit(asked)
    change = difference(shares(again / repeats, n), shares(submitted / repeats, n))
    return Reasked(
        rows=len(rows),
        submitted=int(submitted.sum()) / (repeats * len(rows)),
        again=int(again.sum()) / (repeats * len(rows)),
        low=float(change.low),
        high=float(change.high),
        p=paired_p(again - submitted),
    )
