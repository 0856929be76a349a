"""Traces as steps: spans of OpenTelemetry, and the runs and observations of tracing services.

A vocabulary says at which paths a record has what it tells. GenAI's attributes are those of OpenTelemetry's
semantic conventions from 1.37 on (docs/own-logs.md). OpenInference (Phoenix) and OpenLLMetry number what they
list: `llm.input_messages.0.message.role`.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from robustbench_tc.own.files import DEPTH, Unreadable
from robustbench_tc.schema import Json

from .chat import Message, answer_text, each, first_of, logged, name, offered, opened
from .steps import Kind, Step, exchange

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("chat", "generate_content", "text_completion", "completion", "LLM"), "model"),
    **dict.fromkeys(("llm", "GENERATION", "generation", "response"), "model"),
    **dict.fromkeys(("invoke_agent", "invoke_workflow", "create_agent", "chain", "AGENT"), "agent"),
    **dict.fromkeys(("execute_tool", "TOOL", "tool", "function"), "tool"),
}
"""By the operation or kind of a record."""


Words: TypeAlias = dict[str, str]
"""Where a vocabulary has what: `kind`, the `group` that steps of one conversation share, `start`, `id`; of a
model `input`, `output`, `system`, `tools`; of a tool's run `tool`, `call_id`, `arguments`, `result`, `error`,
`status`, `end`. Of several paths, between blanks, the first counts that leads somewhere."""

_TRACE = " span.traceId span.trace_id span.context.trace_id span.context"
_START = "span.startTimeUnixNano span.start_time"
_END = "span.endTimeUnixNano span.end_time"
_STATUS = "span.status.message span.status.description"
GENAI = Words(
    start=_START,
    end=_END,
    kind="gen_ai.operation.name",
    group="gen_ai.conversation.id" + _TRACE,
    input="gen_ai.input.messages",
    output="gen_ai.output.messages",
    system="gen_ai.system_instructions",
    tools="gen_ai.tool.definitions",
    tool="gen_ai.tool.name",
    call_id="gen_ai.tool.call.id",
    arguments="gen_ai.tool.call.arguments",
    result="gen_ai.tool.call.result",
    error="error.type",
    status=_STATUS,
)
OPENINFERENCE = Words(
    start=_START,
    end=_END,
    kind="openinference.span.kind",
    group="session.id" + _TRACE,
    input="llm.input_messages",
    output="llm.output_messages",
    tools="llm.tools",
    tool="tool.name",
    call_id="tool_call.id",
    arguments="input.value",
    result="output.value",
    status=_STATUS,
)
OPENLLMETRY = Words(
    start=_START,
    end=_END,
    kind="llm.request.type traceloop.span.kind gen_ai.operation.name",
    group="traceloop.association.properties.session_id" + _TRACE,
    input="gen_ai.prompt",
    output="gen_ai.completion",
    tools="llm.request.functions",
    tool="traceloop.entity.name",
    arguments="traceloop.entity.input",
    result="traceloop.entity.output",
)
LANGSMITH = Words(
    kind="run_type",
    group="trace_id id",
    start="start_time",
    end="end_time",
    input="inputs",
    output="outputs",
    tools="extra.invocation_params.tools extra.invocation_params.functions inputs.tools",
    tool="name",
    call_id="extra.tool_call_id outputs.output.tool_call_id outputs.output.kwargs.tool_call_id",
    arguments="inputs.input inputs",
    result="outputs.output.content outputs.output.kwargs.content outputs.output outputs",
)
LANGFUSE = Words(
    kind="type",
    group="traceId trace_id id",
    start="startTime start_time timestamp",
    end="endTime end_time",
    input="input",
    output="output",
    tools="input.tools metadata.tools modelParameters.tools",
    tool="name",
    arguments="input",
    result="output",
)
AGENTS_SDK = Words(
    kind="span_data.type",
    group="trace_id",
    start="started_at",
    end="ended_at",
    input="span_data.input",
    output="span_data.response span_data.output",
    system="span_data.response.instructions",
    tools="span_data.response.tools",
    tool="span_data.name",
    arguments="span_data.input",
    result="span_data.output",
)
LITELLM = Words(
    input="messages proxy_server_request.body proxy_server_request",
    output="response",
    tools="model_parameters.tools optional_params.tools proxy_server_request.body.tools",
    id="id litellm_call_id request_id",
)


def read_traced(record: Mapping[str, Json], words: Words) -> Step | None:
    """A record as a step; None for one of another kind, and where its content was not recorded."""
    found = {word: _at(record, paths) for word, paths in words.items()}
    operation = found.get("kind")
    kind = _KINDS.get(operation) if isinstance(operation, str) else "model"
    start = str(found.get("start") or "")
    where: dict[str, Any] = {
        "group": name(found.get("group")),
        "start": start.zfill(30) if start.isdecimal() else start,
        "id": name(found.get("id")),
    }
    if kind == "tool":
        messages = tuple(_run(found))
        seconds = _moment(found.get("end")) - _moment(found.get("start"))
        timed = seconds if 0 <= seconds < math.inf else None
        return Step(kind=kind, messages=messages, seconds=timed, **where) if messages else None
    given, answer = found.get("input"), found.get("output")
    if kind is None or given is answer is None:
        return None
    try:
        return exchange(given, answer, kind, offered(found.get("tools")), found.get("system"), **where)
    except Unreadable:
        if kind == "agent":  # it may be asked in any words
            return None
        raise


_DIGITS = 10
"""Of a moment in seconds, until 2286; with more it is in smaller units."""


def _moment(given: Json) -> float:
    """A moment, a text of ISO 8601 or a number, in seconds; `nan` for what is none."""
    try:
        if isinstance(given, str) and not given.isdecimal():
            moment = datetime.fromisoformat(given)
            return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
        number = float(given)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number / 10.0 ** max(0, len(f"{number:.0f}") - _DIGITS)


def _run(found: dict[str, Json]) -> Iterator[Message]:
    """A tool's run: its call, and its result or error if one was recorded."""
    called, call_id = found.get("tool"), name(found.get("call_id"))
    if isinstance(called, str) and called.strip():
        yield Message("assistant", "", (logged(call_id, called, found.get("arguments")),))
        failed = (found.get("error"), found.get("status"))
        said = ": ".join(one for one in failed if isinstance(one, str) and one) or None
        if (result := said if found.get("result") is None else found["result"]) is not None:
            yield Message("tool", answer_text(result)[0], (), call_id)


def _at(tree: Json, paths: str) -> Json:
    """What stands at the first of several paths that leads somewhere; numbered entries as a list."""
    for path in paths.split():
        found = tree
        for part in path.split("."):
            found = first_of(opened(found), part)
        if found is not None:
            return opened(_listed(found))
    return None


# Attributes of spans

_VALUES = ("stringValue", "boolValue", "intValue", "doubleValue", "bytesValue")
_SEGMENTS = 20
"""Of an attribute's name, between dots."""


def spans_of(value: dict[str, Json], depth: int = 0) -> Iterator[dict[str, Json]]:
    """The spans of an OTLP object, or the value that is one."""
    listed = first_of(value, "resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "spans")
    if listed is not None and depth < 4:
        for one in each(listed) or [None]:
            yield from spans_of(one, depth + 1) if isinstance(one, dict) else [{}]
    elif "name" in value or "attributes" in value:  # or a scope without spans
        yield value


def read_span(value: dict[str, Json]) -> Step | None:
    """A span as a step, in the first vocabulary that has something to read in it."""
    if not value:
        raise Unreadable("its spans are not those of OTLP")
    given = value.get("attributes")
    if given is None:  # a row of Phoenix's table
        start = "attributes."
        given = {key.removeprefix(start): one for key, one in value.items() if key.startswith(start)}
    if isinstance(given, list):
        if not all(isinstance(entry, dict) and isinstance(entry.get("key"), str) for entry in given):
            raise Unreadable("its attributes are not those of OTLP")
        given = {entry["key"]: _value(entry.get("value")) for entry in given}
    tree = _tree(given if isinstance(given, dict) else {}) | {"span": value}
    for words in (GENAI, OPENINFERENCE, OPENLLMETRY):
        given, answer = _at(tree, words["input"]), _at(tree, words["output"])
        if not isinstance(given, list | None) or not isinstance(answer, list | None):
            raise Unreadable(f"{words['input']} or {words['output']} is not a list")
        is_its = given is not None or _at(tree, words["kind"]) is not None
        if is_its and (step := read_traced(tree, words)) is not None:
            return step
    return None


class _Branch(dict[str, Any]):
    """What names with dots lead to."""


def _tree(given: Mapping[str, Json]) -> _Branch:
    """Values by the parts of their names."""
    tree = _Branch()
    for key, value in given.items():
        *path, last = key.split(".", _SEGMENTS)
        here: Json = tree
        for part in path:
            here = here.setdefault(part, _Branch()) if isinstance(here, dict) else None
        if isinstance(here, dict):
            here.setdefault(last, value)
    return tree


def _listed(given: Json) -> Json:
    if isinstance(given, list):
        return list(map(_branched, given))
    if not isinstance(given, _Branch):
        return given
    found: dict[str, Json] = {key: _listed(value) for key, value in given.items()}
    if all(key.isdecimal() and len(key) < 10 for key in found):
        return [found[key] for key in sorted(found, key=int)]
    return found


def _branched(entry: Json) -> Json:
    """An entry of Phoenix's table, whose own names have dots; any other as it is."""
    if isinstance(entry, dict) and any(key.startswith(("message.", "tool_call.", "tool.")) for key in entry):
        return _listed(_tree(entry))
    return entry


def _value(given: Any, depth: int = 0) -> Json:
    """A value of OTLP, which names its type."""
    if not isinstance(given, dict) or depth > DEPTH:
        return None
    if isinstance(array := given.get("arrayValue"), dict):
        return [_value(one, depth + 1) for one in array.get("values") or ()]
    if isinstance(pairs := given.get("kvlistValue"), dict):
        entries = [one for one in pairs.get("values") or () if isinstance(one, dict)]
        return {str(one.get("key")): _value(one.get("value"), depth + 1) for one in entries}
    value = first_of(given, *_VALUES)
    whole = "intValue" in given and isinstance(value, str) and value.lstrip("-").isdecimal()
    return int(value) if whole and len(value) < 30 else value
