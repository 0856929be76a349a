"""The way through one reply: native calls, the usual short forms, segments, marked calls, bare calls."""

import re
from collections.abc import Callable, Sequence

import msgspec

from robustbench_tc.schema import Call, Json, Tool

from . import acts, harmony, turns
from .context import MAX_CHARS, Finding, Found, ParseContext
from .formats import BARE, LABELLED, MARKED, order_of
from .json_calls import native, raw_texts
from .marked import admitted, outermost, read_marked, without_namespaces
from .react import react
from .segments import Segment, split, without_thought_tags
from .short import short_form
from .stored import clean, clean_text

READER_VERSION = "6"
"""Raised with every change that may read a reply otherwise: verdicts say which reader made them."""

_EDGES = " \t\r\n\f\v\u00a0\u200b\u200e\u200f\u2028\u2029\u2060\ufeff"
_JSON_FIRST = re.compile(r"\{|\[\s*+\{")
_THOUGHT_ALLOWANCE = 4_000
_LOOKS_LIKE_A_CALL = re.compile(
    r"<(?:tool_call|function|invoke|\|tool|｜tool)|\[TOOL_CALLS\]|\bAction\b[^\n]{0,8}:|\"(?:name|function"
    r"|tool)\"\s*:"
)


_BOX = re.compile(r"\\boxed\s?\{")
_NAME_ABOVE = re.compile(r"(?m:^)([\w.-]{1,128})[ \t]*\n(```(?:\w{1,12})?[ \t]*\n)\s{0,16}tool_call\(")
"""ChatGLM: the name on a line of its own, the arguments in a fence."""
_QUOTED_NAME = re.compile(r"([\[,]\s{0,8})\"([^\W\d][\w.-]{0,127})\"\(")


class Parsed(msgspec.Struct, frozen=True):
    """What one reply says."""

    calls: tuple[Call, ...]
    variant: str | None
    """`fc` for native calls, a key of `FORMATS`, or None when nothing was found."""
    flags: tuple[str, ...] = ()
    """empty_text: nothing but white space and end markers, and no native call. truncated: only the first and
    the last part of a long answer were read, or reading it took too much work. bad_arguments: a call's arguments
    could not be read. repaired: a native call's name or arguments were not as an API takes them. call_in_thought:
    a call stood in the reasoning. quoted_call: a bare call was spoken of, not made. call_beside_refusal: the
    prose around a marked call refuses or reports it. unread_shape: it looks like a call and none was read."""
    segments: tuple[Segment, ...] = ()
    """The reply's passages, places in the text as given; () beside native calls."""
    tried: tuple[str, ...] = ()
    """The steps of the source's order that were tried, the one that found the calls last."""
    raw_arguments: tuple[tuple[int, str], ...] = ()
    """By index of the call, the raw text of arguments that are not an object (flag `bad_arguments`)."""


def parse(
    text: str | None,
    *,
    source: str,
    tools: Sequence[Tool] = (),
    tool_calls: Json = None,
    finish_reason: str | None = None,
    reasoning: str | None = None,
    opens_thought: bool = False,
    name_back: Callable[[str], str] | None = None,
) -> Parsed:
    """The calls in one reply to a sample of `source`, whose registry is `tools`.

    `tool_calls` are the reply's native calls; without one the text counts. `reasoning` is what a server
    returned apart: never a source of calls. `opens_thought` says that the model's chat template begins the
    reply inside its thought. `name_back` maps a wire name in the text to the registry's, in function-calling
    mode. Raises UserError for an unknown source, and nothing for any text.
    """
    order = order_of(source)
    if text and not (tool_calls or reasoning or opens_thought or name_back):
        short = short_form(text, tools)
        if short is not None:
            code, calls, start = short
            final = Segment("final", start, len(text))
            parts = (Segment("reasoning", 0, start), final) if start else (final,)
            return Parsed(tuple(calls), code, (), parts, (code,))
    context = ParseContext(source, tools, name_back, cut=finish_reason == "length")
    if tool_calls and (findings := native(tool_calls, context)):
        found = _parsed(findings, "fc", (), [], context)
        if text and text.strip(_EDGES):
            beside = parse(text, source=source, tools=tools, opens_thought=opens_thought, name_back=name_back)
            if beside.calls and beside.calls != found.calls:
                return msgspec.structs.replace(found, flags=(*found.flags, "call_beside_native"))
        return found
    if not text or not text.strip(_EDGES):
        flags = ("call_in_thought",) if reasoning and _has_call(reasoning, context) else ()
        return Parsed((), None, ("empty_text", *flags))
    segments = tuple(split(text, context, opens_thought=opens_thought))
    thought = "\n".join(text[one.start : one.end] for one in segments if one.kind == "reasoning")
    whole = _prepared(
        "\n".join(text[one.start : one.end] for one in segments if one.kind == "final"), context
    )
    answer = _bounded(whole)
    if answer != whole:
        context.flag("truncated")
    passages, tried = _calls(answer, order, context)
    findings = [finding for one in passages for finding in one.findings]
    if any(one and _has_call(one, context) for one in (thought, reasoning)):
        context.flag("call_in_thought")
    if not answer and not thought:
        context.flag("empty_text")
    if context.left < 0:
        context.flag("truncated")
    if not findings and not context.flags and _is_unread(answer, context):
        context.flag("unread_shape")
    return _parsed(findings, passages[0].code if passages else None, segments, tried, context)


def _calls(answer: str, order: tuple[str, ...], context: ParseContext) -> tuple[list[Found], list[str]]:
    """The passages of the first step that finds calls, and the steps tried."""
    tried: list[str] = []
    if not answer:
        return [], tried
    marked = _marked(answer, context)
    bare = _blanked(answer, marked)
    if _JSON_FIRST.match(answer):
        order = tuple(sorted(order, key=lambda step: step != "J"))
    spoken: list[Found] = []
    for step in order:
        if step not in BARE:
            tried.append(step)
            here = [one for one in marked if (one.code if one.code in LABELLED else MARKED) == step]
            if here and acts.beside_refusal(answer, marked):
                context.flag("call_beside_refusal")
            if here:
                return here, tried
            continue
        need, reader = BARE[step]
        if need not in bare:
            continue
        tried.append(step)
        here = _apart(admitted(reader(bare, context), context), spoken)
        made, quoted = acts.made_and_quoted(bare, here, marked)
        spoken += quoted
        if spoken:
            context.flag("quoted_call")
        if made:
            return made, tried
    return [], tried


def _is_unread(answer: str, context: ParseContext) -> bool:
    if _LOOKS_LIKE_A_CALL.search(answer):
        return True
    return any(f"{tool.name}{sign}" in answer for tool in context.tools for sign in ("(", "{", " {", ": {"))


def _prepared(answer: str, context: ParseContext) -> str:
    """The final answer without end markers, headers, and the words that formats put into every tag."""
    answer = without_namespaces(harmony.without_headers(answer))
    answer = turns.without_end_markers(answer, context.declared.values())
    while (box := _BOX.search(answer)) and (end := context.balanced(answer, box.end() - 1)):
        answer = f"{answer[: box.start()]}\n{answer[box.end() : end - 1].strip()}\n{answer[end:]}"
    if '"(' in answer or "tool_call(" in answer:
        answer = _QUOTED_NAME.sub(r"\1\2(", _NAME_ABOVE.sub(r"\2\1(", answer))
    answer = answer.strip(_EDGES)
    return answer if answer.isascii() else clean_text(answer)


def _bounded(text: str) -> str:
    """The first and the last part of a long text."""
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS // 2] + "\n" + text[-MAX_CHARS // 2 :]


def _marked(answer: str, context: ParseContext) -> list[Found]:
    """Every marked call that counts, those inside another one's arguments left out."""
    found = read_marked(answer, context)
    lower = answer.lower()
    for code, word in zip(LABELLED, ("action", "actioncode"), strict=True):
        if word in lower:
            found += react(answer, context, code)
    return admitted(outermost(found), context)


def _blanked(answer: str, marked: list[Found]) -> str:
    """The answer with line breaks for the marked calls, so that every place stays where it is."""
    if not marked:
        return answer
    pieces: list[str] = []
    position = 0
    for one in marked:
        pieces += (answer[position : one.start], "\n" * (one.end - one.start))
        position = one.end
    return "".join(pieces) + answer[position:]


def _apart(found: list[Found], spoken: list[Found]) -> list[Found]:
    """Without what overlaps a call that an earlier step took for a quotation, unless that is a part of a value."""
    return [
        one
        for one in found
        if not any(
            one.start < two.end and two.start < one.end and not one.start < two.start < two.end < one.end
            for two in spoken
        )
    ]


def _has_call(thought: str, context: ParseContext) -> bool:
    """Whether some call stands in a thought, in any form."""
    marked = "<" in thought or "[" in thought or "ction" in thought.lower()
    if not marked and context.tools and not any(tool.name in thought for tool in context.tools):
        return False
    inner = ParseContext(context.source, context.tools, context.name_back)
    inner.left = _THOUGHT_ALLOWANCE
    thought = turns.without_end_markers(without_thought_tags(without_namespaces(thought)))
    if thought.lstrip().startswith("analysis"):
        thought = thought.lstrip().removeprefix("analysis")
    thought = _bounded(thought)
    if _marked(thought, inner):
        return True
    return any(
        inner.may_name(finding.call.name)
        for need, reader in BARE.values()
        if need in thought
        for one in admitted(reader(thought, inner), inner)
        for finding in one.findings
    )


def _parsed(
    findings: Sequence[Finding],
    code: str | None,
    segments: tuple[Segment, ...],
    tried: list[str],
    context: ParseContext,
) -> Parsed:
    raw = raw_texts(findings)
    calls = []
    for finding in findings:
        call = finding.call
        if code != "fc":
            try:
                call = Call(clean_text(context.written(call.name)), clean(call.parameters))
            except ValueError:  # what no file can hold, such as a value nested too deep
                context.flag("unread_shape")
                continue
        calls.append(call)
    if raw:
        context.flag("bad_arguments")
    return Parsed(tuple(calls), code if calls else None, tuple(context.flags), segments, tuple(tried), raw)
