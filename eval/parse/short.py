"""The short way for the usual replies: a list of simple Python calls, JSON between call tags, one JSON value, or
ReAct lines, and nothing else. It reads what the general way reads, with the same result, several times as fast,
and gives up with None on anything else."""

import re

import msgspec

from robustbench_tc.schema import Call

from . import python_literals
from .context import ParseContext
from .found import Finding
from .json_calls import calls_of
from .json_values import clean_text
from .names import is_no_name
from .python_calls import unwrapped

_REACT = re.compile(
    r"\s*+(?:Thought:[^\n<:]*+\n)?Action: ([^\s\"'`*<>\[\](){}:]{1,128})[ ]*\nAction Input: (\{[^\n]*\})[ ]*(?:\n|\Z)"
)
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_decode = msgspec.json.decode
_MAX = 16_384


def short_form(text: str, context: ParseContext) -> tuple[str, list[Finding]] | None:
    """The code and the calls of a usual reply, or None."""
    body = text.strip()
    if len(body) > _MAX or not body or not (body.isascii() or clean_text(body) is body):
        return None
    first = body[0]
    found: tuple[str, list[Finding]] | None = None
    if first == "[" and body[1:2] not in ("{", "[") and body[-1] == "]":
        calls = python_literals.calls(body)
        found = ("B1", [Finding(unwrapped(call, context)) for call in calls]) if calls else None
    elif first == "<":
        found = _tagged(body, context)
    elif first in "{[":
        found = _json(body, context)
    elif first in "TA":
        found = _react(body)
    if found is None or not all(_is_plain(one.call.name, context) for one in found[1]):
        return None
    return found


def _is_plain(name: str, context: ParseContext) -> bool:
    return context.knows(name) or not is_no_name(name)


def _tagged(body: str, context: ParseContext) -> tuple[str, list[Finding]] | None:
    if not (body.startswith(_OPEN) and body.endswith(_CLOSE)) or body.count("<") != 2:
        return None
    findings: list[Finding] = []
    for line in body[len(_OPEN) : -len(_CLOSE)].strip().split("\n"):
        try:
            value = _decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
        here = list(calls_of(value, context, tagged=True))
        if not here:
            return None
        findings += here
    return ("A1", findings)


def _json(body: str, context: ParseContext) -> tuple[str, list[Finding]] | None:
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    findings = list(calls_of(value, context))
    return ("J", findings) if findings else None


def _react(body: str) -> tuple[str, list[Finding]] | None:
    findings: list[Finding] = []
    at = 0
    while at < len(body):
        match = _REACT.match(body, at)
        if match is None:
            return None
        try:
            value = _decode(match[2])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
        findings.append(Finding(Call(match[1], value)))
        at = match.end()
    return ("R1", findings)
