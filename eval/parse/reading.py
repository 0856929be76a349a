"""One reading of one text: the tools it may mean, the work left, the flags raised, and bracket matching.

Every scan and every attempt to parse draws on one allowance, so that a hostile text costs a bounded time
whatever it makes the variants try.
"""

import re
from collections.abc import Generator, Sequence

from robustbench_tc.schema import Tool

MAX_CHARS = 65_536
"""Longer texts are read up to here (flag `truncated`)."""

MAX_DEPTH = 64
"""Brackets nested deeper than this are not read."""

MAX_BITS = 13_000
"""Longer integers are refused: the interpreter writes no more than 4,300 decimal digits."""

ALLOWANCE = 12_000
"""Units of work for one text; one unit is about one bracket or string looked at (a microsecond)."""

NAME = r"(?:[^\W\d]\w*+\.)*+[^\W\d]\w*+"
"""A dotted identifier, as a regular expression without backtracking."""

STRING = r""""[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+'"""
"""A closed quoted string."""

_MARK = re.compile(r"""[\[\](){}"']""")
_STRING = re.compile(STRING, re.DOTALL)
_UNITS_PER_SCAN = 4
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Reading:
    """What the variants share while one text is read."""

    __slots__ = ("_order", "flags", "left", "source", "tools")

    def __init__(self, source: str, tools: Sequence[Tool]) -> None:
        self.source = source
        self.tools = tools
        self.left = ALLOWANCE
        self.flags: list[str] = []
        self._order: dict[str, tuple[str, ...]] | None = None

    def parameters_of(self, name: str) -> tuple[str, ...] | None:
        """The declared parameters of the first tool of that name, in order; None for an unknown name."""
        if self._order is None:
            self._order = {}
            for tool in self.tools:
                self._order.setdefault(tool.name, tuple(tool.properties))
        return self._order.get(name)

    def flag(self, code: str) -> None:
        if code not in self.flags:
            self.flags.append(code)

    def spend(self, units: int) -> bool:
        """Takes `units` from the allowance; False when it does not reach."""
        self.left -= units
        return self.left >= 0

    def balanced(self, text: str, start: int) -> int | None:
        """The index after the bracket that closes the one at `start`.

        None if it is never closed, is closed by another kind, holds an unclosed string, or nests too deep.
        """
        if text[start : start + 1] not in _CLOSING:
            return None
        expected: list[str] = []
        position = start
        end = None
        left = self.left - _UNITS_PER_SCAN
        while left > 0:
            left -= 1
            found = _MARK.search(text, position)
            if found is None:
                break
            position = found.end()
            mark = text[position - 1]
            if mark in _CLOSING:
                expected.append(_CLOSING[mark])
                if len(expected) > MAX_DEPTH:
                    break
            elif mark in ")]}":
                if expected.pop() != mark:
                    break
                if not expected:
                    end = position
                    break
            else:
                string = _STRING.match(text, position - 1)
                if string is None:  # a quote that nothing closes
                    break
                position = string.end()
        self.left = left
        return end

    def braces(self, text: str, start: int = 0) -> Generator[tuple[int, int], bool, None]:
        """The outermost balanced `{…}` spans from `start` on.

        Send True to have the spans inside the one just yielded, False to go on behind it.
        """
        position = text.find("{", start)
        while position >= 0 and self.left > 0:
            end = self.balanced(text, position)
            if end is None:
                position = text.find("{", position + 1)
                continue
            inside = yield position, end
            position = text.find("{", position + 1 if inside else end)


_FENCE = re.compile(r"`{1,3}(?:[A-Za-z_+-]{1,20}(?=\s))?\s*+")


def unfenced(text: str) -> str:
    """The text without back-ticks around it, a language word behind the first fence included."""
    if text.startswith("`") and (fence := _FENCE.match(text)):
        text = text[fence.end() :]
    return text.strip("`\n\r\t ")


def bare_name(text: str) -> str:
    """A name without the spaces, quotes, back-ticks and emphasis around it; nothing else is repaired."""
    return text.strip(" \t\r\n`'\"*")
