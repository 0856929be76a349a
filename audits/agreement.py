"""Statistics of an audit: the Wilson interval of a share, quadratic-weighted kappa of two judges."""

import math
from collections.abc import Sequence

Z95 = 1.959963984540054
"""The 97.5 % point of the normal distribution."""


def wilson_upper(bad: int, n: int) -> float:
    """Upper end of the 95 % Wilson score interval of `bad` in `n` (n at least 1)."""
    share, square = bad / n, Z95 * Z95
    centre = share + square / (2 * n)
    spread = Z95 * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    return min(1.0, (centre + spread) / (1 + square / n))


def quadratic_kappa(left: Sequence[int], right: Sequence[int]) -> float | None:
    """Cohen's kappa with squared distances as weights; None where every score of both is the same one.

    One minus the mean squared difference over the one that is expected of independent judges with the same
    distributions of scores.
    """
    n = len(left)
    observed = sum((a - b) ** 2 for a, b in zip(left, right, strict=True)) / n
    expected = sum((a - b) ** 2 for a in left for b in right) / (n * n)
    return None if expected == 0 else 1 - observed / expected
