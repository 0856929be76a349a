"""Values of many models: what is usual of one, how far they lie apart, and whether two rank them alike."""

import math
from typing import NamedTuple

import numpy as np

from .lattice import Floats


class Across(NamedTuple):
    """Of the models that have the value; None without any."""

    median: float | None
    least: float | None
    most: float | None
    models: int


def across(values: Floats) -> Across:
    """The median and both ends; `values`: of the models that have one."""
    if not len(values):
        return Across(None, None, None, 0)
    return Across(float(np.median(values)), float(values.min()), float(values.max()), len(values))


def rank_correlation(x: Floats, y: Floats) -> float | None:
    """Spearman's ρ of two values of the same models, ties at their mean rank; None where one never varies."""
    ranks = []
    for values in (x, y):
        distinct, place, times = np.unique(values, return_inverse=True, return_counts=True)
        if len(distinct) < 2:
            return None
        ranks.append((np.cumsum(times) - (times - 1) / 2)[place] - (len(values) + 1) / 2)
    a, b = ranks
    return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))
