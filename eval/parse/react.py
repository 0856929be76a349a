"""Variants R1 and R2: `Action:` (or `ActionCode:`) and `Action Input:`, in their many spellings."""

import re
from itertools import islice
from typing import NamedTuple

from robustbench_tc.schema import Call, Json

from .context import TOOL_NAME, Finding, Found, ParseContext, bare_name, end_of
from .json_calls import arguments_of
from .json_values import MAX_RAW, decode_object, object_at
from .names import is_no_name
from .payload import read_payload
from .python_calls import single, unwrapped

_END = r"[ \t]{0,2}\d{0,3}[ \t]{0,2}[*_`]{0,3}[ \t]{0,8}[:：]"
_WORDS = (
    r"(?P<input>Action[ \t_-]{0,2}(?:Inputs?|Parameters|Params|Arguments|Args)|Inputs?|Arguments"
    r"|Parameters|Params|Args"
    r"|Tool[ _]Input)|(?P<R2>ActionCode)|(?P<R1>Action|Tool[ _]Action)"
    r"|(?P<other>Thoughts?|Observations?|Final[ ]Answer|Answer|Reasoning|Question|Explanation|Plan)"
)
_LABEL = re.compile(
    r"\n[ \t>*_#•`–-]{0,8}(?:\d{1,3}[.)][ \t]{0,4}|step \d{1,3}[ :.-]{1,3})?[*_]{0,3}(?i:"
    + _WORDS
    + ")"
    + _END
    + r"|(?<![\w\n])(?:(?P<input_>Action[ \t_]{0,2}Input)|(?P<R2_>ActionCode)|(?P<R1_>Action)|(?P<other_>Thought|Observation))"
    r"\*{0,2}[ \t]{0,8}[:：]"
)
"""A label at the start of a line in any case, or one of scoring.md's own inside a line, spelt exactly."""

_GAP = re.compile(r"[\s*]*+(?:`{1,3}(?:[A-Za-z]{1,10}(?=\s))?\s*+)?")
_BRACKET = re.compile(rf"({TOOL_NAME})[ `*]*\[")
_NO_INPUT = re.compile(
    r"(?i)[`\s\"'({]*(?:none|null|n/?a|no (?:input|arguments|parameters)(?: needed| required)?|empty"
    r"|-)?[`\s\"').}]*"
)
_OPENING = re.compile(r"[ \t\n(`*]*+(?=\{)")
_TOLD = re.compile(r"(?i:call|use|invoke)[ :]{1,3}[`'\"]?([^\s`'\"]{1,128})")
_UNITS_PER_LABEL = 8
_MAX_LABELS = 1_536


CODES = ("R1", "R2")


class _Label(NamedTuple):
    kind: str
    """`input`, `other`, or one of `CODES`."""
    start: int
    end: int


def react(text: str, context: ParseContext, action: str) -> list[Found]:
    """Each `action`, one of `CODES`, with the first input label behind it; it may also hold the whole call."""
    labels = [
        _Label(  # the text is shifted by a line break
            (match.lastgroup or "").rstrip("_"),
            match.start() - (not match[0].startswith("\n")),
            match.end() - 1,
        )
        for match in islice(_LABEL.finditer("\n" + text), _MAX_LABELS)
    ]
    found: list[Found] = []
    position = 0
    index = 0
    while index < len(labels):
        label = labels[index]
        index += 1
        if label.start < position or label.kind != action:
            continue
        if not context.spend(_UNITS_PER_LABEL):
            break
        limit = labels[index].start if index < len(labels) else len(text)
        following = labels[index] if index < len(labels) and labels[index].kind == "input" else None
        read = _action(text, label, limit, following, labels, index, context)
        if read is None:
            continue
        findings, position = read
        found.append(Found(label.start, position, findings, action))
    return found


def _action(
    text: str,
    label: _Label,
    limit: int,
    following: _Label | None,
    labels: list[_Label],
    index: int,
    context: ParseContext,
) -> tuple[tuple[Finding, ...], int] | None:
    """The calls of one block and where to read on."""
    whole = _whole_call(text, label.end, context)
    if whole is not None:
        return whole
    written = text[label.end : limit].strip().split("\n", 1)[0]
    name = bare_name(written.strip(" \t`*\"'"))
    if (told := _TOLD.fullmatch(name)) is not None and context.resolve(told[1]) is not None:
        name = told[1]
    known = context.resolve(name) is not None
    if not known and (is_no_name(name) or " " in name):  # a sentence is no name
        return None
    if following is None:
        if not context.tools or not known:
            return None
        return (Finding(Call(name, {})),), limit
    end = next((one.start for one in labels[index + 1 : index + 65] if one.kind != "input"), len(text))
    return _with_input(text, name, following.end, end, context)


def _whole_call(text: str, start: int, context: ParseContext) -> tuple[tuple[Finding, ...], int] | None:
    """`Action: {…}`, `Action: f(x=1)`, `Action: f{…}`, `Action: [f(x=1)]`, and `Action: f[]` with text or an object."""
    at = end_of(_GAP, text, start)
    bracket = _BRACKET.match(text, at)
    if bracket is not None and context.resolve(bracket[1]) is not None:
        return _in_brackets(text, bracket, context)
    read = read_payload(text, at, context, most=1)
    if read is None or (
        context.tools
        and any(context.resolve(one.call.name) is None and not one.call.parameters for one in read[0])
    ):
        return None
    return read[0], read[1]


def _in_brackets(
    text: str, bracket: re.Match[str], context: ParseContext
) -> tuple[tuple[Finding, ...], int] | None:
    end = context.balanced(text, bracket.end() - 1)
    if end is None:
        return None
    name, inside = bracket[1], text[bracket.end() : end - 1].strip()
    found: dict[str, Json] | None = {} if _NO_INPUT.fullmatch(inside) else decode_object(inside, context)
    declared = context.parameters_of(name)
    if found is None and "=" in inside and (call := single(f"f({inside})", context)) is not None:
        found = call.parameters
    if found is None and declared:
        found = {declared[0]: inside.strip("\"'")}
    return None if found is None else ((Finding(Call(name, found)),), end)


def _with_input(
    text: str, name: str, start: int, limit: int, context: ParseContext
) -> tuple[tuple[Finding, ...], int] | None:
    """The call with the input behind its label. An input that is not an object leaves a known name without
    parameters; one that was cut off is not a call."""
    at = end_of(_GAP, text, start)
    found: dict[str, Json] | None = None
    end = limit
    if text[at : at + 1] in ('"', "'"):
        if context.source != "rotbench":  # it takes no input in quotes
            parameters, raw = arguments_of(text[at:limit].rstrip("` \n"), context)
            found = None if raw is not None else parameters
    elif (opening := _OPENING.match(text, at, limit)) is not None:
        read = object_at(text[:limit], opening.end(), context) or object_at(text, opening.end(), context)
        if read is not None:
            found, end = read
        elif context.balanced(text, opening.end()) is None:
            return None
    if found is None:
        return _without_object(text, name, at, limit, context)
    return (Finding(unwrapped(Call(name, found), context)),), end


def _without_object(
    text: str, name: str, at: int, limit: int, context: ParseContext
) -> tuple[tuple[Finding, ...], int] | None:
    raw = text[at:limit].strip().strip("`").strip()
    if not context.may_name(name):
        return None
    if not raw or _NO_INPUT.fullmatch(raw.split("\n", 1)[0]):
        return (Finding(Call(name, {})),), at
    line = raw.split("\n", 1)[0]
    if "=" in line and len(line) < 2_000 and context.resolve(name) is not None:
        call = single(f"f({line.strip('()')})", context)
        if (
            call is not None
            and call.parameters
            and set(call.parameters) <= set(context.parameters_of(name) or ())
        ):
            return (Finding(call=Call(name, call.parameters)),), limit
    return (Finding(Call(name, {}), raw=raw[:MAX_RAW]),), at
