"""One value of many models: what is usual, and how far they lie apart."""

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
