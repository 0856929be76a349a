"""The Responses API with stateless input: its items as chat messages, and back."""

from collections.abc import Iterator, Mapping

from robustbench_tc.schema import Json

from . import sse, usage
from .chat import Chat, Split, calls_of
from .dialect import ITEMS, RAW, Said, with_tools
from .offer import Offer
from .responses_stream import ResponsesStream, message_of
from .session import Refused

STATEFUL = ("previous_response_id", "conversation")
INSTRUCTIONS = "_instructions"


class Responses:
    """`/responses`."""

    flat: bool = True
    usage: tuple[str, ...] = usage.RESPONSES
    done: bytes = b""

    def read(self, body: Chat) -> Chat:
        for name in STATEFUL:
            if body.get(name) is not None:
                raise Refused(f"'{name}' is not supported: send the whole conversation as 'input'")
        given = body.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
            raise Refused("the body has no 'input' that is a text or a list of items")
        if any(one.get("type") == "item_reference" for one in items):
            raise Refused("'item_reference' is not supported: send the items themselves")
        if body.get("background"):
            raise Refused("'background' is not supported: wait for the reply")
        messages = list(_messages(items))
        if isinstance(body.get("instructions"), str):
            messages.insert(0, {"role": "system", "content": body["instructions"], INSTRUCTIONS: True})
        return {**body, "messages": messages}

    def write(self, body: Chat, messages: list[Chat], tools: list[Json] | None, offered: Offer) -> Chat:
        left_out = ("messages", "input", "instructions")
        written = {name: value for name, value in body.items() if name not in left_out}
        items: list[Json] = []
        for message in messages:
            if message.get(INSTRUCTIONS):
                written["instructions"] = message["content"]
            else:
                items += _items(message)
        written["input"] = items
        return with_tools(written, tools, offered)

    def said(self, parsed: Json) -> Said | None:
        output = parsed.get("output") if isinstance(parsed, dict) else None
        if not isinstance(output, list) or not all(isinstance(one, dict) for one in output):
            return None
        message = message_of(output)
        cut = parsed.get("status") == "incomplete"
        return Said(message, "length" if cut else "tool_calls" if message.get("tool_calls") else "stop")

    def reply(self, parsed: Chat, found: Split) -> Chat:
        return {**parsed, "output": _items(found.out)}

    def stream(self, offered: Offer, before: Json) -> ResponsesStream:
        return ResponsesStream(offered, before)

    def written(self, chunk: Chat) -> bytes:
        return sse.written(chunk, str(chunk.get("type")))

    def failure(self, said: str) -> bytes:
        body = {"type": "error", "code": "rbtc_proxy_error", "message": said, "param": None}
        return sse.written(body, "error")


def _messages(items: list[Chat]) -> Iterator[Chat]:
    """Items as chat messages: what a model said in one reply is one message."""
    reply: list[Chat] = []
    for item in items:
        kind, role = item.get("type", "message"), item.get("role")
        is_result = str(kind).endswith("_output")
        if not is_result and (role == "assistant" or kind != "message"):
            reply.append(item)
            continue
        if reply:
            yield message_of(reply)
            reply = []
        if is_result:
            call = str(item.get("call_id"))
            yield {"role": "tool", "tool_call_id": call, "content": item.get("output"), RAW: item}
        else:
            yield {"role": str(role), "content": item.get("content"), RAW: item}
    if reply:
        yield message_of(reply)


def _items(message: Chat) -> list[Json]:
    """A chat message as items."""
    if message.get("role") == "assistant":
        return list(_said(message))
    raw, content = message.get(RAW), message.get("content")
    if message.get("role") == "tool":
        base = raw if isinstance(raw, Mapping) else {"type": "function_call_output"}
        return [{**base, "call_id": message.get("tool_call_id"), "output": content}]
    if isinstance(raw, Mapping):
        return [dict(raw) if raw.get("content") == content else {**raw, "content": content}]
    return [{"role": message.get("role"), "content": content}]


def _said(message: Chat) -> Iterator[Json]:
    """A reply's items: its calls as the message has them, everything else as it was."""
    calls = {call.id: call for call in calls_of(message)}
    items = message.get(ITEMS)
    for item in items if isinstance(items, list) else ():
        if item.get("type") != "function_call":
            yield item
        elif (call := calls.pop(str(item.get("call_id")), None)) is not None:
            yield {**item, "name": call.name, "arguments": call.arguments}
    if items is None and isinstance(message.get("content"), str):
        yield {"role": "assistant", "content": message["content"]}
    for call in calls.values():
        yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
