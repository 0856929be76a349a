"""Variants T1, T3 and N1: calls written as plain lines without Python or call tags."""

import re
from urllib.parse import unquote

from robustbench_tc.schema import Call, Json

from .context import Finding, Found, ParseContext, bare_name
from .json_values import object_at
from .payload import named_at

_COLON = re.compile(
    r"(?m)^[ \t`*\"'>•\d.)-]{0,8}([^\s:{}`*\"'>]{1,128})[`*\"']{0,4}[ \t]{0,8}(?::|：|=>|->|→)\s{0,8}"
    r"(?:`{1,3}(?:json)?\s{0,4})?(?=\{)"
)
_NAME_BEFORE = re.compile(
    r"(?<![\w./:-])(?<!declaration:)(?:call:)?(?:[^\W\d][\w.-]{0,127}:)?[^\W\d][\w.-]{0,127}`{0,3}(?::\d{1,4})?(?:\[ARGS\])?"
    r"(?:[ ]?|[ \t]*\n\s{0,8}(?:```(?:json)?\s{0,8})?|\s?```(?:json)?\s{1,8})(?=\{)"
)
_QUERY = re.compile(r"(?<![\w./:?&=%-])([^\W\d][\w.-]{0,127}+)\?([\w.%-]++=[^\s`]*+)")
_IN_TICKS = re.compile(r"`([^\W\d][\w.-]{0,127}+)\?([\w.%-]++=[^`\n]*+)`")
_MAX_PAIRS = 256
_UNITS_PER_QUERY = 10
_UNITS_PER_OBJECT = 2


def name_colon_object(text: str, context: ParseContext) -> list[Found]:
    """T1: `name: {…}`, in prose only for names of the registry."""
    found: list[Found] = []
    position = 0
    while match := _COLON.search(text, position):
        position = match.end()
        if not context.spend(_UNITS_PER_OBJECT):
            break
        name = bare_name(match[1])
        if name.lower() in _NOT_NAMES and context.resolve(name) is None:
            continue
        read_object = object_at(text, position, context)
        if read_object is None:
            continue
        parameters, position = read_object
        found.append(Found(match.start(1), position, (Finding(Call(name, parameters)),), "T1"))
    return _trusted(found, text, context)


_NOT_NAMES = frozenset(
    "json arguments parameters args params input output result response answer example note request call "
    "function tool action".split()
)
"""Labels in front of an object that name no tool unless the registry says so."""


def name_before_object(text: str, context: ParseContext) -> list[Found]:
    """N1: `f{…}`, the form that native formats leave without their tokens, for names of the registry."""
    found: list[Found] = []
    position = 0
    while (match := _NAME_BEFORE.search(text, position)) and context.spend(_UNITS_PER_OBJECT):
        position = match.end()
        read = named_at(text, match.start(), context)
        if read is None or read[0][0].raw is not None or context.resolve(read[0][0].call.name) is None:
            continue
        found.append(Found(match.start(), read[1], tuple(read[0]), "N1"))
        position = read[1]
    return found


def query_string(text: str, context: ParseContext) -> list[Found]:
    """T3: `name?key=value&…`; values stay text, percent-decoded; a sentence behind it ends the value."""
    if "?" not in text:
        return []
    pattern = _IN_TICKS if "`" in text and _IN_TICKS.search(text) else _QUERY
    found: list[Found] = []
    for match in pattern.finditer(text):
        if not context.spend(_UNITS_PER_QUERY):
            break
        query = match[2] if pattern is _IN_TICKS else match[2].rstrip(".,;!?)]")
        parameters: dict[str, Json] = {}
        for pair in query.split("&")[:_MAX_PAIRS]:
            key, _, value = pair.partition("=")
            if key:
                parameters[unquote(key)] = unquote(value)
        end = match.end() if pattern is _IN_TICKS else match.start(2) + len(query)
        found.append(Found(match.start(), end, (Finding(Call(match[1], parameters)),), "T3"))
    return _trusted(found, text, context)


def _trusted(found: list[Found], text: str, context: ParseContext) -> list[Found]:
    """All calls if nothing but them was written, else those whose name is in the registry."""
    known = [one for one in found if context.resolve(one.findings[0].call.name) is not None]
    if known or not all(one.findings[0].call.name.isascii() for one in found):
        return known
    outside = []
    position = 0
    for one in found:
        outside.append(text[position : one.start])
        position = one.end
    outside.append(text[position:])
    return [] if not found or "".join(outside).strip("`\n\r\t ,;") else found
