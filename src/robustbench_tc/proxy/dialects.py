"""How a request, a reply and a stream of either API are read and written: chat completions, and Responses
with stateless input.

Inside a door every conversation is one of chat messages. What Responses says beyond them travels in the keys
`_raw` and `_items` and is put back on the way out.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from robustbench_tc.schema import Json

from .chat import Split, calls_of
from .plan import Refused
from .rewrite import Chat, Offer
from .scenes import inside
from .sse import DONE

MOST_CALLS = 1_000


class Said(NamedTuple):
    """A whole reply."""

    message: Chat
    finish: str | None
    usage: Json = None


class ChatCompletions:
    """`/chat/completions`."""

    done: bytes = DONE
    """What ends a stream."""

    def read(self, body: Chat) -> Chat:
        """A request with its conversation in `messages`, and tools as this API lists them. Raises Refused."""
        messages = body.get("messages")
        if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
            raise Refused("the body has no list of messages")
        if body.get("functions"):
            raise Refused("'functions' is not supported: send the tools as 'tools'")
        if body.get("n") not in (None, 1):
            raise Refused("'n' is not supported: ask for one reply")
        return body

    def write(self, body: Chat) -> Chat:
        """A request that `read` has read, in the API's own form."""
        return body

    def said(self, parsed: Json) -> Said | None:
        """The reply that a body is; None for anything else."""
        choice = choice_of(parsed)
        message = inside(choice, "message")
        if not isinstance(message, dict) or not isinstance(message.get("tool_calls") or [], list):
            return None
        return Said(message, choice.get("finish_reason"), parsed.get("usage"))

    def reply(self, parsed: Chat, found: Split) -> Chat:
        """The body that the agent gets."""
        choice = {**parsed["choices"][0], "message": found.out}
        if not found.sent and choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"
        return {**parsed, "choices": [choice]}

    def stream(self, offered: Offer) -> "ChatStream":
        """A reply in pieces."""
        return ChatStream()


def choice_of(parsed: Json) -> Json:
    """The one choice of a body or a chunk; None where there is none."""
    choices = inside(parsed, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else None


class ChatStream:
    """A streamed reply in the agent's names: text goes on as it comes, calls once the reply has ended."""

    def __init__(self) -> None:
        self._begun: Chat = {}
        """What all chunks that go out say of the reply."""
        self._replies = 0
        self.again()

    def again(self) -> None:
        """The door has answered the reply: another one follows, and goes out with it."""
        self._replies += 1
        self._text: list[str] = []
        self._calls: dict[int, Chat] = {}
        self._last: Chat | None = None
        self._usage: Json = None

    def feed(self, event: Json) -> Iterator[Chat]:
        """What goes out because of an event."""
        if not isinstance(event, dict):
            return
        if "error" in event and "choices" not in event:
            yield event
            return
        self._begun = self._begun or {
            name: event[name] for name in ("id", "created", "model") if name in event
        }
        choice, usage = choice_of(event), event.get("usage")
        if isinstance(usage, dict):
            self._usage = usage  # some servers count on with every chunk: the last one holds
        if choice is None:
            if not usage:
                yield {**event, **self._begun}
            return
        delta = choice["delta"] if isinstance(choice.get("delta"), dict) else {}
        if isinstance(delta.get("content"), str):
            self._text.append(delta["content"])
        fragments = delta.get("tool_calls")
        for fragment in fragments if isinstance(fragments, list) else ():
            if isinstance(fragment, dict):
                self._add(fragment)
        ends = choice.get("finish_reason") is not None
        left_out = ("tool_calls", "role") if self._replies > 1 else ("tool_calls",)
        others = {name: value for name, value in delta.items() if name not in left_out}
        if others:
            yield self._chunk(event, choice, others, {"finish_reason": None} if ends else {})
        if ends:
            self._last = {name: value for name, value in event.items() if name != "usage"}
            self._last["choices"] = [choice]

    def _add(self, fragment: Chat) -> None:
        """A fragment of a call."""
        index = fragment.get("index")
        index = index if isinstance(index, int) else len(self._calls)
        if index not in self._calls and len(self._calls) >= MOST_CALLS:
            return
        new = {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
        call = self._calls.setdefault(index, new)
        call |= {name: fragment[name] for name in ("id", "type") if fragment.get(name)}
        for name in call["function"]:
            if isinstance(more := inside(fragment, "function", name), str):
                call["function"][name] += more

    def _chunk(self, chunk: Chat, choice: Chat, delta: Chat, more: Chat) -> Chat:
        return {**chunk, **self._begun, "choices": [{**choice, "delta": delta, **more}]}

    def said(self) -> Said | None:
        """The reply as a whole; None before its end."""
        if self._last is None:
            return None
        message: Chat = {"role": "assistant", "content": "".join(self._text) or None}
        if self._calls:
            message["tool_calls"] = [call for _, call in sorted(self._calls.items())]
        return Said(message, str(self._last["choices"][0]["finish_reason"]), self._usage)

    def end(self, found: Split, usage: Mapping[str, int]) -> Iterator[Chat]:
        """What is left to go out at the end. `usage`: of all replies, where they were several."""
        assert self._last is not None
        choice = self._last["choices"][0]
        for index, call in enumerate(found.out.get("tool_calls") or ()):
            entry = {"index": index, **call}
            yield self._chunk(self._last, choice, {"tool_calls": [entry]}, {"finish_reason": None})
        stops = not found.sent and choice["finish_reason"] == "tool_calls"
        yield self._chunk(self._last, choice, {}, {"finish_reason": "stop"} if stops else {})
        if self._usage is not None:
            yield {**self._last, **self._begun, "choices": [], "usage": {**self._usage, **usage}}


STATEFUL = ("previous_response_id", "conversation", "background")
RAW, ITEMS, INSTRUCTIONS = "_raw", "_items", "_instructions"

_BEGINS = ("response.created", "response.queued", "response.in_progress")
_ENDS = ("response.completed", "response.incomplete")


class Responses:
    """`/responses`; its methods are those of `ChatCompletions`."""

    done: bytes = b""

    def read(self, body: Chat) -> Chat:
        for name in STATEFUL:
            if body.get(name):
                raise Refused(f"'{name}' is not supported: send the whole conversation as 'input'")
        given = body.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
            raise Refused("the body has no 'input' that is a text or a list of items")
        if any(one.get("type") == "item_reference" for one in items):
            raise Refused("'item_reference' is not supported: send the items themselves")
        messages = list(_messages(items))
        if isinstance(body.get("instructions"), str):
            messages.insert(0, {"role": "system", "content": body["instructions"], INSTRUCTIONS: True})
        found = {**body, "messages": messages}
        if body.get("tools"):
            found["tools"] = [_nested(tool) for tool in body["tools"]]
        return found

    def write(self, body: Chat) -> Chat:
        left_out = ("messages", "input", "instructions")
        written = {name: value for name, value in body.items() if name not in left_out}
        items: list[Json] = []
        for message in body["messages"]:
            if message.get(INSTRUCTIONS):
                written["instructions"] = message["content"]
            else:
                items += _items(message)
        if body.get("tools"):
            written["tools"] = [_flat(tool) for tool in body["tools"]]
        return {**written, "input": items}

    def said(self, parsed: Json) -> Said | None:
        output = parsed.get("output") if isinstance(parsed, dict) else None
        if not isinstance(output, list) or not all(isinstance(one, dict) for one in output):
            return None
        message, finish = _message(output), "stop"
        if message.get("tool_calls"):
            finish = "tool_calls"
        if parsed.get("status") == "incomplete":
            finish = "length"
        return Said(message, finish, parsed.get("usage"))

    def reply(self, parsed: Chat, found: Split) -> Chat:
        return {**parsed, "output": _items(found.out)}

    def stream(self, offered: Offer) -> "ResponsesStream":
        return ResponsesStream(offered)


def _nested(tool: Json) -> Json:
    """A function as chat completions list it; another tool as it is."""
    if inside(tool, "type") != "function":
        return tool
    return {"function": {name: value for name, value in tool.items() if name != "type"}, RAW: {}}


def _flat(tool: Json) -> Json:
    """The same in this API. Of a function that comes in it would make the schema strict."""
    function = inside(tool, "function")
    return {"type": "function", **tool.get(RAW, {"strict": False}), **function} if function else tool


def _messages(items: list[Chat]) -> Iterator[Chat]:
    """Items as chat messages: what a model said in one reply is one message."""
    for is_reply, group in groupby(items, _is_of_a_reply):
        if is_reply:
            yield _message([*group])
            continue
        for item in group:
            if _is_result(item):
                call = str(item.get("call_id"))
                yield {"role": "tool", "tool_call_id": call, "content": item.get("output"), RAW: item}
            else:
                yield {"role": str(item.get("role")), "content": item.get("content"), RAW: item}


def _is_result(item: Chat) -> bool:
    return str(item.get("type")).endswith("_output")


def _is_of_a_reply(item: Chat) -> bool:
    said = item.get("role") == "assistant" or item.get("type", "message") != "message"
    return said and not _is_result(item)


def _message(items: list[Chat]) -> Chat:
    """What a model said in one reply as a chat message, its items beside it."""
    texts: list[Json] = []
    for item in items:
        content = item.get("content") if item.get("type", "message") == "message" else None
        parts = [{"text": content}] if isinstance(content, str) else content
        texts += [inside(part, "text") for part in parts] if isinstance(parts, list) else []
    calls = [
        {
            "id": str(item.get("call_id")),
            "type": "function",
            "function": {"name": item.get("name"), "arguments": item.get("arguments") or ""},
        }
        for item in items
        if _is_call(item)
    ]
    text = "".join(one for one in texts if isinstance(one, str))
    found: Chat = {"role": "assistant", "content": text or None, ITEMS: items}
    return {**found, "tool_calls": calls} if calls else found


def _items(message: Chat) -> list[Json]:
    """A chat message as items: of a reply its calls as the message has them, everything else as it was."""
    raw, content = message.get(RAW), message.get("content")
    if message.get("role") == "tool":
        base = raw if isinstance(raw, Mapping) else {"type": "function_call_output"}
        return [{**base, "call_id": message.get("tool_call_id"), "output": content}]
    if isinstance(raw, Mapping):
        return [dict(raw) if raw.get("content") == content else {**raw, "content": content}]
    calls = {call["id"]: call for call in calls_of(message)}
    items = message.get(ITEMS)
    found: list[Json] = []
    for item in items if isinstance(items, list) else ():
        if not _is_call(item):
            found.append(item)
        elif (call := calls.pop(str(item.get("call_id")), None)) is not None:
            found.append({**item, "name": call["name"], "arguments": call["arguments"]})
    if items is None and (message.get("role") != "assistant" or isinstance(content, str)):
        found.append({"role": message.get("role"), "content": content})
    for call in calls.values():
        entry = {"call_id": call["id"], "name": call["name"], "arguments": call["arguments"]}
        found.append({"type": "function_call", **entry})
    return found


def _is_call(item: Json) -> bool:
    return isinstance(item, dict) and item.get("type") == "function_call"


class ResponsesStream:
    """A streamed reply in the agent's names: the events of a call are held until its item is done, what goes
    out is numbered in turn. Its methods are those of `ChatStream`."""

    def __init__(self, offered: Offer) -> None:
        self._offer = offered
        self._replies, self._number, self._begun = 0, 0, 0
        self._id: Json = None
        self._sent: list[Json] = []
        """Items that went out."""
        self.again()

    def again(self) -> None:
        self._replies += 1
        self._places: dict[int, int] = {}
        self._calls: set[int] = set()
        self._last: Chat | None = None

    def feed(self, event: Json) -> Iterator[Chat]:
        if not isinstance(event, dict):
            return
        kind, index, item = str(event.get("type")), event.get("output_index"), event.get("item")
        response = event.get("response")
        if kind in _BEGINS:
            if self._replies == 1:
                self._id = response.get("id") if isinstance(response, dict) else None
                yield self._out(event)
        elif kind in _ENDS and isinstance(response, dict):
            self._last = event
        elif not isinstance(index, int):
            yield self._out(event)
        elif kind == "response.output_item.done" and isinstance(item, dict):
            if _is_call(item):
                yield from self._called(event, index, item)
            else:
                self._sent.append(item)
                yield self._out(event, index)
        elif kind == "response.output_item.added" and _is_call(item):
            self._calls.add(index)
        elif index not in self._calls:
            yield self._out(event, index)

    def _called(self, event: Chat, index: int, item: Chat) -> Iterator[Chat]:
        """All events of a call that is whole, where it goes out."""
        arguments = item.get("arguments")
        meant = self._offer.meant(str(item.get("name")), arguments if isinstance(arguments, str) else "")
        if meant.own is None:
            return
        whole = {**item, "name": meant.own, "arguments": meant.arguments}
        begun = {**whole, "arguments": "", "status": "in_progress"}
        yield self._out({**event, "type": "response.output_item.added", "item": begun}, index)
        part, kind = {"item_id": item.get("id")}, "response.function_call_arguments"
        yield self._out({"type": f"{kind}.delta", **part, "delta": meant.arguments}, index)
        yield self._out({"type": f"{kind}.done", **part, "arguments": meant.arguments}, index)
        yield self._out({**event, "item": whole}, index)
        self._sent.append(whole)

    def _out(self, event: Chat, index: int | None = None) -> Chat:
        found = dict(event)
        if index is not None:
            if index not in self._places:
                self._places[index], self._begun = self._begun, self._begun + 1
            found["output_index"] = self._places[index]
        if isinstance(found.get("response"), dict) and self._id is not None:
            found["response"] = {**found["response"], "id": self._id}
        found["sequence_number"], self._number = self._number, self._number + 1
        return found

    def said(self) -> Said | None:
        return Responses().said(inside(self._last, "response"))

    def end(self, found: Split, usage: Mapping[str, int]) -> Iterator[Chat]:
        assert self._last is not None
        response = {**self._last["response"], "output": list(self._sent)}
        if usage and isinstance(response.get("usage"), dict):
            response["usage"] = {**response["usage"], **usage}
        yield self._out({**self._last, "response": response})
