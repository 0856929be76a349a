"""Exact intervals of a share of rows that are independent: Clopper and Pearson's (Biometrika 26, 1934).

Where rows of one sample belong together, the intervals of `confidence` are the right ones.
"""

import numpy as np

from .confidence import TAIL
from .quantiles import beta_lower


def clopper_pearson(k: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share of which `k` in `n` were seen; 0 to 1 where nothing was looked at."""
    low = 0.0 if k == 0 else float(beta_lower(TAIL, np.array([float(k)]), np.array([n - k + 1.0]))[0])
    high = 1.0 if k == n else 1.0 - float(beta_lower(TAIL, np.array([n - k + 0.0]), np.array([k + 1.0]))[0])
    return low, high
