"""Where names stand beside the dots of a chart, so that they can be read."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""

HEIGHT = 13.0
"""Of a line of text in pixels."""

GAP = 7.0
"""Between a dot's centre and its name."""


class Spot(NamedTuple):
    """Where a text stands: its base line, and which of its ends is at x."""

    x: float
    y: float
    anchor: str


def beside(dots: Sequence[tuple[float, float]], widths: Sequence[float], inside: Box) -> list[Spot | None]:
    """A place for each dot's name, in their order; None where every side of it is taken."""
    taken: list[Box] = [(x - 4, y - 4, x + 4, y + 4) for x, y in dots]
    found: list[Spot | None] = []
    for number, ((x, y), width) in enumerate(zip(dots, widths, strict=True)):
        for spot, box in _sides(x, y, width):
            others = (other for i, other in enumerate(taken) if i != number)
            if _within(box, inside) and not any(_overlap(box, other) for other in others):
                taken.append(box)
                found.append(spot)
                break
        else:
            found.append(None)
    return found


def _sides(x: float, y: float, width: float) -> Iterator[tuple[Spot, Box]]:
    for down in (4.0, -GAP, GAP + 9):  # right and left of it, then above and below
        top = y + down - HEIGHT + 3
        if down == 4.0:
            yield Spot(x + GAP, y + down, "start"), (x + GAP, top, x + GAP + width, top + HEIGHT)
            yield Spot(x - GAP, y + down, "end"), (x - GAP - width, top, x - GAP, top + HEIGHT)
        else:
            yield Spot(x, y + down, "middle"), (x - width / 2, top, x + width / 2, top + HEIGHT)


def _within(box: Box, outer: Box) -> bool:
    return box[0] >= outer[0] and box[1] >= outer[1] and box[2] <= outer[2] and box[3] <= outer[3]


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
