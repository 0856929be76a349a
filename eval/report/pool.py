"""Texts as they are embedded: cut, and each once."""

from typing import NamedTuple

ROW_TEXT = 20_000
"""Characters kept of a text of a row, and of a golden answer."""


class Cut(NamedTuple):
    """A text as it is embedded."""

    text: str
    total: int
    """Its length in characters where it was cut, else 0."""


def cut(text: str, most: int) -> Cut:
    """The first `most` characters."""
    return Cut(text, 0) if len(text) <= most else Cut(text[:most], len(text))


class Pool:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self.totals: dict[str, int] = {}
        """Number → characters of a text that was cut."""

    def add(self, text: str) -> int:
        """The number of `text`."""
        shown, total = cut(text, ROW_TEXT)
        place = self.texts.setdefault(shown, len(self.texts))
        if total:
            self.totals[str(place)] = total
        return place
