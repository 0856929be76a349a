"""Texts that share much, each once: one that resembles another is kept as what differs from it."""

from typing import NamedTuple

from robustbench_tc.schema import Json

ROW_TEXT = 20_000
"""Characters kept of a text of a row, and of a golden answer."""


class Cut(NamedTuple):
    """A text as it is embedded."""

    text: str
    total: int
    """Its length in characters where it was cut, else 0."""


def cut(text: object, most: int) -> Cut:
    """The first `most` characters."""
    text = "" if text is None else str(text)  # a file may hold anything
    return Cut(text, 0) if len(text) <= most else Cut(text[:most], len(text))


class Pool:
    """Texts by number, each once; one that resembles another is what differs from it."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self.entries: list[Json] = []
        """Texts, or (number of the other, units kept at its start, units kept at its end, what is between).
        Units are those of JavaScript: UTF-16."""
        self.totals: dict[str, int] = {}
        """Number → characters of a text that was cut."""

    def add(self, text: str, near: str | None = None) -> int:
        """The number of `text`; `near` is a text that it may resemble."""
        shown, total = cut(text, ROW_TEXT)
        place = self._places.get(shown)
        if place is None:
            before = cut(near, ROW_TEXT).text
            base = self._places.get(before)
            place = self._places[shown] = len(self.entries)
            self.entries.append(shown if base is None else self._against(base, before, shown))
        if total:
            self.totals[str(place)] = total
        return place

    @staticmethod
    def _against(base: int, before: str, after: str) -> Json:
        start = _common(before, after)
        end = _common(before[start:][::-1], after[start:][::-1])
        if start + end < 40:
            return after
        middle = after[start : len(after) - end]
        return [base, _units(before[:start]), _units(before[len(before) - end :]), middle]


def _common(a: str, b: str) -> int:
    """Length of the common start."""
    low, high = 0, min(len(a), len(b))
    while low < high:  # by halves: comparing slices is quick
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
