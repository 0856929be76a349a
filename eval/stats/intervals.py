"""95 % intervals: what every table shows around a value, and the paper's own percentile bootstrap.

The paper's is exact where the distribution is known, else simulated. Ours are worked out in `confidence`.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
import numpy as np

from .confidence import Estimate, apart, shares
from .lattice import Floats, Ints, Lattice, binomial, difference_quantiles, sum_of_draws

QUANTILES = (0.025, 0.975)

Method = Literal["hull", "mover", "fieller", "exact", "simulated"]
"""`hull`: of an accuracy; `mover`: of a difference; `fieller`: of a share of two values (docs/statistics.md).
`exact` and `simulated`: the paper's percentile bootstrap."""


class Interval(msgspec.Struct, frozen=True):
    """A value with its 95 % interval, and how that was had."""

    value: float
    low: float
    high: float
    n: int
    """Rows that the value rests on."""
    method: Method = "exact"
    p: float | None = None
    """Two-sided p-value of "the value is 0": of the exact paired test, in the paper's convention of its
    bootstrap; null where no test was made."""
    error: float = 0.0
    """Simulated: how far an end may be off, at 99 % confidence."""

    @property
    def half_width(self) -> float:
        """Half of the interval's width: what the paper prints after ±."""
        return (self.high - self.low) / 2


def of_estimate(found: Estimate, n: int, method: Method, p: float | None = None) -> Interval:
    """The interval of one value of `confidence`."""
    return Interval(float(found.value), float(found.low), float(found.high), n, method, p)


def per_unit(answers: Iterable[Sequence[str | int]]) -> Ints:
    """[1 + outcomes, units]: how many answers each unit has, and the sum of each outcome, units as they come.
    `answers`: the unit, then each outcome."""
    sums: dict[str | int, Ints] = {}
    for unit, *outcomes in answers:
        sums[unit] = sums.get(unit, 0) + np.array([1, *outcomes], np.int64)
    return np.array([*sums.values()]).T


def share_of(answers: Sequence[tuple[str, bool]]) -> Interval | None:
    """The share of right answers, each with its unit; None without any."""
    if not answers:
        return None
    n, right = per_unit(answers)
    return of_estimate(shares(right, n), len(answers), "hull")


def apart_from(a: Estimate, b: Estimate, n: int) -> Interval:
    """Accuracy of a minus accuracy of b over rows that have nothing to do with each other."""
    return Interval(*apart(a, b), n, "mover")


def of_counts(correct: int, n: int) -> Estimate:
    """An accuracy of which only the counts are known: its rows are taken as independent."""
    return shares(np.repeat([1.0, 0.0], [correct, n - correct]), np.ones(n))


def accuracy(correct: int, n: int) -> Interval:
    """Accuracy of n independent 0/1 outcomes."""
    return _from(binomial(n, correct), correct / n, n)


def independent_difference(a: tuple[int, int], b: tuple[int, int]) -> Interval:
    """Accuracy of a minus accuracy of b, each (correct, n), resampled independently: the paper's Δ."""
    first, second = binomial(a[1], a[0]), binomial(b[1], b[0])
    low, high = difference_quantiles(first, second, QUANTILES)
    return Interval(a[0] / a[1] - b[0] / b[1], low, high, a[1] + b[1])


def resampled_mean(total: Ints, unit: int) -> Interval:
    """Σ total / (entries · unit) with entries resampled as if they were independent: the paper's
    difference."""
    n = len(total)
    return _from(sum_of_draws(total, n, n * unit), int(total.sum()) / (n * unit), n, difference=True)


def paired_difference(only_a: int, only_b: int, n: int) -> Interval:
    """Accuracy of a minus accuracy of b over n pairs, of which `only_a` and `only_b` are right on one side.

    Resampling pairs is a multinomial over (only a, only b, equal).
    """
    return resampled_mean(np.repeat(np.array([1, -1, 0]), [only_a, only_b, n - only_a - only_b]), 1)


def simulated(draws: Floats, value: float, n: int) -> Interval:
    """The interval of simulated values; undefined ones (0/0) are left out.

    The error is the distance to the order statistics between which the true quantile lies with 99 %
    confidence, whatever the distribution is.
    """
    draws = draws[np.isfinite(draws)]
    size = len(draws)
    shifts = (-2.576, 0.0, 2.576)
    ranks = [_rank(size, q, shift) for q in QUANTILES for shift in shifts]
    at = np.partition(draws, sorted(set(ranks)))[ranks].reshape(len(QUANTILES), len(shifts))
    (low, high), error = at[:, 1].tolist(), float(np.abs(at - at[:, 1:2]).max())
    return Interval(value, low, high, n, "simulated", None, error)


def _rank(size: int, q: float, shift: float) -> int:
    at = math.ceil(size * q + shift * math.sqrt(size * q * (1 - q))) - 1
    return min(max(at, 0), size - 1)


def _from(found: Lattice, value: float, n: int, difference: bool = False) -> Interval:
    low, high = (found.quantile(q) for q in QUANTILES)
    p = min(1.0, 2 * min(found.tails())) if difference else None
    return Interval(value, low, high, n, "exact", p)
