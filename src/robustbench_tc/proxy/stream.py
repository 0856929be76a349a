"""A streamed reply of chat completions in the agent's names.

Text goes on as it comes. Of a call the fragments are held until its name is whole, which it is once arguments
follow; where the arguments decide what the call means, until the reply ends.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from robustbench_tc.schema import Json

from .chat import Chat, Split, split
from .offer import Offer
from .usage import CHAT, counted

MOST_CALLS = 1_000
MOST_REST = 10
"""Chunks without a choice that are kept for the end, where their usage stands; the last ones."""


@dataclass
class _Call:
    """A call in pieces."""

    id: Json = None
    kind: str = "function"
    name: str = ""
    arguments: str = ""
    place: int | None = None
    """Among the calls that go out; None: held so far."""


class ChatStream:
    """One reply of the model's; several, where the door answers calls itself, go out as one."""

    def __init__(self, offered: Offer, before: "ChatStream | None" = None) -> None:
        """`before`: the reply that the door has answered, whose stream this one continues."""
        self._offer = offered
        self._calls: dict[int, _Call] = {}
        self._out = 0
        self._text: list[str] = []
        self._other: Chat = {}
        self._begun: Chat | None = None if before is None else before._begun
        self._continues = before is not None
        self._last: Chat | None = None
        self._rest: list[Chat] = []
        """Chunks after the end of the reply (its usage)."""
        self._before: dict[str, int] = {} if before is None else before.tokens
        """Tokens of the replies that the door has answered."""
        self._usage: Json = None
        self.finish: str | None = None
        self.failed: Json = None
        """What the server said went wrong in the middle of the reply."""

    @property
    def tokens(self) -> dict[str, int]:
        """Of this reply and those before it."""
        return counted(CHAT, self._before, self._usage)

    def feed(self, chunk: Json) -> Iterator[Chat]:
        """What goes out because of a chunk."""
        if not isinstance(chunk, dict):
            return
        if "error" in chunk and "choices" not in chunk:
            self.failed = chunk
            return
        self._begin(chunk)
        if isinstance(chunk.get("usage"), dict):
            self._usage = chunk["usage"]  # some servers count on with every chunk: the last one holds
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            self._rest = [*self._rest[-MOST_REST:], chunk]
            return
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        fragments = delta.get("tool_calls")
        others = {name: value for name, value in delta.items() if name != "tool_calls"}
        if self._continues:
            others.pop("role", None)
        if isinstance(delta.get("content"), str):
            self._text.append(delta["content"])
        if others:
            yield self._chunk(chunk, {**choice, "delta": others, "finish_reason": None})
        for fragment in fragments if isinstance(fragments, list) else ():
            yield from self._fragment(fragment, chunk, choice)
        if choice.get("finish_reason") is not None:
            self.finish = str(choice["finish_reason"])
            self._last = {**chunk, "choices": [{**choice, "delta": {}}]}
            if "usage" in chunk and chunk["usage"] is not None:
                self._rest.append({**chunk, "choices": []})
                self._last["usage"] = None

    def _begin(self, chunk: Chat) -> None:
        if self._begun is None:
            self._begun = {name: chunk[name] for name in ("id", "created", "model") if name in chunk}

    def _chunk(self, chunk: Chat, choice: Json) -> Chat:
        return {**chunk, **(self._begun or {}), "choices": [choice]}

    def _fragment(self, fragment: Json, chunk: Chat, choice: Chat) -> Iterator[Chat]:
        if not isinstance(fragment, Mapping):
            return
        index = fragment.get("index")
        index = index if isinstance(index, int) else len(self._calls)
        if index not in self._calls and len(self._calls) >= MOST_CALLS:
            return
        call = self._calls.setdefault(index, _Call())
        function: Any = fragment.get("function")
        function = function if isinstance(function, Mapping) else {}
        if fragment.get("id"):
            call.id = fragment["id"]
        if isinstance(fragment.get("type"), str):
            call.kind = fragment["type"]
        if isinstance(function.get("name"), str):
            call.name += function["name"]
        more = function.get("arguments")
        more = more if isinstance(more, str) else ""
        call.arguments += more
        if call.place is not None:
            if more:
                yield self._said(chunk, choice, {"index": call.place, "function": {"arguments": more}})
            return
        before = (one for at, one in self._calls.items() if at < index)
        is_next = all(one.place is not None for one in before)  # the order of the calls is kept
        if call.arguments and is_next and not self._offer.needs_arguments(call.name):
            meant = self._offer.meant(call.name, call.arguments)
            if meant.own is not None:
                yield self._whole(call, meant.own, call.arguments, chunk, choice)

    def _whole(self, call: _Call, own: str, arguments: str, chunk: Chat, choice: Chat) -> Chat:
        call.place, self._out = self._out, self._out + 1
        entry = {
            "index": call.place,
            "id": call.id,
            "type": call.kind,
            "function": {"name": own, "arguments": arguments},
        }
        return self._said(chunk, choice, entry)

    def _said(self, chunk: Chat, choice: Chat, entry: Chat) -> Chat:
        return self._chunk(chunk, {**choice, "delta": {"tool_calls": [entry]}, "finish_reason": None})

    def split(self) -> Split:
        """The reply as a whole, once it has ended."""
        message: Chat = {"role": "assistant", "content": "".join(self._text) or None}
        if self._calls:
            message["tool_calls"] = [
                {"id": one.id, "type": one.kind, "function": {"name": one.name, "arguments": one.arguments}}
                for _, one in sorted(self._calls.items())
            ]
        return split(message, self._offer)

    def rest(self) -> Iterator[Chat]:
        """The calls that were held and do go out."""
        if self._last is None:
            return
        choice = self._last["choices"][0]
        for _, call in sorted(self._calls.items()):
            if call.place is None:
                meant = self._offer.meant(call.name, call.arguments)
                if meant.own is not None:
                    yield self._whole(call, meant.own, meant.arguments, self._last, choice)

    def end(self, *, calls: bool) -> Iterator[Chat]:
        """The end of the reply. `calls`: whether any have gone out."""
        if self._last is not None:
            choice = dict(self._last["choices"][0])
            if not calls and choice["finish_reason"] == "tool_calls":
                choice["finish_reason"] = "stop"
            yield self._chunk(self._last, choice)
        for chunk in self._rest:
            whole = {**chunk, **(self._begun or {})}
            if self._before and isinstance(chunk.get("usage"), dict):
                whole["usage"] = {**chunk["usage"], **self.tokens}
            yield whole
