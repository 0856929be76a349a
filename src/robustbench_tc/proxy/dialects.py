"""How a request, a reply and a stream of an API are read and written: chat completions, and what the APIs
have in common whose replies are lists of items (`responses`, `anthropic`).

Inside a door every conversation is one of chat messages. What another API says beyond them travels in the
keys `_raw` and `_items` and is put back on the way out.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

from robustbench_tc.schema import Json

from .chat import Split, calls_of
from .journal import Called
from .plan import Refused
from .rewrite import Chat
from .scenes import inside
from .sse import DONE

MOST_CALLS = 1_000
RAW, ITEMS = "_raw", "_items"


class Said(NamedTuple):
    """A whole reply."""

    message: Chat
    finish: str | None
    usage: Json = None


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
        self._last: Chat = {}
        """The chunk that ends it; {}: it has not ended."""
        self._usage: Json = None

    def feed(self, event: Json) -> Iterator[Chat]:
        """What goes out because of an event."""
        if not isinstance(event, dict):
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

    def whole_reply(self) -> Said | None:
        """The reply as a whole; None before its end."""
        if not self._last:
            return None
        message: Chat = {"role": "assistant", "content": "".join(self._text) or None}
        if self._calls:
            message["tool_calls"] = [call for _, call in sorted(self._calls.items())]
        return Said(message, str(self._last["choices"][0]["finish_reason"]), self._usage)

    def end(self, found: Split, usage: Mapping[str, int]) -> Iterator[Chat]:
        """What is left to go out at the end. `usage`: of all replies, where they were several."""
        choice = self._last["choices"][0]
        for index, call in enumerate(found.out.get("tool_calls") or ()):
            entry = {"index": index, **call}
            yield self._chunk(self._last, choice, {"tool_calls": [entry]}, {"finish_reason": None})
        stops = not found.sent and choice["finish_reason"] == "tool_calls"
        yield self._chunk(self._last, choice, {}, {"finish_reason": "stop"} if stops else {})
        if self._usage is not None:
            yield {**self._last, **self._begun, "choices": [], "usage": {**self._usage, **usage}}


class ChatCompletions:
    """`/chat/completions`."""

    done: bytes = DONE
    """What ends a stream."""
    stream = ChatStream
    """A reply in pieces."""

    def read_request(self, body: Chat) -> Chat:
        """A request with its conversation in `messages`, and tools as this API lists them. Raises Refused."""
        messages_of(body)
        if body.get("functions"):
            raise Refused("'functions' is not supported: send the tools as 'tools'")
        if body.get("n") not in (None, 1):
            raise Refused("'n' is not supported: ask for one reply")
        return body

    def write(self, body: Chat) -> Chat:
        """A request that `read_request` has read, in the API's own form."""
        return body

    def parse_reply(self, parsed: Json) -> Said | None:
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


def messages_of(body: Chat) -> list[Chat]:
    """The messages of a request. Raises Refused."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        raise Refused("the body has no list of messages")
    return messages


def choice_of(parsed: Json) -> Json:
    """The one choice of a body or a chunk; None where there is none."""
    choices = inside(parsed, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else None


class Itemised(ABC):
    """An API that says a reply as a list of items, each call one of them."""

    done: bytes = b""
    call: ClassVar[str]
    """The type of an item that is a call."""
    call_id: ClassVar[str]
    """Where its id stands."""

    @abstractmethod
    def texts(self, item: Json) -> list[Json]:
        """What an item that is no call says."""

    @abstractmethod
    def arguments(self, item: Chat) -> str:
        """The arguments of a call, as JSON."""

    @abstractmethod
    def called(self, call: Called) -> Chat:
        """The entries of an item for a call."""

    def is_call(self, item: Json) -> bool:
        """Whether an item is a call."""
        return bool(inside(item, "type") == self.call)

    def message(self, items: list[Json]) -> Chat:
        """What a model said in one reply as a chat message, its items beside it."""
        text = "".join(one for item in items for one in self.texts(item) if isinstance(one, str))
        calls = [
            {
                "id": str(item.get(self.call_id)),
                "type": "function",
                "function": {"name": item.get("name"), "arguments": self.arguments(item)},
            }
            for item in items
            if self.is_call(item)
        ]
        found: Chat = {"role": "assistant", "content": text or None, ITEMS: items}
        return {**found, "tool_calls": calls} if calls else found

    def items(self, message: Chat) -> list[Json]:
        """The items of a reply: its calls as the message has them, everything else as it was."""
        calls = {call["id"]: call for call in calls_of(message)}
        found: list[Json] = []
        for item in message.get(ITEMS) or ():
            if not self.is_call(item):
                found.append(item)
            elif (call := calls.pop(str(item.get(self.call_id)), None)) is not None:
                found.append({**item, **self.called(call)})
        return [*found, *({"type": self.call, **self.called(call)} for call in calls.values())]


class ItemStream:
    """A reply of items in pieces, and those that the door has answered before it: items go on as they come,
    but for calls, which the end brings. Its methods are those of `ChatStream`."""

    def __init__(self, index: str) -> None:
        """`index`: where an event says which item it is about."""
        self._index = index
        self.replies = 0
        self.places: dict[tuple[int, Json], int] = {}
        """By reply and place in it where items went out."""
        self.again()

    def again(self) -> None:
        """See `ChatStream`."""
        self.replies += 1
        self.last: Chat = {}
        """The event that ends the reply; {}: it has not ended."""

    def placed(self, event: Chat) -> Chat:
        """An event with its item's place among all that go out."""
        if not isinstance(at := event.get(self._index), int):
            return event
        return {**event, self._index: self.places.setdefault((self.replies, at), len(self.places))}
