"""The short way for the usual B1 text: `[f(a=1, b="x")]` read with a handful of regular expressions.

It reads a subset of what the general way (`python_values`) reads, with the same result, several times as
fast, and gives up with None on anything else: escapes, expressions, prefixes, other spellings of numbers.
"""

import keyword
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from robustbench_tc.schema import Call, Json

from .context import end_of
from .lenient import WORDS

_GAP = r"[ \t\n]*+"
_WORD = r"[A-Za-z_][A-Za-z0-9_]*+"
_TEXT = r"""("[^"\\\n\r\0]*+"|'[^'\\\n\r\0]*+')"""
_SCALAR = (
    rf"(?:{_TEXT}"
    r"|(-?(?:0|[1-9][0-9]{0,17}+))(?![\w.])"
    r"|(-?(?:0|[1-9][0-9]{0,17}+)\.[0-9]{1,32}+)(?![\w.])"
    r"|(True|False|None|true|false|null)(?!\w))"
)
_HEAD = re.compile(_GAP + rf"({_WORD}(?:\.{_WORD})*+)(?=\()")
_BETWEEN = re.compile(rf"{_GAP}(,?){_GAP}")
_SPACE = re.compile(_GAP)

_TEXTS = 2
_READ: dict[int, Callable[[str], Any]] = {3: int, 4: float, 5: WORDS.__getitem__}
"""By group of a member's pattern; the first is the key's, the second is a text in quotes."""

_KEYWORDS = frozenset(keyword.kwlist)
_MAX_DEPTH = 8
_MAX_CHARS = 16_384


class _NotSimple(Exception):
    pass


class _Brackets(NamedTuple):
    """How members stand between brackets of a kind."""

    closing: str
    simple: re.Pattern[str]
    """A member that is a scalar, with its key."""
    key: re.Pattern[str]
    """What stands in front of any other."""


def _brackets(closing: str, key: str) -> _Brackets:
    simple = rf"{_GAP}{key}{_SCALAR}{_GAP}"
    return _Brackets(closing, re.compile(simple), re.compile(rf"{_GAP}{key}(?=[\[{{])"))


_KINDS = {
    "(": _brackets(")", rf"({_WORD}){_GAP}={_GAP}"),
    "[": _brackets("]", "()"),
    "{": _brackets("}", rf"{_TEXT}{_GAP}:{_GAP}"),
}


def calls(body: str) -> list[Call] | None:
    """The calls of a short text that is nothing but simple calls, brackets around them or not; else None."""
    size = len(body)
    if size > _MAX_CHARS:
        return None
    in_brackets = body.startswith("[")
    position = 1 if in_brackets else 0
    found: list[Call] = []
    while head := _HEAD.match(body, position):
        name = head[1]
        try:
            members, position = _members(body, head.end(), 0)
        except _NotSimple:
            return None
        parameters = dict(members)
        if not _KEYWORDS.isdisjoint((*name.split("."), *parameters)):
            return None
        found.append(Call(name, parameters))
        between = _BETWEEN.match(body, position)
        position = between.end() if between else position
        rest = size - position
        if between and between[1] and rest > in_brackets:
            continue
        if rest == 0 or (rest == 1 and in_brackets and body[position] == "]"):
            return found
        return None
    return None


def _members(body: str, position: int, depth: int) -> tuple[list[tuple[str, Json]], int]:
    """Keys and values in the brackets that open at `position`, and the position behind them; a list's keys are
    empty. Raises _NotSimple."""
    closing, simple, key = _KINDS[body[position]]
    found: list[tuple[str, Json]] = []
    position += 1
    while True:
        if match := simple.match(body, position):
            number = match.lastindex or 0
            text = match[number]
            found.append((match[1], text[1:-1] if number == _TEXTS else _READ[number](text)))
            position = match.end()
        elif match := key.match(body, position):
            value, position = _container(body, match.end(), depth)
            found.append((match[1], value))
            position = end_of(_SPACE, body, position)
        else:
            position = end_of(_SPACE, body, position)
            if not body.startswith(closing, position):
                raise _NotSimple
        sign = body[position : position + 1]
        position += 1
        if sign == closing:
            return found, position
        if sign != ",":
            raise _NotSimple


def _container(body: str, position: int, depth: int) -> tuple[Json, int]:
    """The list or dictionary that opens at `position`, and the position behind it. Raises _NotSimple."""
    if depth == _MAX_DEPTH:
        raise _NotSimple
    members, end = _members(body, position, depth + 1)
    if body[position] == "[":
        return [value for _, value in members], end
    return {key[1:-1]: value for key, value in members}, end
