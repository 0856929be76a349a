"""What the readers share while one reply is read: what they find, the registry, the work left, the flags,
bracket matching.

Every scan and every attempt to parse draws on one allowance, so that a hostile text costs a bounded time
whatever it makes the readers try.
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from robustbench_tc.schema import Call, Json, Tool

from .names import stripped_prefix

MAX_CHARS = 65_536
"""Of a longer final answer the first and the last half of this are read (flag `truncated`)."""

MAX_DEPTH = 64
"""Brackets nested deeper than this are not read."""

MAX_BITS = 13_000
"""Longer integers are refused: the interpreter writes no more than 4,300 decimal digits."""

ALLOWANCE = 9_000
"""Units of work for one text; one unit is about one bracket or string looked at (a microsecond)."""

NAME = r"(?:[^\W\d]\w*+\.)*+[^\W\d]\w*+"
"""A dotted identifier, as a regular expression without backtracking."""

TOOL_NAME = r"[^\W\d](?:[\w.-]*\w)?"
"""A tool's name as models write it: hyphens too."""

STRING = r""""[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+'"""
"""A closed quoted string."""

_TOKEN = re.compile(rf"""[\[\](){{}}]|{STRING}|["']""", re.DOTALL)
"""A bracket, a whole string, or a quote that nothing closes."""

_NUMBER_OF_CALL = re.compile(r":\d{1,4}\Z")
_FRONT_OF_ID = re.compile(r"(?:functions|call)?[._:]?")
_BEHIND_IN_ID = re.compile(r"[._:-]?[0-9a-f]*")
_UNITS_PER_SCAN = 4
_CHARS_PER_UNIT = 128
_CLOSING = {"(": ")", "[": "]", "{": "}"}

Declared = dict[str, dict[str, Json]]
"""Tool → parameter → its schema."""


class Finding(NamedTuple):
    """One call. `raw` is the text of arguments that are not an object: the call then has no parameters."""

    call: Call
    raw: str | None = None


class Found(NamedTuple):
    """Calls that one passage of the final answer writes out."""

    start: int
    end: int
    findings: tuple[Finding, ...]
    code: str
    """Of the format, a key of `formats.FORMATS`."""


class ParseContext:
    """The registry behind a reply and the work that may still be spent on it.

    `name_back` maps a name of the wire to the registry's (function-calling mode). `cut` says that the reply
    ended for its length, so that nothing may be completed. A tool that stands in the registry twice counts
    with the parameters of its first entry.
    """

    def __init__(
        self,
        source: str,
        tools: Sequence[Tool],
        name_back: Callable[[str], str] | None = None,
        *,
        cut: bool = False,
    ) -> None:
        self.source = source
        self.tools = tools
        self.cut = cut
        self.left = ALLOWANCE
        self.flags: list[str] = []
        self.name_back = name_back

    @cached_property
    def declared(self) -> Declared:
        """Tool name → its declared parameters; of several tools with one name the first."""
        return {tool.name: tool.properties for tool in reversed(self.tools)}

    def resolve(self, name: str) -> str | None:
        """The registry's tool that a written name means, or None.

        A name is taken verbatim; a wire name is mapped back; the object that formats put in front of every
        tool (`functions.`, `default_api.`) is dropped. Nothing else is repaired.
        """
        declared = self.declared
        if name in declared:
            return name
        if self.name_back is not None and (meant := self.name_back(name)) in declared:
            return meant
        rest = stripped_prefix(name)
        if rest is not None:
            return self.resolve(rest)
        return None

    def tool_of_id(self, written: str) -> str:
        """The tool that an id names as a whole, its prefix and number dropped; else the name as it stands."""
        plain = _NUMBER_OF_CALL.sub("", written.removeprefix("functions."))
        for whole in (plain, plain.removeprefix("function")):  # DeepSeek's kind of call, its separator gone
            if self.resolve(whole) is not None:
                return whole
        for name in sorted(self.declared, key=len, reverse=True):
            front, found, behind = written.partition(name)
            if found and _FRONT_OF_ID.fullmatch(front) and _BEHIND_IN_ID.fullmatch(behind):
                return name
        return plain

    def knows(self, name: str) -> bool:
        """Whether the registry has a tool of exactly this name."""
        return name in self.declared

    def written(self, name: str) -> str:
        """The name that a call gets: the registry's where there is one, else as it was written."""
        if not self.tools:
            return stripped_prefix(name, certain=True) or name
        return self.resolve(name) or name

    def parameters_of(self, name: str) -> tuple[str, ...] | None:
        """The declared parameters of the tool of that name, in order; None for an unknown name."""
        known = self.resolve(name)
        return None if known is None else tuple(self.declared[known])

    def required_of(self, name: str) -> tuple[str, ...]:
        """The parameters that the tool of that name requires; () for an unknown name."""
        known = self.resolve(name)
        return next((tool.required for tool in self.tools if tool.name == known), ())

    def schemas_of(self, name: str) -> dict[str, Json]:
        """The declared parameters with their schemas; {} for an unknown name."""
        known = self.resolve(name)
        return {} if known is None else self.declared[known]

    def may_name(self, name: str) -> bool:
        """Whether a name can be a tool's: one of the registry, or any where the registry is not at hand."""
        return not self.tools or self.resolve(name) is not None

    def flag(self, code: str) -> None:
        """Notes a flag once; flags keep the order in which they were met."""
        if code not in self.flags:
            self.flags.append(code)

    def spend(self, units: int) -> bool:
        """Takes `units` from the allowance; False when it does not reach."""
        self.left -= units
        return self.left >= 0

    def find(self, text: str, wanted: str, start: int, end: int | None = None) -> int:
        """`str.find`, paid for by the distance looked at; -1 too where the allowance is spent."""
        stop = len(text) if end is None else end
        if self.left <= 0:
            return -1
        found = text.find(wanted, start, stop)
        self.left -= 1 + ((found if found >= 0 else stop) - start) // _CHARS_PER_UNIT
        return found

    def balanced(self, text: str, start: int) -> int | None:
        """The index after the bracket that closes the one at `start`.

        None if it is never closed, is closed by another kind, holds an unclosed string, or nests too deep.
        """
        if text[start : start + 1] not in _CLOSING:
            return None
        expected: list[str] = []
        end = None
        left = self.left - _UNITS_PER_SCAN
        for found in _TOKEN.finditer(text, start):
            if left <= 0:
                break
            left -= 1
            at, behind = found.span()
            mark = text[at]
            if mark in _CLOSING:
                expected.append(_CLOSING[mark])
                if len(expected) > MAX_DEPTH:
                    break
            elif mark in ")]}":
                if expected.pop() != mark:
                    break
                if not expected:
                    end = behind
                    break
            elif behind - at == 1:  # a quote that nothing closes
                left -= (len(text) - behind) // _CHARS_PER_UNIT
                break
            else:
                left -= (behind - at - 1) // _CHARS_PER_UNIT
        else:
            left -= left > 0  # for having looked to the end
        self.left = left
        return end


def end_of(pattern: re.Pattern[str], text: str, at: int, stop: int | None = None) -> int:
    """Where that ends which a pattern matches at a place: the place itself where it matches nothing."""
    match = pattern.match(text, at, len(text) if stop is None else stop)
    return at if match is None else match.end()


_FENCE = re.compile(r"`{1,3}(?:[A-Za-z_+-]{1,20}(?=\s))?\s*+")


def unfenced(text: str) -> str:
    """The text without back-ticks around it, a language word behind the first fence included."""
    return text[end_of(_FENCE, text, 0) :].strip("`\n\r\t ")


def bare_name(text: str) -> str:
    """A name without the spaces, quotes, back-ticks and emphasis around it; nothing else is repaired."""
    return text.strip(" \t\r\n`'\"*")
