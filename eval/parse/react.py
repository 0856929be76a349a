"""Variants R1 and R2: `Action:` (or `ActionCode:`) and `Action Input:`, in their many spellings."""

import re
from itertools import islice

from robustbench_tc.schema import Call, Json

from . import lenient
from .context import TOOL_NAME, ParseContext, bare_name
from .found import Finding, Found
from .json_calls import calls_of
from .json_values import decode, decode_object, decode_value
from .names import is_no_name
from .python_calls import list_at, single

_END = r"[ \t]{0,2}\d{0,3}[ \t]{0,2}[*_`]{0,3}[ \t]{0,8}[:：]"
_WORDS = (
    r"(?P<input{n}>Action[ \t_-]{{0,2}}(?:Inputs?|Parameters|Params|Arguments|Args)|Inputs?|Arguments"
    r"|Parameters|Params|Args"
    r"|Tool[ _]Input)|(?P<R2{n}>ActionCode)|(?P<R1{n}>Action|Tool[ _]Action)"
    r"|(?P<other{n}>Thoughts?|Observations?|Final[ ]Answer|Answer|Reasoning|Question|Explanation|Plan)"
)
_LABEL = re.compile(
    r"\n[ \t>*_#•`–-]{0,8}(?:\d{1,3}[.)][ \t]{0,4}|step \d{1,3}[ :.-]{1,3})?[*_]{0,3}(?i:"
    + _WORDS.format(n="")
    + ")"
    + _END
    + r"|(?<![\w\n])(?:(?P<input2>Action[ \t_]{0,2}Input)|(?P<R22>ActionCode)|(?P<R12>Action)|(?P<other2>Thought|Observation))"
    r"\*{0,2}[ \t]{0,8}[:：]"
)
"""A label at the start of a line in any case, or one of scoring.md's own inside a line, spelt exactly."""

_GAP = re.compile(r"[\s*]*+(?:`{1,3}(?:[A-Za-z]{1,10}(?=\s))?\s*+)?")
_NAME = re.compile(rf"({TOOL_NAME})")
_BRACKET = re.compile(rf"({TOOL_NAME})\[(.*)\]", re.DOTALL)
_NO_INPUT = re.compile(
    r"(?i)[`\s\"'({]*(?:none|null|n/?a|no (?:input|arguments|parameters)(?: needed| required)?|empty"
    r"|-)?[`\s\"').}]*"
)
_OBJECT_BELOW = re.compile(r"\s{0,16}(?:```(?:json)?\s{0,4})?(?=\{)")
_TOLD = re.compile(r"(?i:call|use|invoke)[ :]{1,3}[`'\"]?([^\s`'\"]{1,128})")
_UNITS_PER_LABEL = 8
_MAX_LABELS = 1_536
_MAX_RAW = 4_096


def react(text: str, context: ParseContext) -> list[Found]:
    """R1."""
    return _blocks(text, context, "R1")


def react_code(text: str, context: ParseContext) -> list[Found]:
    """R2."""
    return _blocks(text, context, "R2")


class _Label:
    __slots__ = ("end", "kind", "start")

    def __init__(self, match: re.Match[str]) -> None:
        self.start = match.start() - (not match[0].startswith("\n"))  # the text was shifted by a line break
        self.end = match.end() - 1
        self.kind = (match.lastgroup or "").rstrip("2") if match.lastgroup not in ("R2", "R22") else "R2"


def _blocks(text: str, context: ParseContext, action: str) -> list[Found]:
    """Each action with the first input label behind it; an action may also hold the whole call."""
    shifted = "\n" + text
    labels = [_Label(match) for match in islice(_LABEL.finditer(shifted), _MAX_LABELS)]
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
    """`Action: {…}`, `Action: f(x=1)`, `Action: f[]`, `Action: f{…}` and `Action: [f(x=1)]`."""
    gap = _GAP.match(text, start)
    at = gap.end() if gap else start
    sign = text[at : at + 1]
    if sign in ("{", "["):
        end = context.balanced(text, at)
        if end is None:
            return None
        source = text[at:end]
        if sign == "[" and (calls := list_at(source, context)):
            return tuple(map(Finding, calls)), end
        findings = tuple(calls_of(decode_value(source, context), context))
        return (findings, end) if findings else None
    named = _NAME.match(text, at)
    if named is None:
        return None
    opening = named.end()
    while text[opening : opening + 1] in (" ", "`", "*"):
        opening += 1
    if (below := _OBJECT_BELOW.match(text, opening)) is not None:
        opening = below.end()
    if text[opening : opening + 1] not in ("(", "[", "{"):
        return None
    end = context.balanced(text, opening)
    if end is None:
        return None
    finding = _called(text, at, named[1], opening, end, context)
    return None if finding is None else ((finding,), end)


def _called(text: str, at: int, name: str, opening: int, end: int, context: ParseContext) -> Finding | None:
    known = context.resolve(name) is not None
    inside = text[opening + 1 : end - 1].strip()
    if text[opening] == "{":
        found = decode_object(text[opening:end], context)
        return Finding(Call(name, found)) if found is not None and (known or not context.tools) else None
    if text[opening] == "(" or "=" in inside:
        call = single(f"{name}({inside})", context) if inside else Call(name, {})
        if call is None or (not known and (context.tools and not call.parameters)):
            return None
        return Finding(call)
    if not known:
        return None
    if not inside or _NO_INPUT.fullmatch(inside):
        return Finding(Call(name, {}))
    if inside.startswith("{") and (found := decode_object(inside, context)) is not None:
        return Finding(Call(name, found))
    declared = context.parameters_of(name)
    return Finding(Call(name, {declared[0]: inside.strip("\"'")})) if declared else None


def _with_input(
    text: str, name: str, start: int, limit: int, context: ParseContext
) -> tuple[tuple[Finding, ...], int] | None:
    """The call with the input behind its label. An input that is not an object leaves a known name without
    parameters; one that was cut off is not a call."""
    gap = _GAP.match(text, start)
    at = gap.end() if gap else start
    first = text[at : at + 1]
    found: dict[str, Json] | None = None
    end = limit
    if first in ('"', "'"):
        found = _quoted(text[at:limit], context)
    elif (
        first != "["
        and (opening := text.find("{", at, limit)) >= 0
        and not text[at:opening].strip(" \t\n(`*")
    ):
        closing = context.balanced(text, opening)
        found = decode_object(text[opening:closing], context) if closing is not None else None
        if found is not None and closing is not None:
            end = closing
        else:
            loose = lenient.read(text[:limit], opening, context)
            if loose is not None and isinstance(loose[0], dict):
                found, end = loose
            elif closing is None and context.spend(20):
                return None
    if found is None:
        return _without_object(text, name, at, limit, context)
    return (Finding(Call(name, found)),), end


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
    return (Finding(Call(name, {}), raw=raw[:_MAX_RAW]),), at


def _quoted(text: str, context: ParseContext) -> dict[str, Json] | None:
    """The object in a JSON string. RoTBench does not take an input in quotes as an object."""
    if context.source == "rotbench":
        return None
    try:
        inner = decode(text.strip().rstrip("`").strip())
    except ValueError:
        return None
    return decode_object(inner, context) if isinstance(inner, str) and context.balanced(inner, 0) else None
