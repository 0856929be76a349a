"""The efficient frontier: what no other is as good as in one respect and better than in the other."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from .lattice import Floats

Sign = Literal[1, -1]
"""1: more is better; −1: less is."""


def efficient(points: Sequence[tuple[float, float]] | Floats, x: Sign, y: Sign) -> list[int]:
    """The indices of the points that no other one dominates, from the best in x on. Equal points all stay."""
    found = np.asarray(points, np.float64).reshape(-1, 2)
    across, up = -x * found[:, 0], -y * found[:, 1]  # less is better in both
    order = np.lexsort((up, across))
    across, up = across[order], up[order]
    best_before = np.minimum.accumulate(np.concatenate(([np.inf], up)))[:-1]
    first = np.ones(len(order), np.bool_)  # of the points that are equal, which stand together
    first[1:] = (across[1:] != across[:-1]) | (up[1:] != up[:-1])
    first_of = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    kept: list[int] = order[(up < best_before)[first_of]].tolist()
    return kept
