"""A streamed reply of the Responses API in the agent's names.

An item's name is whole when the item begins. Where the arguments decide what a call means, its events are
held until the item is done. Items and events that go out are numbered in turn.
"""

from collections.abc import Iterator, Mapping

from robustbench_tc.schema import Json

from .chat import Chat, Split, split
from .offer import Offer
from .usage import RESPONSES, counted

_BEGINS = ("response.created", "response.queued", "response.in_progress")
_ENDS = {"response.completed": "stop", "response.incomplete": "length"}
_FAILS = ("response.failed", "error")


def message_of(items: list[Chat]) -> Chat:
    """What a model said in one reply as a chat message, its items beside it."""
    texts = [
        part["text"]
        for item in items
        if item.get("type", "message") == "message"
        for part in (_parts(item.get("content")))
    ]
    calls = [item for item in items if item.get("type") == "function_call"]
    found: Chat = {"role": "assistant", "content": "".join(texts) or None, "_items": items}
    if calls:
        found["tool_calls"] = [
            {
                "id": str(item.get("call_id")),
                "type": "function",
                "function": {"name": item.get("name"), "arguments": item.get("arguments") or ""},
            }
            for item in calls
        ]
    return found


def _parts(content: Json) -> Iterator[Mapping[str, str]]:
    if isinstance(content, str):
        yield {"text": content}
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            yield part


class ResponsesStream:
    """One reply of the model's; several, where the door answers calls itself, go out as one."""

    def __init__(self, offered: Offer, before: "ResponsesStream | None" = None) -> None:
        """`before`: the reply that the door has answered, whose stream this one continues."""
        self._offer = offered
        self._continues = before is not None
        self._id: Json = None if before is None else before._id
        self._sent: list[Json] = [] if before is None else before._sent
        """Items that went out."""
        self._number: int = 0 if before is None else before._number
        self._next: int = 0 if before is None else before._next
        self._places: dict[Json, int] = {}
        self._own: dict[Json, str] = {}
        """By index, the agent's name of a call whose events are passed on."""
        self._waits: set[Json] = set()
        self._items: list[Chat] = []
        self._last: Chat | None = None
        self._before: dict[str, int] = {} if before is None else before.tokens
        """Tokens of the replies that the door has answered."""
        self.finish: str | None = None
        self.failed: Json = None

    def feed(self, event: Json) -> Iterator[Chat]:
        """What goes out because of an event."""
        if not isinstance(event, dict):
            return
        kind, index, item = str(event.get("type")), event.get("output_index"), event.get("item")
        response = event.get("response")
        if kind in _FAILS:
            self.failed = response if isinstance(response, dict) else {"error": event}
        elif kind in _BEGINS:
            if not self._continues:
                self._id = response.get("id") if isinstance(response, dict) else None
                yield self._out(event)
        elif kind in _ENDS and isinstance(response, dict):
            self.finish, self._last = _ENDS[kind], event
        elif not isinstance(index, int):
            yield self._out(event)
        elif kind == "response.output_item.added" and isinstance(item, dict) and _is_call(item):
            yield from self._added(event, index, item)
        elif kind == "response.output_item.done" and isinstance(item, dict):
            self._items.append(item)
            yield from self._done(event, index, item)
        elif index not in self._waits:
            named = {"name": self._own[index]} if index in self._own and "name" in event else {}
            yield self._out({**event, **named}, index)

    def _added(self, event: Chat, index: int, item: Chat) -> Iterator[Chat]:
        name = str(item.get("name"))
        meant = self._offer.meant(name, "")
        if self._offer.needs_arguments(name) or meant.own is None:
            self._waits.add(index)
            return
        self._own[index] = meant.own
        yield self._out({**event, "item": {**item, "name": meant.own}}, index)

    def _done(self, event: Chat, index: int, item: Chat) -> Iterator[Chat]:
        if not _is_call(item):
            self._sent.append(item)
            yield self._out(event, index)
            return
        arguments = item.get("arguments")
        arguments = arguments if isinstance(arguments, str) else ""
        meant = self._offer.meant(str(item.get("name")), arguments)
        if meant.own is None:
            return
        whole = {**item, "name": meant.own, "arguments": meant.arguments}
        if index in self._waits:
            begun = {**event, "type": "response.output_item.added", "item": {**whole, "arguments": ""}}
            yield self._out({**begun, "item": {**begun["item"], "status": "in_progress"}}, index)
            part = {"item_id": item.get("id"), "output_index": index}
            kind = "response.function_call_arguments"
            yield self._out({"type": f"{kind}.delta", **part, "delta": meant.arguments}, index)
            yield self._out({"type": f"{kind}.done", **part, "arguments": meant.arguments}, index)
        self._sent.append(whole)
        yield self._out({**event, "item": whole}, index)

    def _out(self, event: Chat, index: Json = None) -> Chat:
        found = dict(event)
        if index is not None:
            if index not in self._places:
                self._places[index], self._next = self._next, self._next + 1
            found["output_index"] = self._places[index]
        if isinstance(found.get("response"), dict) and self._id is not None:
            found["response"] = {**found["response"], "id": self._id}
        found["sequence_number"], self._number = self._number, self._number + 1
        return found

    @property
    def tokens(self) -> dict[str, int]:
        """Of this reply and those before it."""
        return counted(RESPONSES, self._before, self._last["response"].get("usage") if self._last else None)

    def split(self) -> Split:
        """The reply as a whole, once it has ended."""
        message = message_of(self._items)
        if self.finish == "stop" and message.get("tool_calls"):
            self.finish = "tool_calls"
        return split(message, self._offer)

    def rest(self) -> Iterator[Chat]:
        """Nothing: a call is decided when its item is done."""
        return iter(())

    def end(self, *, calls: bool) -> Iterator[Chat]:
        """The end of the reply, with all that went out."""
        if self._last is not None:
            response = {**self._last["response"], "output": list(self._sent)}
            if self._before and isinstance(response.get("usage"), dict):
                response["usage"] = {**response["usage"], **self.tokens}
            yield self._out({**self._last, "response": response})


def _is_call(item: Json) -> bool:
    return isinstance(item, dict) and item.get("type") == "function_call"
