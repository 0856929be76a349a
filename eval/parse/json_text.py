"""Calls written as JSON: variant J (objects and lists in the answer), and the blocks between call tags."""

import re
from collections.abc import Iterator

from robustbench_tc.schema import Json

from .context import Finding, Found, ParseContext, unfenced
from .json_calls import broken_call_at, calls_of
from .json_values import decode, object_at

_UNITS_PER_SPAN = 12
"""What decoding a short text costs at least, in units of the allowance."""

_OBJECT_START = re.compile(r"\{\s*+(?:[\"'“‘{}]|[^\W\d]|//|/\*|\\)")
_ESCAPED = re.compile(r"[\[\s]*+\{\s*+\\+\"")
_STRING_OF_JSON = re.compile(r"[\"'`]\s*+[\[{]\s*+[\[{]?\s*+\\+\"")
_NEXT_ITEM = re.compile(r"\s*+,\s*+\{")


def json_anywhere(text: str, context: ParseContext) -> list[Found]:
    """J: an object, a list of objects, or objects in text, in order."""
    body = unfenced(text)
    if body[:1] in ("{", "[") and context.balanced(body, 0) == len(body):
        try:
            findings = tuple(calls_of(decode(body), context))
        except ValueError:  # not JSON as it stands: perhaps escaped, or inside a text
            pass
        else:
            return [Found(0, len(text), findings, "J")] if findings else []
    unescaped = _unescaped(body)
    if unescaped is not None:
        findings = tuple(calls_of(unescaped, context))
        return [Found(0, len(text), findings, "J")] if findings else []
    found = list(embedded(text, context)) or list(_strings_of_json(text, context))
    if found and _list_is_cut(text, found[-1], context):
        return []
    return found


def _unescaped(body: str) -> Json:
    """The value of JSON that was escaped once more, with or without quotes around it; else None."""
    if _STRING_OF_JSON.match(body) and body[-1:] == body[0] and len(body) > 1:
        body = body[1:-1]
    elif not _ESCAPED.match(body):
        return None
    try:
        inner = decode('"' + body.replace("\n", "\\n") + '"')
        return decode(inner) if isinstance(inner, str) else None
    except ValueError:
        return None


_ESCAPED_TEXT = re.compile(r"\"(?=\s{0,8}[\[{]\s{0,8}[\[{]?\s{0,8}\\\")")
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


def _strings_of_json(text: str, context: ParseContext) -> Iterator[Found]:
    """JSON texts that stand in a text as JSON strings."""
    position = 0
    while match := _ESCAPED_TEXT.search(text, position):
        string = _STRING.match(text, match.start())
        position = string.end() if string else match.end()
        if not context.spend(_UNITS_PER_SPAN) or string is None:
            return
        findings = tuple(calls_of(_unescaped(string[0]), context))
        if findings:
            yield Found(match.start(), position, findings, "J")


def _list_is_cut(text: str, last: Found, context: ParseContext) -> bool:
    """Whether the object read last is followed by one that was cut off."""
    following = _NEXT_ITEM.match(text, last.end)
    return following is not None and context.balanced(text, following.end() - 1) is None


def embedded(text: str, context: ParseContext, *, tagged: bool = False) -> Iterator[Found]:
    """The outermost objects of a text that describe calls, each with its place."""
    position = 0
    while match := _OBJECT_START.search(text, position):
        if not context.spend(_UNITS_PER_SPAN):
            return
        start = match.start()
        read = object_at(text, start, context, stop="\n")  # the last brace of a line may be missing
        if read is None:
            broken = broken_call_at(text, start, context) if tagged else None
            position = start + 1
            if broken is not None:
                position = broken[1]
                yield Found(start, position, (broken[0],), "J")
            continue
        found, position = read
        findings = tuple(calls_of(found, context, tagged=tagged))
        if findings:
            yield Found(start, position, findings, "J")


def block(text: str, context: ParseContext) -> tuple[Finding, ...]:
    """The calls between call tags, whatever else stands there left out."""
    unescaped = _unescaped(text.strip())
    if unescaped is not None:
        return tuple(calls_of(unescaped, context, tagged=True))
    found = list(embedded(text, context, tagged=True))
    if found and _list_is_cut(text, found[-1], context):
        return ()
    return tuple(finding for one in found for finding in one.findings)
