"""The Responses API, with stateless input: how its requests, replies and streams are read and written."""

from collections.abc import Iterator, Mapping
from itertools import groupby

from robustbench_tc.schema import Json

from .chat import Split
from .dialects import ITEMS, RAW, Itemised, ItemStream, Said
from .journal import Called
from .plan import Refused
from .rewrite import Chat, entry_of, listed_as
from .scenes import inside

STATEFUL = ("previous_response_id", "conversation", "background")
INSTRUCTIONS = "_instructions"
_NEW = {"type": "function", "strict": False}
"""What is said of a function that comes in: else this API would make its schema strict."""

_BEGINS = ("response.created", "response.queued", "response.in_progress")
_ENDS = ("response.completed", "response.incomplete")


class ResponsesStream(ItemStream):
    """A streamed reply in the agent's names, its events numbered in turn."""

    def __init__(self) -> None:
        super().__init__("output_index")
        self._number, self._calls = 0, set[tuple[int, str]]()
        self._id: Json = None
        self._sent: list[Json] = []
        """Items that went out."""

    def feed(self, event: Json) -> Iterator[Chat]:
        if not isinstance(event, dict):
            return
        kind, item, response = str(event.get("type")), event.get("item"), event.get("response")
        here = self.replies, str(event.get("output_index"))
        if kind in _BEGINS:
            if self.replies == 1:
                self._id = inside(response, "id")
                yield self._out(event)
        elif kind in _ENDS and isinstance(response, dict):
            self.last = event
        elif RESPONSES.is_call(item):
            self._calls.add(here)
        elif here not in self._calls:
            if kind == "response.output_item.done":
                self._sent.append(item)
            yield self._out(self.placed(event))

    def _out(self, event: Chat) -> Chat:
        found = {**event, "sequence_number": self._number}
        self._number += 1
        if isinstance(found.get("response"), dict) and self._id is not None:
            found["response"] = {**found["response"], "id": self._id}
        return found

    def whole_reply(self) -> Said | None:
        return RESPONSES.parse_reply(inside(self.last, "response"))

    def end(self, found: Split, usage: Mapping[str, int]) -> Iterator[Chat]:
        calls = [item for item in RESPONSES.items(found.out) if RESPONSES.is_call(item)]
        for index, item in enumerate(calls, len(self.places)):
            about, kind = {"output_index": index}, "response.function_call_arguments"
            begun = {**item, "arguments": "", "status": "in_progress"}
            yield self._out({"type": "response.output_item.added", **about, "item": begun})
            part = {"item_id": item.get("id"), **about}
            yield self._out({"type": f"{kind}.delta", **part, "delta": item["arguments"]})
            yield self._out({"type": f"{kind}.done", **part, "arguments": item["arguments"]})
            yield self._out({"type": "response.output_item.done", **about, "item": item})
        response = {**self.last["response"], "output": [*self._sent, *calls]}
        if usage and isinstance(response.get("usage"), dict):
            response["usage"] = {**response["usage"], **usage}
        yield self._out({**self.last, "response": response})


class Responses(Itemised):
    """`/responses`; its methods are those of `ChatCompletions`."""

    stream = ResponsesStream
    call = "function_call"
    call_id = "call_id"

    def read_request(self, body: Chat) -> Chat:
        for name in STATEFUL:
            if body.get(name):
                raise Refused(f"'{name}' is not supported: send the whole conversation as 'input'")
        given = body.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
            raise Refused("the body has no 'input' that is a text or a list of items")
        if any(one.get("type") == "item_reference" for one in items):
            raise Refused("'item_reference' is not supported: send the items themselves")
        messages = list(self._messages(items))
        if isinstance(body.get("instructions"), str):
            messages.insert(0, {"role": "system", "content": body["instructions"], INSTRUCTIONS: True})
        found = {**body, "messages": messages}
        if body.get("tools"):
            found["tools"] = [
                entry_of(tool, "parameters") if inside(tool, "type") == "function" else tool
                for tool in body["tools"]
            ]
        return found

    def write(self, body: Chat) -> Chat:
        left_out = ("messages", "input", "instructions")
        written = {name: value for name, value in body.items() if name not in left_out}
        items: list[Json] = []
        for message in body["messages"]:
            if message.get(INSTRUCTIONS):
                written["instructions"] = message["content"]
            else:
                items += self._written(message)
        if body.get("tools"):
            written["tools"] = [listed_as(entry, "parameters", _NEW) for entry in body["tools"]]
        return {**written, "input": items}

    def parse_reply(self, parsed: Json) -> Said | None:
        output = parsed.get("output") if isinstance(parsed, dict) else None
        if not isinstance(output, list) or not all(isinstance(one, dict) for one in output):
            return None
        message, finish = self.message(output), "stop"
        if message.get("tool_calls"):
            finish = "tool_calls"
        if parsed.get("status") == "incomplete":
            finish = "length"
        return Said(message, finish, parsed.get("usage"))

    def reply(self, parsed: Chat, found: Split) -> Chat:
        return {**parsed, "output": self.items(found.out)}

    def texts(self, item: Json) -> list[Json]:
        content = item.get("content") if item.get("type", "message") == "message" else None
        if isinstance(content, str):
            return [content]
        return [inside(part, "text") for part in content] if isinstance(content, list) else []

    def arguments(self, item: Chat) -> str:
        found = item.get("arguments")
        return found if isinstance(found, str) else ""

    def called(self, call: Called) -> Chat:
        return {"call_id": call["id"], "name": call["name"], "arguments": call["arguments"]}

    def _messages(self, items: list[Chat]) -> Iterator[Chat]:
        """Items as chat messages: what a model said in one reply is one message."""
        for is_reply, group in groupby(items, _is_of_a_reply):
            if is_reply:
                yield self.message([*group])
                continue
            for item in group:
                if _is_result(item):
                    call = str(item.get("call_id"))
                    yield {"role": "tool", "tool_call_id": call, "content": item.get("output"), RAW: item}
                else:
                    yield {"role": str(item.get("role")), "content": item.get("content"), RAW: item}

    def _written(self, message: Chat) -> list[Json]:
        """A chat message as items."""
        raw, content = message.get(RAW), message.get("content")
        if message.get("role") == "tool":
            base = raw if isinstance(raw, Mapping) else {"type": "function_call_output"}
            return [{**base, "call_id": message.get("tool_call_id"), "output": content}]
        if isinstance(raw, Mapping):
            return [dict(raw) if raw.get("content") == content else {**raw, "content": content}]
        said = ITEMS in message or (message.get("role") == "assistant" and not isinstance(content, str))
        own = [] if said else [{"role": message.get("role"), "content": content}]
        return [*own, *self.items(message)]


def _is_result(item: Chat) -> bool:
    return str(item.get("type")).endswith("_output")


def _is_of_a_reply(item: Chat) -> bool:
    said = item.get("role") == "assistant" or item.get("type", "message") != "message"
    return said and not _is_result(item)


RESPONSES = Responses()
