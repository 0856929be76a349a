"""Variants T1, T2 and T3: calls written as plain lines."""

import re
from urllib.parse import unquote

from robustbench_tc.schema import Call

from .json_calls import decode_object
from .reading import Reading, bare_name

_COLON = re.compile(r"(?m)^[ \t`*\"'>-]{0,8}([^\s:{}`*\"'>]{1,128})[`*\"']{0,4}[ \t]{0,8}:\s{0,8}(?=\{)")
_LABELLED = re.compile(
    r"(?mi)^[ \t*>-]{0,8}(?:function|tool)(?:[ _]name)?\*{0,2}[ \t]{0,8}:\*{0,2}[ \t]{0,8}"
    r"([^\n]{1,200})\n\s{0,64}\*{0,2}(?:parameters|arguments|params|args|input)\*{0,2}[ \t]{0,8}:"
    r"\s{0,8}\*{0,2}\s{0,8}(?=\{)"
)
_QUERY = re.compile(r"(?<![\w./:?&=%-])([^\W\d][\w.-]{0,127}+)\?([\w.-]++=[^\s`]*+)")
_MAX_PAIRS = 256
_UNITS_PER_QUERY = 10
_IN_TICKS = re.compile(r"`([^\W\d][\w.-]{0,127}+)\?([\w.-]++=[^`\n]*+)`")


def name_colon_object(text: str, reading: Reading) -> list[Call]:
    """T1: `name: {…}`, in prose only for names of the registry."""
    return _objects_behind(_COLON, text, reading, trusted=False)


def labelled(text: str, reading: Reading) -> list[Call]:
    """T2: a line `Function: name`, then a line `Parameters: {…}`."""
    return _objects_behind(_LABELLED, text, reading, trusted=True)


def query_string(text: str, reading: Reading) -> list[Call]:
    """T3: `name?key=value&…`; values stay text, percent-decoded; a sentence behind it ends the value."""
    if "?" not in text:
        return []
    pattern = _IN_TICKS if "`" in text and _IN_TICKS.search(text) else _QUERY
    calls: list[Call] = []
    outside = []
    position = 0
    for match in pattern.finditer(text):
        if not reading.spend(_UNITS_PER_QUERY):
            break
        outside.append(text[position : match.start()])
        position = match.end()
        query = match[2] if pattern is _IN_TICKS else match[2].rstrip(".,;!?")
        parameters = {}
        for pair in query.split("&")[:_MAX_PAIRS]:
            key, _, value = pair.partition("=")
            if key:
                parameters[unquote(key)] = unquote(value)
        calls.append(Call(match[1], parameters))
    outside.append(text[position:])
    return _trusted(calls, "".join(outside), reading)


def _objects_behind(pattern: re.Pattern[str], text: str, reading: Reading, *, trusted: bool) -> list[Call]:
    calls: list[Call] = []
    outside = []
    position = 0
    while match := pattern.search(text, position):
        outside.append(text[position : match.start()])
        position = match.end()
        end = reading.balanced(text, position)
        if end is None:
            outside.append("{")
            if reading.left <= 0:
                break
            continue
        parameters = decode_object(text[position:end], reading)
        if parameters is None:
            outside.append("{")
        else:
            calls.append(Call(bare_name(match[1]), parameters))
        position = end
    outside.append(text[position:])
    return calls if trusted else _trusted(calls, "".join(outside), reading)


def _trusted(calls: list[Call], outside: str, reading: Reading) -> list[Call]:
    """All calls if nothing but them was written, else those whose name is in the registry."""
    if not outside.strip("`\n\r\t ,;"):
        return calls
    return [call for call in calls if reading.parameters_of(call.name) is not None]
