"""OpenTelemetry's GenAI spans as conversations.

The attributes are those of the semantic conventions from 1.37 on (docs/own-logs.md). A span of a model's
call holds the whole conversation up to its answer, so of the spans of one conversation only those are kept
that no later span goes on from; spans of tools fill in the results that no model's call was given.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from robustbench_tc.own.files import DEPTH, Unreadable, decode_text
from robustbench_tc.schema import Json

from .chat import LoggedCall, Message, Role, logged, name, read_call

_MODEL = ("chat", "generate_content", "text_completion")
_AGENT = ("invoke_agent", "invoke_workflow", "create_agent")
_TOOL = "execute_tool"
_ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")
_LEFT_OUT = {"image": "image", "audio": "audio", "video": "video"}
_VALUES = ("stringValue", "boolValue", "intValue", "doubleValue", "bytesValue")


class Span(msgspec.Struct, frozen=True):
    """What of a GenAI span is needed."""

    line: int
    group: str
    """Spans of one conversation have the same."""
    start: int
    operation: str
    messages: tuple[Message, ...]
    tools: Json
    call: LoggedCall | None
    result: Message | None


class Spoken(msgspec.Struct, frozen=True):
    """A conversation that spans tell of."""

    id: str
    line: int
    messages: tuple[Message, ...]
    tools: Json
    """The tool definitions, as they were recorded; None where they were not."""


def spans_of(value: dict[str, Json], depth: int = 0) -> Iterator[dict[str, Json]] | None:
    """The spans of an OTLP object, or of a value that is a span; None where it is neither."""
    if "attributes" in value and ("name" in value or "traceId" in value or "context" in value):
        return iter([value])
    for key in ("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "spans"):
        if isinstance(value.get(key), list) and depth < 4:
            inner = [spans_of(one, depth + 1) for one in value[key] if isinstance(one, dict)]
            if len(inner) < len(value[key]) or any(one is None for one in inner):
                raise Unreadable("its spans are not those of OTLP")
            return (span for several in inner if several is not None for span in several)
    if depth:  # a span without attributes, or a scope without spans
        return iter([value] if "name" in value else [])
    return None


def read_span(value: dict[str, Json], line: int) -> Span | None:
    """A GenAI span; None for another one, and where its content was not recorded. Raises Unreadable."""
    found = _attributes(value.get("attributes"))
    operation = found.get("gen_ai.operation.name")
    if operation is None and "gen_ai.input.messages" in found:
        operation = "chat"
    if not isinstance(operation, str) or operation not in (*_MODEL, *_AGENT, _TOOL):
        return None
    context = value.get("context")
    ids = context if isinstance(context, dict) else value
    trace = name(ids.get("traceId") or ids.get("trace_id"))
    group = name(found.get("gen_ai.conversation.id")) or trace or f"line {line}"
    start = str(value.get("startTimeUnixNano", value.get("start_time")))
    when = int(start) if start.isdecimal() and len(start) < 30 else 0
    if operation == _TOOL:
        called = found.get("gen_ai.tool.name")
        if not isinstance(called, str) or not called.strip():
            return None
        call_id = name(found.get("gen_ai.tool.call.id"))
        call = logged(call_id, called, found.get("gen_ai.tool.call.arguments"))
        return Span(line, group, when, operation, (), None, call, _tool_result(found, value, call_id))
    messages = tuple(_messages(found))
    if not messages:
        return None
    return Span(line, group, when, operation, messages, _json(found, "gen_ai.tool.definitions"), None, None)


def conversations(spans: Iterable[Span]) -> tuple[list[Spoken], int]:
    """The conversations of spans, and how many spans of tools belong to none."""
    groups: dict[str, list[Span]] = {}
    for span in spans:
        groups.setdefault(span.group, []).append(span)
    found: list[Spoken] = []
    left = 0
    for group, several in groups.items():
        several.sort(key=lambda span: span.start)
        made, unused = _of_group(group, several)
        found += made
        left += unused
    found.sort(key=lambda spoken: spoken.line)
    return found, left


def _of_group(group: str, spans: Sequence[Span]) -> tuple[list[Spoken], int]:
    ran = [span for span in spans if span.call is not None]
    spoken = [span for span in spans if span.operation in _MODEL]
    spoken = spoken or [span for span in spans if span.operation in _AGENT]
    if not spoken:
        pairs = [(Message("assistant", "", (span.call,)), span.result) for span in ran if span.call]
        messages = tuple(one for pair in pairs for one in pair if one is not None)
        return [Spoken(group, ran[0].line, messages, None)], 0
    results = {span.call.id: span.result for span in ran if span.call and span.call.id}
    kept = [(span, _filled(span.messages, results)) for span in _longest(spoken)]
    known = {call.id for _, messages in kept for one in messages for call in one.calls}
    left = sum(1 for span in ran if span.call and span.call.id not in known)
    names = [group] if len(kept) == 1 else [f"{group}#{number}" for number in range(1, len(kept) + 1)]
    made = [
        Spoken(id, span.line, messages, span.tools) for id, (span, messages) in zip(names, kept, strict=True)
    ]
    return made, left


def _longest(spans: Sequence[Span]) -> list[Span]:
    """The spans whose messages are not the beginning of another's; of equal ones the first."""
    ends, begun = [], set[bytes]()
    for span in spans:
        chain = b""
        for place, message in enumerate(span.messages, 1):
            said = (message.role, message.text.strip(), message.calls, message.call_id)
            chain = hashlib.sha256(chain + msgspec.json.encode(said)).digest()
            if place < len(span.messages):
                begun.add(chain)
        ends.append(chain)
    kept: list[Span] = []
    for span, end in zip(spans, ends, strict=True):
        if end not in begun:
            begun.add(end)
            kept.append(span)
    return kept


def _filled(messages: tuple[Message, ...], results: dict[str, Message | None]) -> tuple[Message, ...]:
    """The messages, with the results of their last calls where spans of tools have them."""
    last = messages[-1]
    answered = [results.get(call.id) for call in last.calls]
    return (*messages, *(one for one in answered if one is not None))


def _tool_result(found: dict[str, Json], value: dict[str, Json], call_id: str) -> Message | None:
    result = found.get("gen_ai.tool.call.result")
    if result is None:
        status = value.get("status")
        said = status.get("message", status.get("description")) if isinstance(status, dict) else None
        kind = found.get("error.type")
        result = ": ".join(one for one in (kind, said) if isinstance(one, str) and one) or None
    if result is None:
        return None
    return Message("tool", _text(result), (), call_id)


def _messages(found: dict[str, Json]) -> Iterator[Message]:
    given = _json(found, "gen_ai.input.messages") or []
    output = _json(found, "gen_ai.output.messages") or []
    if not isinstance(given, list) or not isinstance(output, list):
        raise Unreadable("gen_ai.input.messages or gen_ai.output.messages is not a list")
    system = _json(found, "gen_ai.system_instructions")
    if system and not any(isinstance(one, dict) and one.get("role") == "system" for one in given):
        given = [{"role": "system", "parts": system}, *given]
    for number, entry in enumerate([*given, *output[:1]], 1):  # the others are choices beside the first
        try:
            yield from _of_entry(entry)
        except Unreadable as error:
            raise Unreadable(f"message {number}: {error}") from None


def _of_entry(entry: Json) -> Iterator[Message]:
    """The messages of one entry: its text and calls, or each of its tools' answers."""
    if not isinstance(entry, dict) or not isinstance(entry.get("parts"), list):
        raise Unreadable("has no 'parts'")
    role = "system" if entry.get("role") == "developer" else entry.get("role")
    if role not in _ROLES:
        raise Unreadable("'role' is not one of system, user, assistant, tool")
    texts: list[str] = []
    left_out: list[str] = []
    calls: list[LoggedCall] = []
    answers: list[Message] = []
    for part in entry["parts"]:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("content"), str):
            texts.append(part["content"])
        elif kind == "tool_call":
            calls.append(read_call(part, part.get("id")))
        elif kind == "tool_call_response":
            response = part.get("response", part.get("result"))
            answers.append(Message("tool", _text(response), (), name(part.get("id"))))
        elif kind in ("blob", "file", "file_data", "uri"):
            left_out.append(_LEFT_OUT.get(str(part.get("modality")), "file"))
        elif kind not in ("reasoning", "thinking"):
            raise Unreadable("a part is of a kind that is not read")
    if calls and role != "assistant":
        raise Unreadable("a call that is not the assistant's")
    if role == "tool" and not answers:
        answers.append(Message("tool", "".join(texts), (), ""))
    if role != "tool" and (texts or calls or left_out or not answers):
        yield Message(role, "".join(texts), tuple(calls), "", tuple(left_out))
    yield from answers


def _text(result: Json) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def _json(found: dict[str, Json], key: str) -> Json:
    """An attribute that is structured, or its JSON text."""
    value = found.get(key)
    if not isinstance(value, str):
        return value
    try:
        return decode_text(value)
    except Unreadable as error:
        raise Unreadable(f"{key}: {error}") from None


def _attributes(given: Json) -> dict[str, Json]:
    """Attributes as one object, from OTLP's list of keys and values too."""
    if isinstance(given, dict):
        return given
    found: dict[str, Json] = {}
    for entry in given if isinstance(given, list) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get("key"), str):
            raise Unreadable("its attributes are not those of OTLP")
        found[entry["key"]] = _value(entry.get("value"))
    return found


def _value(given: Any, depth: int = 0) -> Json:
    """A value of OTLP, which names its type."""
    if not isinstance(given, dict) or depth > DEPTH:
        return None
    if isinstance(array := given.get("arrayValue"), dict):
        return [_value(one, depth + 1) for one in array.get("values") or ()]
    if isinstance(pairs := given.get("kvlistValue"), dict):
        entries = [one for one in pairs.get("values") or () if isinstance(one, dict)]
        return {str(one.get("key")): _value(one.get("value"), depth + 1) for one in entries}
    for key in _VALUES:
        if key in given:
            value = given[key]
            whole = key == "intValue" and isinstance(value, str) and value.lstrip("-").isdecimal()
            return int(value) if whole and len(value) < 30 else value
    return None
