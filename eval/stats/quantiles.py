"""Quantiles of Beta and Student's t without scipy: what the intervals of shares are made of.

The regularised incomplete beta function is its continued fraction (Abramowitz and Stegun 26.5.8); it is
inverted by Newton's method on its logarithm over logit(x), where the lower tail is close to a line. Off by
at most 1e-9 of the value (a test holds it to scipy).
"""

import math
from functools import lru_cache

import numpy as np

from .lattice import Floats

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
    found: Floats = np.exp(-np.logaddexp(0.0, -y))
    return found


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
