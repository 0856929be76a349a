"""A model that calls everything it is offered, and notices what a provider would refuse."""

import json
import threading
from collections import defaultdict
from typing import Any

from robustbench_tc.eval import predictions
from robustbench_tc.proxy.journal import Exchange
from robustbench_tc.proxy.scored import attempts
from robustbench_tc.schema import Prediction, Sample, content_hash

from ..eval.test_agents import settings_of
from . import anthropic_server, items_server
from .wire import Answer, Seen

Json = Any


def predictions_of(lines: list[Exchange], rows: dict[str, Sample]) -> list[Prediction]:
    """One for each session with an answer."""
    settings = settings_of("fc")
    return [
        predictions.combine(one.row, content_hash(one.row), settings, *one.answers)
        for one in attempts(lines, rows, settings)
        if one.answers[-1].status != "request_error"
    ]


def filled(schema: Json, deep: int = 0) -> Json:
    """A value that fits a schema in the eyes of `worlds.fit`."""
    if not isinstance(schema, dict) or deep > 6:
        return "x"
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        inner = schema.get("properties") or {}
        return {name: filled(inner.get(name), deep + 1) for name in schema.get("required") or ()}
    if kind == "array":
        return [filled(schema.get("items"), deep + 1)]
    return {"integer": 1, "number": 1.5, "boolean": True}.get(str(kind), "x")


def chat_reply(calls: list[tuple[str, str]], text: str | None = None, prefix: str = "call_") -> Json:
    message: dict[str, Json] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"{prefix}{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(calls)
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }


def in_pieces(reply: Json, size: int) -> list[bytes]:
    """A reply as a stream: names and arguments in fragments of so many characters, cut anywhere."""
    message, chunks = reply["choices"][0]["message"], []

    def chunk(delta: Json, finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        base = {name: reply[name] for name in ("id", "created", "model")}
        chunks.append({**base, "object": "chat.completion.chunk", "choices": [choice]})

    chunk({"role": "assistant", "content": "" if message["content"] else None})
    text = message["content"] or ""
    for at in range(0, len(text), size):
        chunk({"content": text[at : at + size]})
    for index, call in enumerate(message.get("tool_calls") or ()):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function",
                               "function": {"name": name[:size], "arguments": ""}}]})  # fmt: skip
        for at in range(size, len(name), size):
            chunk({"tool_calls": [{"index": index, "function": {"name": name[at : at + size]}}]})
        for at in range(0, len(arguments), size):
            chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments[at : at + size]}}]})
    chunk({}, reply["choices"][0]["finish_reason"])
    usage = {"id": reply["id"], "object": "chat.completion.chunk", "choices": [], "usage": reply["usage"]}
    events = [*chunks, {**usage, "created": 1, "model": "m"}]
    stream = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events) + b"data: [DONE]\n\n"
    return [stream[at : at + 7 * size] for at in range(0, len(stream), 7 * size)]


def sound(messages: list[Json]) -> None:
    """Every call is answered once, right after the reply that made it, as providers demand."""
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_calls, "a result without its call"
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls, "a call without its result"
        open_calls = [call["id"] for call in message.get("tool_calls") or ()]
    assert not open_calls, "a call without its result"


STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}
SOUND = {"completions": sound, "responses": items_server.sound, "messages": anthropic_server.sound}
"""What providers demand of a conversation, by the last part of the path."""


class Script:
    """Says one reply after the other, of any API, whatever it is asked, and the last one for ever."""

    def __init__(self, *replies: Json) -> None:
        self.replies = replies
        self.bodies: list[Json] = []

    def __call__(self, seen: Seen) -> Answer:
        body = json.loads(seen.body)
        self.bodies.append(body)
        reply = self.replies[min(len(self.bodies), len(self.replies)) - 1]
        SOUND[seen.path.rpartition("/")[2]](body.get("messages", body.get("input")))
        if isinstance(reply, Answer):
            return reply
        return Answer(pieces(reply), headers=STREAM) if body.get("stream") else whole(reply)


def whole(reply: Json) -> Answer:
    return Answer([json.dumps(reply).encode()])


def pieces(reply: Json) -> list[bytes]:
    """A reply of any API as a stream."""
    if "output" in reply:
        return items_server.in_events(reply)
    if "choices" in reply:
        return in_pieces(reply, 4)
    stream = anthropic_server.stream_of(reply)
    return [stream[at : at + 37] for at in range(0, len(stream), 37)]


class CallsAll:
    """First calls every tool, then the last one alone, then says it is done."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[Json]] = defaultdict(list)
        self.made: dict[str, int] = defaultdict(int)
        self.wrong: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, seen: Seen) -> Answer:
        body = json.loads(seen.body)
        key = body["user"]
        try:
            sound(body["messages"])
        except AssertionError as error:
            self.wrong.append(f"{key}: {error}")
        with self._lock:
            before = self.bodies[key]
            if before and body["messages"][: len(before[-1]["messages"])] != before[-1]["messages"]:
                self.wrong.append(f"{key}: what was sent before reads otherwise now")
            before.append(body)
            turn = len(before)
        functions = [tool["function"] for tool in body.get("tools") or ()]
        calls = [
            (one["name"], json.dumps(filled({"type": "object", **one["parameters"]}))) for one in functions
        ]
        if turn == 2:
            calls = calls[-1:]
        elif turn > 2:
            calls = []
        self.made[key] += len(calls)
        reply = chat_reply(calls, None if calls else "Done.", f"call_{turn}_")
        if body.get("stream"):
            return Answer(in_pieces(reply, 1 + turn), headers={"Content-Type": "text/event-stream"})
        return Answer([json.dumps(reply).encode()])
