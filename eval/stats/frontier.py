"""The efficient frontier: what no other is as good as in one respect and better than in the other."""

from collections.abc import Sequence
from typing import Literal

Sign = Literal[1, -1]
"""1: more is better; −1: less is."""


def efficient(points: Sequence[tuple[float, float]], x: Sign, y: Sign) -> list[int]:
    """The indices of the points that no other one dominates, from the best in x on. Equal points all stay."""
    order = sorted(range(len(points)), key=lambda i: (-x * points[i][0], -y * points[i][1], i))
    found: list[int] = []
    for i in order:
        best = points[found[-1]] if found else None
        if best is None or y * points[i][1] > y * best[1] or points[i] == best:
            found.append(i)
    return found


def outline(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The edge of what a frontier's points dominate, as a line of steps. `points`: as `efficient` orders
    them."""
    line = list(points[:1])
    for x, y in points[1:]:
        line += [(x, line[-1][1]), (x, y)]
    return line
