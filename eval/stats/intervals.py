"""95 % intervals: what every table shows around a value, and the paper's own percentile bootstrap (exact
where the distribution is known, else simulated).

Rows of a sample are not independent. An accuracy gets the hull of two intervals (`shares`): Korn and
Graubard's Clopper-Pearson interval (Survey Methodology 24, 1998) and the t interval on the logit, Wilson's
over clusters where every row is right or every row is wrong. Sums and differences are recovered from the ends
of their parts (MOVER: Zou and Donner, Statistics in Medicine 27, 2008) with the estimated correlation, shares
of shares by Fieller's argument over the same ends. How often they hold what they should is measured:
docs/statistics.md.

Quantiles of Beta and Student's t come without scipy: the regularised incomplete beta function is its
continued fraction (Abramowitz and Stegun 26.5.8), inverted by Newton's method on its logarithm over logit(x),
where the lower tail is close to a line. Off by at most 1e-9 of the value (a test holds it to scipy).
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from .lattice import Floats, Ints, Lattice, binomial, difference_quantiles, sum_of_draws

TAIL = 0.025
"""What an interval leaves out on either side."""

Z = 1.959963984540054
"""The standard normal's quantile of 1 - TAIL."""

PRIOR = 2.0
"""Clusters' worth of belief in the largest possible design effect. A few clusters that hold all the wrong
answers say little about it: without this, 22 rows a cluster are covered .855 at worst
(docs/statistics.md)."""


class Estimate(NamedTuple):
    """Values with their intervals; leading axes are values, the last axis of `spread` is clusters."""

    value: Floats
    low: Floats
    high: Floats
    spread: Floats
    """What each cluster adds to the estimation error: its squares sum to the variance."""
    clusters: Floats
    """Clusters that have a row in the value."""

    def at(self, i: int) -> "Estimate":
        """One of the values."""
        return Estimate(*(column[i] for column in self))


def shares(right: NDArray[Any], rows: NDArray[Any]) -> Estimate:
    """Accuracies: [..., clusters] right answers and rows; clusters without a row take no part.

    Every value needs a row. However few clusters there are, they say as much as one row.
    """
    right, rows = np.broadcast_arrays(np.asarray(right, np.float64), np.asarray(rows, np.float64))
    clusters, total = (rows > 0).sum(axis=-1).astype(np.float64), rows.sum(axis=-1)
    value = right.sum(axis=-1) / total
    largest = (rows**2).sum(axis=-1) / total
    """The design effect where the rows of a cluster are all alike."""
    spread = (right - value[..., None] * rows) / total[..., None]
    spread *= np.sqrt(clusters / np.maximum(clusters - 1, 1))[..., None]
    variance = (spread**2).sum(axis=-1)
    known = np.minimum((right > 0).sum(axis=-1), (rows > right).sum(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        binomial = value * (1 - value)
        effect = np.clip(np.where(known > 0, variance * total / binomial, largest), 1.0, largest)
        effect = (known * effect + PRIOR * largest) / (known + PRIOR)
        between, within = _t(clusters - 1), _t(total - 1)
        adjusted = np.where(clusters == total, 1.0, (within / between) ** 2)
        low, high = _clopper_pearson(value, np.maximum(total / effect * adjusted, 1.0))
        reach = np.where(variance > 0, between * np.sqrt(variance) / binomial, 0.0)
        odds = np.log(value / (1 - value))
        wilson = Z**2 / (total / largest + Z**2)
        inside = known > 0
        low = np.minimum(low, np.where(inside, _logistic(odds - reach), np.where(value > 0, 1 - wilson, 0.0)))
        high = np.maximum(high, np.where(inside, _logistic(odds + reach), np.where(value > 0, 1.0, wilson)))
    return Estimate(value, np.minimum(low, value), np.maximum(high, value), spread, clusters)


def _t(freedom: Floats) -> Floats:
    """Student's t at TAIL for each number of degrees of freedom; infinite without any."""
    distinct, at = np.unique(freedom, return_inverse=True)
    found = [t_upper(TAIL, int(one)) if one >= 1 else math.inf for one in distinct.tolist()]
    made: Floats = np.array(found)[at].reshape(np.shape(freedom))
    return made


def _clopper_pearson(value: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Ends for `n` independent rows, which need not be a whole number."""
    low, high = np.zeros_like(value), np.ones_like(value)
    at = value > 0
    low[at] = beta_lower(TAIL, (value * n)[at], ((1 - value) * n)[at] + 1)
    at = value < 1
    high[at] = 1 - beta_lower(TAIL, ((1 - value) * n)[at], (value * n)[at] + 1)
    return low, high


def _logistic(x: Floats) -> Floats:
    found: Floats = np.exp(-np.logaddexp(0.0, -x))
    return found


def correlation(a: Estimate, b: Estimate, sign: float = -1.0) -> Floats:
    """Of the estimation errors of two values over the same clusters, with Newcombe's correction of what
    narrows.

    Without it (Statistics in Medicine 17, 1998, method 10) a difference that no cluster shows has no width.
    `sign`: of the product of their weights; of a difference (-1) a positive correlation is what narrows.
    """
    shared = (a.spread * b.spread).sum(axis=-1)
    size = np.sqrt((a.spread**2).sum(axis=-1) * (b.spread**2).sum(axis=-1))
    drawn = np.sign(shared) * np.maximum(np.abs(shared) - 1 / (2 * a.clusters * b.clusters), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        narrower = np.where(shared * sign < 0, drawn, shared)
        found: Floats = np.where(size > 0, np.clip(narrower / size, -1.0, 1.0), 0.0)
    return found


def combined(parts: Sequence[Estimate], weights: Sequence[float], bound: float = 1.0) -> Estimate:
    """Σ weight · part over the same clusters, its ends within ± bound."""
    value = sum((w * one.value for w, one in zip(weights, parts, strict=True)), np.zeros(()))
    below, above = np.zeros_like(value), np.zeros_like(value)
    pairs = list(zip(weights, parts, strict=True))
    down = [w * (one.value - one.low if w > 0 else one.high - one.value) for w, one in pairs]
    up = [w * (one.high - one.value if w > 0 else one.value - one.low) for w, one in pairs]
    for i, one in enumerate(parts):
        below, above = below + down[i] ** 2, above + up[i] ** 2
        for j in range(i):
            shared = 2 * correlation(one, parts[j], weights[i] * weights[j])
            below, above = below + shared * down[i] * down[j], above + shared * up[i] * up[j]
    spread = sum((w * one.spread for w, one in zip(weights, parts, strict=True)), np.zeros(()))
    clusters = np.minimum.reduce([one.clusters for one in parts])
    low = np.maximum(value - np.sqrt(np.maximum(below, 0.0)), -bound)
    high = np.minimum(value + np.sqrt(np.maximum(above, 0.0)), bound)
    return Estimate(value, np.minimum(low, value), np.maximum(high, value), spread, clusters)


def difference(a: Estimate, b: Estimate) -> Estimate:
    """a − b over the same clusters, within ± 1 (of two differences: ± 2, by `combined`)."""
    return combined((a, b), (1.0, -1.0))


def quotient(above: Estimate, below: Estimate) -> tuple[float, float, float] | None:
    """above / below of one value each: value and the ends of Fieller's set; None where that has no ends.

    The set holds every R at which the interval of above − R · below holds 0. It has ends if the interval of
    `below` lies above 0.
    """
    if below.low <= 0:
        return None
    shared = float(correlation(above, below))
    x, low, high = float(above.value), float(above.low), float(above.high)
    bottom = float(below.value), float(below.low), float(below.high)
    ends = _lower_end((x, low, high), bottom, shared), -_lower_end((-x, -high, -low), bottom, -shared)
    return x / bottom[0], min(ends[0], x / bottom[0]), max(ends[1], x / bottom[0])


def _lower_end(above: tuple[float, float, float], below: tuple[float, float, float], shared: float) -> float:
    """The smallest R at which the lower end of above − R · below is not above 0: a root of a quadratic."""
    x, low, _ = above
    y, y_low, y_high = below
    across, along = x - low, (y_high - y if low > 0 else y - y_low)
    a, b, c = y * y - along * along, x * y - shared * across * along, x * x - across * across
    root = math.sqrt(max(b * b - a * c, 0.0))
    return c / (b + root) if low > 0 else (b - root) / a


_STEPS = 60

_lgamma = np.frompyfunc(math.lgamma, 1, 1)


def beta_lower(q: float, a: Floats, b: Floats) -> Floats:
    """The q-quantiles of Beta(a, b) for a lower tail, 0 < q < 0.25, elementwise; a > 0, b >= 0.5."""
    a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    log_beta = np.asarray(_lgamma(a) + _lgamma(b) - _lgamma(a + b), np.float64)
    # Where a is small the tail is a power of x; elsewhere logit(x) is close to normal.
    power = (math.log(q) + log_beta + np.log(a)) / a
    y = np.where(a < 1, np.minimum(power, 30.0), np.log(a / b) - 1.96 * np.sqrt(1 / a + 1 / b))
    terms = _terms(a, b)
    for _ in range(_STEPS):
        # log x and log(1 − x) from logit(x), without losing digits at either end
        log_x, log_rest = -np.logaddexp(0.0, -y), -np.logaddexp(0.0, y)
        fraction = _fraction(terms, np.exp(log_x))
        log_f = a * log_x + b * log_rest - log_beta - np.log(a) + np.log(fraction)
        step = np.clip((log_f - math.log(q)) * fraction / a, -5.0 - np.abs(y), 5.0 + np.abs(y))
        y = y - step
        if np.all(np.abs(step) <= 1e-7 * (1 + np.abs(y))):  # the error left is the square of the step
            break
    return _logistic(y)


def _terms(a: Floats, b: Floats) -> Floats:
    """[terms, …]: the factors of x in the continued fraction of I_x(a, b), as many as it takes."""
    size = 24 + int(3 * math.sqrt(float((a + b).max(initial=1.0))))
    m = np.arange(size).reshape(-1, *([1] * a.ndim))
    odd = -(a + m) * (a + b + m) / ((a + 2 * m) * (a + 2 * m + 1))
    even = (m + 1) * (b - m - 1) / ((a + 2 * m + 1) * (a + 2 * m + 2))
    found: Floats = np.stack([odd, even], axis=1).reshape(2 * size, *a.shape)
    return found


def _fraction(terms: Floats, x: Floats) -> Floats:
    """The fraction of I_x(a, b) = x^a (1 − x)^b / (a B(a, b)) · fraction, from its last term on."""
    below = np.ones_like(x)
    for term in (terms * x)[::-1]:
        np.divide(term, below, out=below)
        below += 1.0
    found: Floats = 1.0 / below
    return found


@lru_cache(maxsize=4_096)
def t_upper(tail: float, df: int) -> float:
    """The value that Student's t with `df` degrees of freedom exceeds with probability `tail`, at most
    0.05."""
    # P(|t| > c) = I_x(df / 2, 1 / 2) with x = df / (df + c²)
    x = float(beta_lower(2 * tail, np.array([df / 2]), np.array([0.5]))[0])
    return math.sqrt(df * (1 - x) / x)


def clopper_pearson(k: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share of which `k` in `n` were seen; 0 to 1 where nothing was looked at."""
    low = 0.0 if k == 0 else float(beta_lower(TAIL, np.array([float(k)]), np.array([n - k + 1.0]))[0])
    high = 1.0 if k == n else 1.0 - float(beta_lower(TAIL, np.array([n - k + 0.0]), np.array([k + 1.0]))[0])
    return low, high


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
    value = float(a.value - b.value)
    low = value - math.hypot(float(a.value - a.low), float(b.high - b.value))
    high = value + math.hypot(float(a.high - a.value), float(b.value - b.low))
    return Interval(value, max(low, -1.0), min(high, 1.0), n, "mover")


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
    places = (size * q + shift * math.sqrt(size * q * (1 - q)) for q in QUANTILES for shift in shifts)
    ranks = [min(max(math.ceil(place) - 1, 0), size - 1) for place in places]
    at = np.partition(draws, sorted(set(ranks)))[ranks].reshape(len(QUANTILES), len(shifts))
    (low, high), error = at[:, 1].tolist(), float(np.abs(at - at[:, 1:2]).max())
    return Interval(value, low, high, n, "simulated", None, error)


def _from(found: Lattice, value: float, n: int, difference: bool = False) -> Interval:
    low, high = (found.quantile(q) for q in QUANTILES)
    p = min(1.0, 2 * min(found.tails())) if difference else None
    return Interval(value, low, high, n, "exact", p)
