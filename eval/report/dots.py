"""Which dots of a crowded chart are drawn: of those that would cover each other, the first."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CELL = 6.0
"""Pixels within which two dots cover each other."""


def thinned(
    places: Sequence[tuple[float, float]] | NDArray[np.float64],
    size: tuple[int, int],
    keep: Sequence[int],
    at_most: int,
) -> list[int]:
    """The indices of at most `at_most` dots, those of `keep` last, so that they lie on top.

    `places`: shares of the width and the height. Where too many are left, cells grow until they fit; of
    `keep` the first are taken.
    """
    front = list(keep)[:at_most]
    others = np.setdiff1d(np.arange(len(places)), np.array(keep, np.int64))
    pixels = np.asarray(places, np.float64).reshape(-1, 2)[others] * size
    cell = CELL
    while len(others):
        cells = (pixels // cell).astype(np.int64)
        _, first = np.unique(cells[:, 0] * 100_000 + cells[:, 1], return_index=True)
        if len(first) + len(front) <= at_most:
            return [*others[np.sort(first)].tolist(), *front]
        if cell > max(size):
            break
        cell *= 1.25
    return front
