"""The formats of logs: by which keys a record of each is known, and how it becomes a step."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from robustbench_tc.own.files import Unreadable
from robustbench_tc.schema import Json

from . import spans
from .chat import each, first_of, name, offered, opened, read_messages, replied
from .spans import read_traced
from .steps import Step, exchange

Record: TypeAlias = dict[str, Json]


class Format(NamedTuple):
    """A format of logs."""

    name: str
    marks: tuple[str, ...]
    """Keys that a record of it has: all that one of these says."""
    read: Callable[[Any], Step | None]
    """A record as a step; None for one that tells of no conversation. Raises Unreadable."""
    records: Callable[[Any], Iterable[Record]] | None = None
    """The records inside of one; None: there are no inner ones."""


UNKNOWN = "neither chat messages nor spans, nor a record of another log that is known (docs/own-logs.md)"
NOTHING = "records in which no message was recorded"


def format_of(value: Json) -> Format | None:
    """The format of a record; None for what is none."""
    if not isinstance(value, dict):
        return None
    fits = (one for one in FORMATS if any(value.keys() >= set(mark.split()) for mark in one.marks))
    return next(fits, None)


def is_conversation(value: Json) -> bool:
    """Whether a value is a list of messages, or of items of Responses, and not of records."""
    entries = each(value)
    are_messages = (isinstance(one, dict) and ("call_id" in one or format_of(one) is None) for one in entries)
    return bool(entries) and all(are_messages)


def steps_of(value: Json) -> Iterator[Step | Unreadable | str]:
    """What a value of a log tells: steps, why a record cannot be read, and what records tell nothing."""
    if isinstance(value, list) and value and not is_conversation(value):
        for one in value:
            yield from steps_of(one)
        return
    record = {"messages": value} if isinstance(value, list) and value else value
    found = format_of(record)
    inner = list(found.records(record)) if found and found.records else [record]
    if found is None or not inner:
        yield Unreadable(UNKNOWN if found is None else f"{found.name}: nothing is in it")
        return
    for one in inner:
        try:
            yield found.read(one) or f"{found.name}: {NOTHING}"
        except Unreadable as error:
            yield Unreadable(f"{found.name}: {error}")


def _chat(record: Record) -> Step:
    """Messages, or items of Responses, with or without a reply beside them."""
    reply = first_of(record, "response", "output", "completion")
    if reply is None and record.keys() & {"choices", "candidates", "stop_reason"}:
        reply = record
    return exchange(record, reply, "whole" if reply is None else "model", id=name(record.get("id")))


def _pair(record: Record) -> Step:
    """A request and its response, or what of HTTP was kept of them."""
    request, reply = (opened(record[key]) for key in ("request", "response"))
    request = opened(first_of(request, "body", "json")) or request
    reply = opened(first_of(reply, "body", "json")) or reply
    return exchange(request, reply, id=name(record.get("id")))


def _batch_request(record: Record) -> Step:
    body = first_of(record, "body", "params")
    identity = name(record["custom_id"])
    return exchange(body, None, "part", group=identity, id=identity, start="request", begins=True)


def _batch_reply(record: Record) -> Step:
    body = first_of(first_of(record, "response"), "body")
    said = read_messages(replied(body or first_of(record, "result")))
    if not said:
        raise Unreadable("no reply: the request failed")
    return Step(kind="reply", messages=said, group=name(record["custom_id"]), start="response")


def _claude_code(record: Record) -> Step | None:
    ours = record.get("isMeta") or record.get("isApiErrorMessage")
    if record.get("type") not in ("user", "assistant") or ours is True:
        return None
    group = name(record.get("sessionId"))
    if record.get("isSidechain") is True:
        group += f" {name(record.get('agentId')) or 'side chain'}"
    message = record.get("message")
    return Step(
        kind="part", messages=read_messages([message]), group=group, said=name(first_of(message, "id"))
    )


_TAGGED = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_RESULT = re.compile(r"<tool_response>(.*?)</tool_response>", re.DOTALL)


def _sharegpt(record: Record) -> Step:
    """Turns of `from` and `value`; calls are turns of their own, as JSON, or stand in Hermes's tags."""
    entries: list[Json] = []
    for turn in each(opened(record["conversations"])):
        value, role = first_of(turn, "value", "content"), first_of(turn, "from", "role")
        if isinstance(value, str):
            entries += [{"role": role, "content": one.strip()} for one in _RESULT.findall(value)]
            called = [value] if role == "function_call" else _TAGGED.findall(value)
            calls = [opened(one.strip()) for one in called]
            text = "" if role == "function_call" else _RESULT.sub("", _TAGGED.sub("", value)).strip()
            turn = {**turn, "role": "assistant" if calls else role, "content": text}
            if calls:
                turn["tool_calls"] = calls[0] if len(calls) == 1 and isinstance(calls[0], list) else calls
            elif not text and entries and "<tool_response>" in value:
                continue
        entries.append(turn)
    request = {**record, "messages": entries}
    return exchange(request, None, "whole", id=name(record.get("id")))


def _runs(record: Record) -> Iterator[Record]:
    """A run of LangSmith, and those inside."""
    yield record
    for child in each(record.get("child_runs")):
        yield from _runs(child) if isinstance(child, dict) else ()


def _observations(record: Record) -> Iterable[Record]:
    """A trace of Langfuse as its observations, or as itself."""
    inner = [one for one in each(record.get("observations")) if isinstance(one, dict)]
    return inner or [{"type": "AGENT", **record}]


def _samples(record: Record) -> Iterator[Record]:
    """The samples of an Inspect log, each with the tools that its last model was offered."""
    for one in each(record.get("samples")):
        tools = [found for event in each(first_of(one, "events")) if (found := first_of(event, "tools"))]
        identity = f"{first_of(one, 'id')}-{first_of(one, 'epoch')}"
        yield {"messages": first_of(one, "messages"), "id": identity, "tools": tools[-1] if tools else None}


def _simulations(record: Record) -> Iterator[Record]:
    """The trajectories of tau2, without what its users call themselves."""
    world = first_of(record.get("info"), "environment_info")
    defined = first_of(world, "tool_defs")
    listed = defined.values() if isinstance(defined, dict) else ()
    tools = [
        {
            "name": first_of(one, "name"),
            "description": first_of(one, "doc"),
            "parameters": first_of(one, "params"),
        }
        for one in listed
    ]
    for one in each(record["simulations"]):
        entries = [
            entry
            for message in each(first_of(one, "messages"))
            for entry in each(first_of(message, "tool_messages")) or [message]
            if first_of(entry, "requestor") != "user"
            and not (first_of(entry, "role") == "user" and first_of(entry, "tool_calls"))
        ]
        yield {
            "id": first_of(one, "id"),
            "system": first_of(world, "policy"),
            "messages": entries,
            "tools": tools,
        }


def _door(record: Record) -> Step | None:
    """A line of a door's journal: what the agent said since the line before, and the reply to it."""
    heard = record.get("asked")
    if not isinstance(heard, dict):
        return None
    replies = [
        {"role": "assistant", **one, "content": one.get("text")}
        for one in each(record.get("replies"))
        if isinstance(one, dict)
    ]
    return Step(
        kind="part",
        messages=read_messages([*each(heard.get("messages")), *replies[-1:]]),
        tools=offered(heard.get("tools")),
        group=f"{name(record.get('by'))} {name(record['session'])}",
        begins=not heard.get("after"),
    )


FORMATS = (
    Format(
        "OpenTelemetry spans",
        ("resourceSpans", "resource_spans", "scopeSpans", "scope_spans"),
        spans.read_span,
        spans.spans_of,
    ),
    Format("a door's journal", ("session repeat",), _door),
    Format("LangSmith runs", ("run_type",), partial(read_traced, words=spans.LANGSMITH), _runs),
    Format(
        "traces of OpenAI's Agents SDK",
        ("span_data", "object workflow_name"),
        partial(read_traced, words=spans.AGENTS_SDK),
    ),
    Format(
        "a Claude Code session", ("sessionId type", "leafUuid summary", "messageId snapshot"), _claude_code
    ),
    Format("an Inspect log", ("samples eval", "eval plan"), _chat, _samples),
    Format("tau2 trajectories", ("simulations",), _chat, _simulations),
    Format(
        "Langfuse traces",
        ("observations", "traceId type", "trace_id type", "projectId input", "timestamp input output"),
        partial(read_traced, words=spans.LANGFUSE),
        _observations,
    ),
    Format("a span", ("attributes", "attributes.openinference.span.kind"), spans.read_span),
    Format("replies of a batch", ("custom_id response", "custom_id result"), _batch_reply),
    Format("requests of a batch", ("custom_id",), _batch_request),
    Format("LiteLLM's log", ("call_type", "litellm_call_id"), partial(read_traced, words=spans.LITELLM)),
    Format("ShareGPT", ("conversations",), _sharegpt),
    Format("a request and its response", ("request response",), _pair),
    Format("Gemini contents", ("contents", "candidates"), _chat),
    Format("Anthropic messages", ("messages system",), _chat),
    Format("chat messages", ("messages", "choices"), _chat),
    Format("Responses", ("input", "output"), _chat),
)
"""In the order in which they are tried: what a later one has, an earlier one may have too."""
