"""The short way for the usual B1 text: `[f(a=1, b="x")]` read with a handful of regular expressions.

It reads a subset of what the general way (`python_values`) reads, with the same result, several times as
fast, and gives up with None on anything else: escapes, expressions, prefixes, other spellings of numbers.
"""

import keyword
import re

from robustbench_tc.schema import Call, Json

_GAP = r"[ \t\n]*+"
_WORD = r"[A-Za-z_][A-Za-z0-9_]*+"
_SCALAR = (
    r'(?:"([^"\\\n\r\0]*+)"'
    r"|'([^'\\\n\r\0]*+)'"
    r"|(-?(?:0|[1-9][0-9]{0,17}+))(?![\w.])"
    r"|(-?(?:0|[1-9][0-9]{0,17}+)\.[0-9]{1,32}+)(?![\w.])"
    r"|(True|False|None|true|false|null)(?!\w))"
)
_HEAD = re.compile(_GAP + rf"({_WORD}(?:\.{_WORD})*+)\({_GAP}")
_ARGUMENT = re.compile(rf"({_WORD}){_GAP}={_GAP}{_SCALAR}{_GAP}([,)]){_GAP}")
_KEY = re.compile(rf"({_WORD}){_GAP}={_GAP}(?=[\[{{])")
_AFTER_VALUE = re.compile(rf"{_GAP}([,)]){_GAP}")
_AFTER_CALL = re.compile(rf"{_GAP}(,?){_GAP}")
_ITEM = re.compile(rf"{_GAP}{_SCALAR}")
_PAIR = re.compile(rf"{_GAP}(?:\"([^\"\\\n\r\0]*+)\"|'([^'\\\n\r\0]*+)'){_GAP}:{_GAP}")
_NEXT = re.compile(rf"{_GAP}([,\]}}]){_GAP}")
_OPEN = re.compile(rf"[\[{{]{_GAP}")

_WORDS: dict[str, Json] = {
    "True": True,
    "False": False,
    "None": None,
    "true": True,
    "false": False,
    "null": None,
}
_KEYWORDS = frozenset(keyword.kwlist)
_MAX_DEPTH = 8
_MAX_CHARS = 16_384


class _NotSimple(Exception):
    pass


def calls(body: str) -> list[Call] | None:
    """The calls of a short text that is nothing but simple calls, brackets around them or not; else None."""
    size = len(body)
    if size > _MAX_CHARS:
        return None
    in_brackets = body.startswith("[")
    position = 1 if in_brackets else 0
    found: list[Call] = []
    while True:
        head = _HEAD.match(body, position)
        if head is None:
            return None
        name = head[1]
        if not _KEYWORDS.isdisjoint(name.split(".") if "." in name else (name,)):
            return None
        position = head.end()
        parameters: dict[str, Json] = {}
        while body[position : position + 1] != ")":
            argument = _ARGUMENT.match(body, position)
            if argument is not None:
                key, double, single, integer, real, word, sign = argument.groups()
                if double is not None:
                    parameters[key] = double
                elif single is not None:
                    parameters[key] = single
                elif integer is not None:
                    parameters[key] = int(integer)
                elif real is not None:
                    parameters[key] = float(real)
                else:
                    parameters[key] = _WORDS[word]
                position = argument.end()
            else:
                opened = _KEY.match(body, position)
                if opened is None:
                    return None
                key = opened[1]
                try:
                    parameters[key], position = _container(body, opened.end(), 0)
                except _NotSimple:
                    return None
                after = _AFTER_VALUE.match(body, position)
                if after is None:
                    return None
                sign = after[1]
                position = after.end()
            if key in _KEYWORDS:
                return None
            if sign == ")":
                break
        else:
            position += 1
        found.append(Call(name, parameters))
        between = _AFTER_CALL.match(body, position)
        position = between.end() if between else position
        rest = size - position
        if between and between[1] and rest > in_brackets:
            continue
        if rest == 0 or (rest == 1 and in_brackets and body[position] == "]"):
            return found
        return None


def _container(body: str, position: int, depth: int) -> tuple[Json, int]:
    """The list or dictionary that opens at `position`, and the position behind it. Raises _NotSimple."""
    if depth == _MAX_DEPTH:
        raise _NotSimple
    opened = _OPEN.match(body, position)
    if opened is None:
        raise _NotSimple
    is_list = body[position] == "["
    closing = "]" if is_list else "}"
    items: list[Json] = []
    pairs: dict[str, Json] = {}
    position = opened.end()
    while body[position : position + 1] != closing:
        key = ""
        if not is_list:
            pair = _PAIR.match(body, position)
            if pair is None:
                raise _NotSimple
            key = pair[1] if pair[1] is not None else pair[2]
            position = pair.end()
        if item := _ITEM.match(body, position):
            double, single, integer, real, word = item.groups()
            found: Json
            if double is not None:
                found = double
            elif single is not None:
                found = single
            elif integer is not None:
                found = int(integer)
            elif real is not None:
                found = float(real)
            else:
                found = _WORDS[word]
            position = item.end()
        else:
            found, position = _container(body, position, depth + 1)
        if is_list:
            items.append(found)
        else:
            pairs[key] = found
        after = _NEXT.match(body, position)
        if after is None:
            raise _NotSimple
        if after[1] == closing:
            position = after.start(1)
            break
        if after[1] != ",":
            raise _NotSimple
        position = after.end()
    return (items if is_list else pairs), position + 1
