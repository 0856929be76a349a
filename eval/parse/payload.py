"""What stands behind a special token or between call tags: JSON objects, Python calls, or names with objects,
one after the other."""

import re

from robustbench_tc.schema import Call, Json

from . import lenient, loose_python
from .context import TOOL_NAME, ParseContext
from .found import Finding
from .gemma import braces_at
from .json_calls import arguments_of, calls_of
from .json_values import clean, decode_value
from .python_calls import list_at, single

_GAP = re.compile(r"(?:[\s;,]++|```(?:\w{1,12}(?=\s))?)*+")
_LIST_OF_CALLS = re.compile(rf"\[\s*+{TOOL_NAME}\s*+\(")
_NAMED = re.compile(
    rf"(?:functions\.)?(?P<name>{TOOL_NAME})(?::\d{{1,4}})?\s{{0,8}}"
    r"(?:\[CALL_ID\][\w-]{1,64})?\s{0,4}(?P<args>\[ARGS\])?\s{0,8}(?:```(?:json)?\s{0,8})?(?=\{)"
)
_CALL = re.compile(rf"(?:print\s?\(\s?)?(?P<name>{TOOL_NAME})[ \t]{{0,2}}\(")
_GEMMA = re.compile(rf":?(?:call:)?\s{{0,2}}(?P<name>{TOOL_NAME})\s{{0,4}}(?=\{{)")
_UNITS = 8
_MAX_ITEMS = 128


def read_payload(text: str, start: int, context: ParseContext) -> tuple[tuple[Finding, ...], int, str] | None:
    """The calls from `start` on, the position behind the last, and whether they are `json` or `python`."""
    found: list[Finding] = []
    kind = "json"
    end = start
    for _ in range(_MAX_ITEMS):
        gap = _GAP.match(text, end)
        at = gap.end() if gap else end
        read = _item(text, at, context)
        if read is None:
            break
        findings, end, this = read
        kind = this if not found else kind
        found += findings
    return (tuple(found), end, kind) if found else None


def _item(text: str, at: int, context: ParseContext) -> tuple[list[Finding], int, str] | None:
    sign = text[at : at + 1]
    if not sign or not context.spend(_UNITS):
        return None
    if sign == "[" and _LIST_OF_CALLS.match(text, at):
        return _python_list(text, at, context)
    if sign in ("{", "["):
        found = value_at(text, at, context)
        findings = list(calls_of(found[0], context, tagged=True)) if found is not None else []
        return (findings, found[1], "json") if found is not None and findings else None
    if text.startswith("call:", at) or text.startswith(":", at):
        return _gemma(text, at, context)
    named = _NAMED.match(text, at)
    if named is not None and (named["args"] or context.may_name(named["name"])):
        found = value_at(text, named.end(), context)
        if found is None or not isinstance(found[0], dict):
            return _gemma(text, at, context)
        parameters, raw = arguments_of(found[0], context)
        return [Finding(Call(named["name"], parameters), raw=raw)], found[1], "json"
    return _python_call(text, at, context)


def _gemma(text: str, at: int, context: ParseContext) -> tuple[list[Finding], int, str] | None:
    named = _GEMMA.match(text, at)
    if named is None:
        return None
    read = braces_at(text, named.end(), named["name"], context, marked=True)
    return None if read is None else ([Finding(Call(named["name"], read[0]))], read[1], "gemma")


def value_at(text: str, at: int, context: ParseContext) -> tuple[Json, int] | None:
    """The JSON value that opens at `at`, careless spelling allowed, and the position behind it."""
    end = context.balanced(text, at)
    found = decode_value(text[at:end], context) if end is not None else None
    if found is not None and end is not None:
        return found, end
    read = lenient.read(text, at, context)
    if read is None:
        stop = text.find("<", at)
        read = lenient.read(text[:stop], at, context) if stop > 0 else None
    if read is None:
        return None
    try:
        return clean(read[0]), read[1]
    except ValueError:
        return None


def _python_list(text: str, at: int, context: ParseContext) -> tuple[list[Finding], int, str] | None:
    end = context.balanced(text, at)
    calls = list_at(text[at:end], context) if end is not None else []
    if not calls:
        calls = list_at(text[at:end], context, colons=True) if end is not None else []
    if not calls and (loose := loose_python.read_list(text, at, context)):
        calls, end = loose
    return (list(map(Finding, calls)), end, "python") if calls and end is not None else None


def _python_call(text: str, at: int, context: ParseContext) -> tuple[list[Finding], int, str] | None:
    named = _CALL.match(text, at)
    if named is None:
        return None
    start = named.start("name")
    end = context.balanced(text, named.end() - 1)
    call = single(text[start:end], context) if end is not None else None
    if call is None:
        loose = loose_python.read_call(text, start, context)
        if loose is None:
            return None
        call, end = loose
    assert end is not None
    if start > at and text[end : end + 1] == ")":
        end += 1
    return [Finding(call)], end, "python"
