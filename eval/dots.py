"""Which dots of a crowded chart are drawn: of those that would cover each other, the first."""

from collections.abc import Collection, Sequence

CELL = 6.0
"""Pixels within which two dots cover each other."""


def thinned(
    places: Sequence[tuple[float, float]], size: tuple[int, int], keep: Collection[int], at_most: int
) -> list[int]:
    """The indices of at most `at_most` dots, those of `keep` last, so that they lie on top.

    `places`: shares of the width and the height. Where too many are left, cells grow until they fit; of
    `keep` the first are taken.
    """
    front = list(keep)[:at_most]
    kept, cell = set(keep), CELL
    while True:
        taken: dict[tuple[int, int], int] = {}
        for i, (across, up) in enumerate(places):
            if i not in kept:
                taken.setdefault((int(across * size[0] / cell), int(up * size[1] / cell)), i)
        if len(taken) + len(front) <= at_most:
            return [*taken.values(), *front]
        if cell > max(size):
            return front
        cell *= 1.25
