"""95 % percentile-bootstrap intervals: exact where the distribution is known, else simulated."""

import math
from functools import lru_cache
from typing import Literal

import msgspec
import numpy as np

from robustbench_tc import seeding

from .lattice import (
    Floats,
    Ints,
    Lattice,
    Ratio,
    binomial,
    difference_quantiles,
    ratio_of_draws,
    sum_of_draws,
)

QUANTILES = (0.025, 0.975)

GRID = 1 << 21
"""Points of the largest joint distribution that is worked out exactly (16 MB); beyond it we simulate."""

DRAWS = 50_000
"""Resamples of a simulation; fewer where there are many clusters (`Resampling`)."""


class Interval(msgspec.Struct, frozen=True):
    """A value with the interval that its bootstrap gives, and how that was had."""

    value: float
    low: float
    high: float
    n: int
    """Rows that the value rests on."""
    method: Literal["exact", "simulated"] = "exact"
    p: float | None = None
    """Two-sided bootstrap p-value of "the value is 0"; null where the value is not a difference."""
    error: float = 0.0
    """Simulated: how far an end may be off, at 99 % confidence."""

    @property
    def half_width(self) -> float:
        """Half of the interval's width: what the paper prints after ±."""
        return (self.high - self.low) / 2


def accuracy(correct: int, n: int) -> Interval:
    """Accuracy of n independent 0/1 outcomes."""
    return _from(binomial(n, correct), correct / n, n)


def independent_difference(a: tuple[int, int], b: tuple[int, int]) -> Interval:
    """Accuracy of a minus accuracy of b, each (correct, n), resampled independently: the paper's Δ."""
    first, second = binomial(a[1], a[0]), binomial(b[1], b[0])
    low, high = difference_quantiles(first, second, QUANTILES)
    return Interval(a[0] / a[1] - b[0] / b[1], low, high, a[1] + b[1])


def paired_difference(only_a: int, only_b: int, n: int) -> Interval:
    """Accuracy of a minus accuracy of b over n pairs, of which `only_a` and `only_b` are right on one side.

    Resampling pairs is a multinomial over (only a, only b, equal).
    """
    values = np.repeat(np.array([1, -1, 0]), [only_a, only_b, n - only_a - only_b])
    return _from(sum_of_draws(values, n, n), (only_a - only_b) / n, n, difference=True)


def cluster_mean(total: Ints, rows: Ints, *, difference: bool = False) -> Interval:
    """Σ total / Σ rows with whole clusters resampled; entry i is one cluster's sum and its number of rows.

    Clusters without a row take no part. Exact where every cluster has as many rows, and where the joint
    distribution of both sums is small enough to be worked out; else simulated.
    """
    used = rows > 0
    total, rows = total[used], rows[used]
    n, value = int(rows.sum()), float(total.sum() / rows.sum())
    clusters = len(rows)
    if (rows == rows[0]).all():
        return _from(sum_of_draws(total, clusters, n), value, n, difference)
    found = ratio_of_draws(total, rows, clusters, GRID)
    if found is not None:
        return _from(found, value, n, difference)
    above, below = resampling(clusters).sums(np.stack([total, rows], axis=1))
    return simulated(above / below, value, n, difference=difference)


def simulated(draws: Floats, value: float, n: int, *, difference: bool = False) -> Interval:
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
    p = None
    if difference:
        below, above = int((draws <= 0).sum()), int((draws >= 0).sum())
        p = min(1.0, 2 * (min(below, above) + 1) / (size + 1))  # never 0: a simulation cannot know that
    return Interval(value, low, high, n, "simulated", p, error)


def _rank(size: int, q: float, shift: float) -> int:
    at = math.ceil(size * q + shift * math.sqrt(size * q * (1 - q))) - 1
    return min(max(at, 0), size - 1)


class Resampling:
    """Seeded resamples of K clusters, drawn once and used for every statistic, so that all stay paired."""

    def __init__(self, clusters: int, *, seed: int = 0, draws: int | None = None) -> None:
        self.clusters = clusters
        self.draws = draws or max(2_000, min(DRAWS, 20_000_000 // clusters))
        generator = np.random.default_rng(seeding.rng(seed, "cluster bootstrap").getrandbits(128))
        self._times = np.empty((clusters, self.draws), np.float32)
        """How often each cluster was drawn."""
        block = max(1, 2_000_000 // clusters)
        for start in range(0, self.draws, block):
            rows = min(block, self.draws - start)
            drawn = generator.integers(clusters, size=(rows, clusters), dtype=np.int32)
            drawn += np.arange(rows, dtype=np.int32)[:, None] * clusters
            counted = np.bincount(drawn.ravel(), minlength=rows * clusters)
            self._times[:, start : start + rows] = counted.reshape(rows, clusters).T

    def sums(self, columns: Ints | Floats) -> Floats:
        """[M, draws]: each column of [K, M] summed over the clusters of each resample."""
        # Single precision is exact here: sums of small whole numbers stay far below 2**24.
        return (columns.T.astype(np.float32) @ self._times).astype(np.float64)


@lru_cache(maxsize=2)
def resampling(clusters: int) -> Resampling:
    """The resamples of seed 0, kept: a report asks for the same ones for every model."""
    return Resampling(clusters)


def _from(found: Lattice | Ratio, value: float, n: int, difference: bool = False) -> Interval:
    low, high = (found.quantile(q) for q in QUANTILES)
    p = min(1.0, 2 * min(found.tails())) if difference else None
    return Interval(value, low, high, n, "exact", p)
