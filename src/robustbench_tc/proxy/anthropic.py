"""Anthropic's Messages API: how its requests, replies and streams are read and written.

Results stand in the user's messages there, several in one; inside a door each is a message of its own.
Thinking, its signatures and cache marks stay as they are.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby

from robustbench_tc.schema import Json

from .chat import Split
from .dialects import ITEMS, MOST_CALLS, RAW, Itemised, ItemStream, Said, messages_of
from .journal import Called
from .rewrite import Chat, entry_of, listed_as
from .scenes import inside, loaded

_SCHEMA = "input_schema"
_FINISH = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}
"""Why a reply ends, in the words of chat completions."""


class MessagesStream(ItemStream):
    """A streamed reply in the agent's names."""

    def __init__(self) -> None:
        super().__init__("index")

    def again(self) -> None:
        super().again()
        self._blocks: dict[int, Chat] = {}
        self._pieces: dict[tuple[int, str], list[str]] = defaultdict(list)
        self._usage: Chat = {}

    def feed(self, event: Json) -> Iterator[Chat]:
        kind, index = inside(event, "type"), inside(event, "index")
        usage = inside(event, "message", "usage") or inside(event, "usage")
        self._usage |= usage if isinstance(usage, dict) else {}
        if kind == "message_delta" and isinstance(event.get("delta"), dict):
            self.last = event
        elif isinstance(index, int) and (index in self._blocks or len(self._blocks) < MOST_CALLS):
            if not MESSAGES.is_call(self._grown(index, event)):
                yield self.placed(event)
        elif kind == "message_start" and self.replies > 1:
            return
        elif isinstance(event, dict) and kind != "message_stop":
            yield event

    def _grown(self, index: int, event: Chat) -> Chat:
        """The block of an event, with what that adds to it."""
        begun, delta = event.get("content_block"), event.get("delta")
        block = self._blocks.setdefault(index, dict(begun) if isinstance(begun, dict) else {})
        for name, more in delta.items() if isinstance(delta, dict) else ():
            if name == "citation":
                block["citations"] = [*(block.get("citations") or ()), more]
            elif name != "type" and isinstance(more, str):
                self._pieces[index, name].append(more)
        return block

    def whole_reply(self) -> Said | None:
        if not self.last:
            return None
        for (index, name), pieces in self._pieces.items():
            block, text = self._blocks[index], "".join(pieces)
            if name == "partial_json":
                block["input"] = loaded(text)
            else:
                block[name] = f"{block.get(name) or ''}{text}"
        content = [block for _, block in sorted(self._blocks.items())]
        return MESSAGES.parse_reply({**self.last["delta"], "content": content, "usage": self._usage})

    def end(self, found: Split, usage: Mapping[str, int]) -> Iterator[Chat]:
        delta = MESSAGES.reply(self.last["delta"], found)
        calls = [block for block in delta.pop("content") if MESSAGES.is_call(block)]
        for index, block in enumerate(calls, len(self.places)):
            begun = {**block, "input": {}}
            yield {"type": "content_block_start", "index": index, "content_block": begun}
            part = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield {"type": "content_block_delta", "index": index, "delta": part}
            yield {"type": "content_block_stop", "index": index}
        all_usage = {"usage": {**self._usage, **usage}} if usage else {}
        yield {**self.last, "delta": delta, **all_usage}
        yield {"type": "message_stop"}


class Messages(Itemised):
    """`/messages`; its methods are those of `ChatCompletions`."""

    stream = MessagesStream
    call = "tool_use"
    call_id = "id"

    def read_request(self, body: Chat) -> Chat:
        messages = [found for message in messages_of(body) for found in self._messages(message)]
        if "system" in body:
            messages.insert(0, {"role": "system", "content": body["system"]})
        read = {**body, "messages": messages}
        if body.get("tools"):  # those that the server carries out have no schema
            read["tools"] = [
                entry_of(tool, _SCHEMA) if inside(tool, _SCHEMA) else tool for tool in body["tools"]
            ]
        return read

    def _messages(self, message: Chat) -> Iterator[Chat]:
        """A message as chat messages: one for each result in it, then one for the rest."""
        content = message.get("content")
        if not isinstance(content, list):
            yield dict(message)
        elif message.get("role") == "assistant":
            yield self.message(content)
        else:
            results = [block for block in content if inside(block, "type") == "tool_result"]
            for block in results:
                call = str(block.get("tool_use_id"))
                yield {"role": "tool", "tool_call_id": call, "content": block.get("content"), RAW: block}
            if len(results) < len(content):
                rest = [block for block in content if inside(block, "type") != "tool_result"]
                yield {**message, "content": rest}

    def write(self, body: Chat) -> Chat:
        written: Chat = {**body, "messages": []}
        for role, group in groupby(body["messages"], _role):
            parts = [self._content(message) for message in group]
            several = [block for part in parts for block in _blocks(part)]
            content = parts[0] if len(parts) == 1 else several
            if role == "system":
                written["system"] = content
            else:
                written["messages"].append({"role": role, "content": content})
        if body.get("tools"):
            written["tools"] = [listed_as(entry, _SCHEMA) for entry in body["tools"]]
        return written

    def _content(self, message: Chat) -> Json:
        """What a chat message says: of a result and a reply as blocks."""
        content = message.get("content")
        if message.get("role") == "tool":
            raw = message.get(RAW) or {"type": "tool_result", "tool_use_id": message.get("tool_call_id")}
            return [{**raw, "content": content} if content is not None else raw]
        if message.get("role") == "assistant":
            return [*(() if ITEMS in message else _blocks(content)), *self.items(message)]
        return content

    def parse_reply(self, parsed: Json) -> Said | None:
        content = inside(parsed, "content")
        if not isinstance(content, list):
            return None
        reason = parsed.get("stop_reason")
        return Said(self.message(content), _FINISH.get(str(reason), reason), parsed.get("usage"))

    def reply(self, parsed: Chat, found: Split) -> Chat:
        written = {**parsed, "content": self.items(found.out)}
        if not found.sent and parsed.get("stop_reason") == "tool_use":
            written["stop_reason"] = "end_turn"
        return written

    def texts(self, item: Json) -> list[Json]:
        return [inside(item, "text")]

    def arguments(self, item: Chat) -> str:
        return json.dumps(item.get("input"))

    def called(self, call: Called) -> Chat:
        given = loaded(call["arguments"])
        return {"id": call["id"], "name": call["name"], "input": given if isinstance(given, dict) else {}}


def _role(message: Chat) -> Json:
    return {"tool": "user", "developer": "system"}.get(str(message.get("role")), message.get("role"))


def _blocks(content: Json) -> list[Json]:
    """What a message says as blocks."""
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


MESSAGES = Messages()
