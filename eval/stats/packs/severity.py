"""Severity: one perturbation in several strengths, how accuracy follows the dose, and how often an agent
tries again where an error does not go away.

The doses of a series are compared over the clean ids whose rows of every dose were all answered, so that each
dose is asked of the same samples. Steps are counted, 1 from each dose to the next, whatever the doses are.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, permutations

import msgspec
import numpy as np

from robustbench_tc import taxonomy
from robustbench_tc.io import numbers

from ..intervals import Interval, combined, of_estimate, shares
from ..lattice import Floats, Ints
from ..outcomes import Outcomes
from ..significance import paired_p
from . import Cell, Given, Table

PACKS = ("severity",)

DOSES = "severity_doses"
"""The table that the report draws."""


class Dose(msgspec.Struct, frozen=True):
    """One dose of a series."""

    code: str
    dose: float
    accuracy: Interval
    """Over all rows of the type."""
    common: Interval | None
    """Over the clean ids that have every dose; None where there are none."""


class Series(msgspec.Struct, frozen=True):
    """A series of doses in a run."""

    name: str
    doses: tuple[Dose, ...]
    """From the mildest to the strongest."""
    clean: Interval | None
    """Accuracy on the clean rows of the common clean ids."""
    n: int
    """Common clean ids."""
    slope: Interval | None
    """Change of accuracy per step: least squares over the common clean ids. Its p is exact: the signs of the
    clean ids' own slopes swapped at random. None with fewer than two doses or no common clean id."""
    trend_p: float | None
    """Page's L for ordered alternatives (Journal of the American Statistical Association 58, 1963) with mean
    ranks of ties, two-sided, exact: the doses permuted within each clean id."""


def series(outcomes: Outcomes, codes: Sequence[str]) -> tuple[Series, ...]:
    """Every series that two or more of `codes` (in the taxonomy's order) are doses of. A type without any
    verdict is left out: its harness reports something else."""
    counts = outcomes.counts()
    kinds = [taxonomy.get(code) for code in codes if code != taxonomy.CLEAN and counts[code].n]
    named = dict.fromkeys(kind.series for kind in kinds if kind.series)
    doses = {name: [kind for kind in kinds if kind.series == name] for name in named}
    return tuple(_series(outcomes, name, of) for name, of in doses.items() if len(of) > 1)


def _series(outcomes: Outcomes, name: str, kinds: Sequence[taxonomy.PerturbationType]) -> Series:
    repeats = outcomes.repeats
    whole, right = outcomes.whole(kind.code for kind in kinds)
    n = len(right)
    by_case, asked = outcomes.by_unit(right, whole), outcomes.by_unit(np.full(n, repeats), whole)
    doses = tuple(
        Dose(
            kind.code,
            float(kind.dose or 0),
            _share(*outcomes.columns([kind.code]), repeats),
            _share(by_case[:, i], asked, repeats) if n else None,
        )
        for i, kind in enumerate(kinds)
    )
    if not n:
        return Series(name, doses, None, 0, None, None)
    found, rows = outcomes.without(set(compress(outcomes.clean_ids, ~whole))).columns([taxonomy.CLEAN])
    clean = _share(found, rows, repeats) if rows.any() else None
    return Series(name, doses, clean, n, _slope(by_case, asked / repeats, n, repeats), page_p(by_case))


def _share(right: Ints, rows: Ints, repeats: int) -> Interval:
    return of_estimate(shares(right / repeats, rows / repeats), round(int(rows.sum()) / repeats), "hull")


def weights(k: int) -> Ints:
    """Whole numbers that rise by 2 from step to step and sum to 0: -1, 1; -2, 0, 2; -3, -1, 1, 3."""
    return 2 * np.arange(k) - (k - 1)


def _slope(right: Ints, rows: Floats, n: int, repeats: int) -> Interval:
    """Least squares of accuracy on the number of the step, over units of so many `rows`, `n` in all."""
    k = right.shape[1]
    rising = weights(k)
    # Steps are half of the weights: slope = Σ (w / 2) · accuracy / Σ (w / 2)².
    scale = float(rising @ rising) / 2
    parts = [shares(right[:, i] / repeats, rows) for i in range(k)]
    found = combined(parts, [float(one) / scale for one in rising], bound=1.0)
    return of_estimate(found, n, "mover", paired_p(right @ rising))


def page_p(right: Ints) -> float:
    """Exact two-sided p-value of Page's L over [clean ids, doses]: as far from its mean as observed, with the
    doses of each clean id in any order."""
    k = right.shape[1]
    rising = weights(k)
    # Twice the mean ranks within each row, so that they are whole.
    less = (right[:, :, None] > right[:, None, :]).sum(axis=2)
    ranks: Ints = 2 * less + (right[:, :, None] == right[:, None, :]).sum(axis=2) + 1
    observed = int((ranks @ rising).sum())
    kinds, counts = np.unique(np.sort(ranks, axis=1), axis=0, return_counts=True)
    p: Floats = np.ones(1)
    for one, count in zip(kinds, counts.tolist(), strict=True):
        orders = np.array(list(permutations(one.tolist()))) @ rising
        reach = int(orders.max())
        drawn = np.bincount(orders + reach, minlength=2 * reach + 1) / math.factorial(k)
        for _ in range(count):
            p = np.convolve(p, drawn)
    if observed == 0:
        return 1.0
    return min(1.0, 2 * float(p[len(p) // 2 + abs(observed) :].sum()))


def tables(given: Given) -> Iterable[Table]:
    """Tries where an error does not go away; doses and trends of every series of which there are two."""
    codes = [code for code in given.codes("severity") if "times" in taxonomy.get(code).traits]
    if rows := [row for code in codes for row in _repeated_error(given, code)]:
        yield Table(
            name="repeated_errors",
            title="Tries where the error does not go away",
            columns=(
                "type",
                "n",
                "met the error",
                "calls that met it, mean",
                "calls after the last",
                "accuracy",
            ),
            rows=tuple(rows),
            note="Calls that met the error are counted over the rows whose first reply called a tool, and so "
            "is the share that still calls after the last error. No accuracy is shown where nine calls fail.",
        )
    found = series(given.outcomes, given.outcomes.usable(given.allow_missing))
    if not found:
        return
    yield Table(
        name=DOSES,
        title="Accuracy by dose",
        columns=("series", "dose", "type", "n", "accuracy", "common n", "clean", "accuracy over common n"),
        rows=tuple(
            (
                one.name,
                f"{dose.dose:g}",
                dose.code,
                dose.accuracy.n,
                dose.accuracy,
                one.n,
                None if one.clean is None else one.clean.value,
                dose.common,
            )
            for one in found
            for dose in one.doses
        ),
        note="Accuracy over all rows of a dose, and over the samples that have every dose of the series. The "
        "doses of a series are drawn apart: a stronger one does not hold the slips of a weaker one.",
    )

    yield Table(
        name="severity_trends",
        title="Slope and trend by series",
        columns=("series", "doses", "common n", "slope per step", "p of slope", "p of trend"),
        rows=tuple(
            (
                one.name,
                len(one.doses),
                one.n,
                one.slope,
                one.slope and numbers.p_value(one.slope.p),
                None if one.trend_p is None else numbers.p_value(one.trend_p),
            )
            for one in found
        ),
        note="Slope: change of accuracy per step to the next dose, over the samples that have every dose; p "
        "exact, by the signs of the samples' own slopes. Trend: Page's L, exact, by the order of the doses "
        "within samples. Both two-sided.",
    )


_NO_CALL = ("empty", "omitted")
"""Error modes of a scored reply that calls nothing."""


def _repeated_error(given: Given, code: str) -> Iterator[tuple[Cell, ...]]:
    answers = [(one.attempts, one.error_mode) for one in given.answers(code) if one.attempts is not None]
    met = [(tries, mode) for tries, mode in answers if tries]
    calling = sum(tries >= taxonomy.get(code).answered_calls and mode not in _NO_CALL for tries, mode in met)
    found = given.summary.types.get(code)
    if answers:
        yield (
            code,
            len(answers),
            len(met),
            sum(tries for tries, _ in met) / len(met) if met else None,
            calling / len(met) if met else None,
            None if found is None else found.accuracy,
        )
