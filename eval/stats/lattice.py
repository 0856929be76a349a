"""Exact distributions of resampled sums: what a bootstrap over finitely many draws can give, without drawing.

A bootstrap of n 0/1 outcomes resamples their sum; that sum is Binomial(n, p̂). Paired differences and sums
over clusters are n draws of a small integer, so their distribution is the n-th power of the one-draw
distribution's Fourier transform. Quantiles follow the inverse of the distribution function: the smallest
value whose probability of not being exceeded reaches q.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TOLERANCE = 1e-8
"""What cutting and rounding may do to a sum of probabilities; this close to q counts as having reached it."""

UNLIKELY = 1e-14
"""Values of a smaller probability are in no difference."""


class Lattice(NamedTuple):
    """A distribution on the values (start + i) / unit, i = 0, 1, …"""

    start: int
    p: Floats
    unit: int

    def quantile(self, q: float) -> float:
        """The smallest value whose distribution function reaches q."""
        found = int(np.searchsorted(np.cumsum(self.p), q - TOLERANCE))
        return (self.start + min(found, len(self.p) - 1)) / self.unit

    def tails(self) -> tuple[float, float]:
        """P(value ≤ 0) and P(value ≥ 0)."""
        zero = -self.start
        below = float(self.p[: max(zero + 1, 0)].sum())
        above = float(self.p[max(zero, 0) :].sum())
        return min(below, 1.0), min(above, 1.0)


def binomial(n: int, correct: int) -> Lattice:
    """The resampled accuracy of n outcomes of which `correct` are right."""
    return Lattice(0, binomial_pmf(n, correct / n), n)


def binomial_pmf(n: int, p: float) -> Floats:
    """P(k) for k = 0 … n."""
    if p <= 0.0 or p >= 1.0:
        sure = np.zeros(n + 1)
        sure[n if p >= 1.0 else 0] = 1.0
        return sure
    k = np.arange(n + 1)
    factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1)))))
    choose = factorial[n] - factorial - factorial[::-1]
    log_p: Floats = choose + k * math.log(p) + (n - k) * math.log1p(-p)
    return np.exp(log_p)


def sum_of_draws(values: Ints, draws: int, unit: int) -> Lattice:
    """The sum of `draws` draws with replacement from `values`, divided by `unit`."""
    low, high = draws * int(values.min()), draws * int(values.max())
    size = 1 << max(high - low, 1).bit_length()  # a power of 2 is quick to transform
    one = np.bincount(values % size, minlength=size) / len(values)
    p = np.maximum(np.roll(np.fft.irfft(np.fft.rfft(one) ** draws, n=size), -low), 0.0)
    return Lattice(low, p / p.sum(), unit)


def difference_quantiles(a: Lattice, b: Lattice, qs: tuple[float, ...]) -> tuple[float, ...]:
    """Quantiles of a − b, a and b independent, from every two values that are likely at all."""
    unit = math.lcm(a.unit, b.unit)
    likely = [np.flatnonzero(one.p > UNLIKELY) for one in (a, b)]
    first, second = ((one.start + at) * (unit // one.unit) for one, at in zip((a, b), likely, strict=True))
    values = np.subtract.outer(first, second).ravel()
    order = np.argsort(values)
    below = np.cumsum(np.outer(a.p[likely[0]], b.p[likely[1]]).ravel()[order])
    found = np.searchsorted(below, np.array(qs) - TOLERANCE)
    return tuple((values[order[np.minimum(found, len(order) - 1)]] / unit).tolist())


def sign_flips(values: Ints) -> Lattice:
    """Σ ±v over fair independent signs: the null distribution of a paired test. Not divided (unit 1)."""
    p = np.ones(1)
    reach = 0
    sizes, counts = np.unique(np.abs(values[values != 0]), return_counts=True)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        spread = np.zeros(2 * size * count + 1)
        spread[:: 2 * size] = binomial_pmf(count, 0.5)
        p = np.convolve(p, spread)
        reach += size * count
    return Lattice(-reach, p, 1)
