"""One value of many models: what is usual, and how far they lie apart."""

from collections.abc import Iterable
from statistics import median
from typing import NamedTuple


class Across(NamedTuple):
    """Of the models that have the value; None without any."""

    median: float | None
    least: float | None
    most: float | None
    models: int


def across(values: Iterable[float | None]) -> Across:
    """The median and both ends of what is known."""
    found = [one for one in values if one is not None]
    if not found:
        return Across(None, None, None, 0)
    return Across(median(found), min(found), max(found), len(found))
