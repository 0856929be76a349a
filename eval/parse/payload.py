"""What stands behind a special token or between call tags: JSON objects, Python calls, or names with objects,
one after the other."""

import re

from robustbench_tc.schema import Call

from . import loose_python
from .context import TOOL_NAME, Finding, ParseContext, end_of
from .gemma import braces_at
from .json_calls import broken_call_at, call_of, calls_of
from .json_values import arguments_at, object_at, value_at
from .python_calls import list_at, single

_GAP = re.compile(r"(?:[\s;,]++|```(?:\w{1,12}(?=\s))?|<\|(?:plugin|interpreter)\|>)*+")
_LIST_OF_CALLS = re.compile(rf"\[\s*+{TOOL_NAME}\s*+\(")
_HEAD = re.compile(
    r"(?:function\s*+<[|｜]tool[▁_ ]sep[|｜]>\s*+)?(?:[^<>\n]{0,64}<\|tool_call:name\|>\s*+)?(?:call:)?"
    r"(?:(?P<twice>[\w.-]{1,128}):(?=(?P=twice)\s*\{))?"
    r"(?P<id>[^\W\d][\w.:-]{0,159})\s{0,8}"
    r"(?P<glue>(?:<[|｜]tool[▁_ ]sep[|｜]>|<\|(?:tool_call_argument_begin|tool_call:args|content|constrain"
    r"|message)\|>|<\|channel\|>\s?\w{1,16}|\[CALL_ID\][\w-]{1,64}|\[ARGS\]|✿ARGS✿\s?[:：]?|json\b|code\b"
    r"|commentary\s?(?:json)?|\s)*+)(?:```(?:json)?\s{0,8})?(?=\{)"
)
"""What stands in front of the object of arguments where a format states the name apart: DeepSeek, Kimi, Solar,
Functionary, Mistral, Qwen-Agent, harmony, and a name alone."""
_CALL = re.compile(rf"(?:print\s?\(\s?)?(?P<name>{TOOL_NAME})[ \t]{{0,2}}\(")
_UNITS = 8
_MAX_ITEMS = 128


def read_payload(
    text: str, start: int, context: ParseContext, *, most: int = _MAX_ITEMS
) -> tuple[tuple[Finding, ...], int, str] | None:
    """The calls from `start` on, the position behind the last, and how they are written."""
    found: list[Finding] = []
    kind = "json"
    end = start
    for _ in range(most):
        read = _item(text, end_of(_GAP, text, end), context)
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
        if found is None:
            broken = broken_call_at(text, at, context)
            return None if broken is None else ([broken[0]], broken[1], "json")
        findings = list(calls_of(found[0], context, tagged=True))
        return (findings, found[1], "json") if findings else None
    return named_at(text, at, context) or _python_call(text, at, context)


def named_at(text: str, at: int, context: ParseContext) -> tuple[list[Finding], int, str] | None:
    """A name with the object of its arguments, written as JSON or as Gemma writes it."""
    head = _HEAD.match(text, at)
    if head is None:
        return None
    name = context.tool_of_id(head["id"])
    if not head["glue"].strip() and not head[0].startswith("call:") and not context.may_name(name):
        return None
    kind = "gemma" if head[0].startswith("call:") else "sep" if "sep" in head[0] else "json"
    schemas = context.schemas_of(name)
    found = braces_at(text, head.end(), schemas, context) if kind == "gemma" else None
    if found is None:
        found = object_at(text, head.end(), context) or braces_at(text, head.end(), schemas, context)
    if found is not None:
        inside = call_of(found[0], context, tagged=True) if context.resolve(name) is None else None
        if inside is not None and context.resolve(inside.call.name) is not None:  # the id was only a number
            return [inside], found[1], kind
        return [Finding(Call(name, found[0]))], found[1], kind
    if (broken := arguments_at(text, head.end(), context)) is not None:
        return [Finding(Call(name, {}), raw=broken[1])], broken[2], kind
    return None


def _python_list(text: str, at: int, context: ParseContext) -> tuple[list[Finding], int, str] | None:
    end = context.balanced(text, at)
    if end is not None:
        calls = list_at(text[at:end], context) or list_at(text[at:end], context, colons=True)
    else:
        calls, end = loose_python.read_list(text, at, context) or ([], at)
    return (list(map(Finding, calls)), end, "python") if calls else None


def _python_call(text: str, at: int, context: ParseContext) -> tuple[list[Finding], int, str] | None:
    named = _CALL.match(text, at)
    if named is None:
        return None
    start = named.start("name")
    end = context.balanced(text, named.end() - 1)
    call = single(text[start:end], context) if end is not None else None
    read = (
        (call, end) if call is not None and end is not None else loose_python.read_call(text, start, context)
    )
    if read is None:
        return None
    call, end = read
    if start > at and text[end : end + 1] == ")":
        end += 1
    return [Finding(call)], end, "python"
