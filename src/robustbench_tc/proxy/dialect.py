"""What the two APIs say differently: how a request, a reply and a stream are written.

Inside a door every conversation is one of chat messages. Where the other API says more than those, its own
items travel in the keys `RAW` and `ITEMS` and are put back on the way out.
"""

from typing import NamedTuple

from robustbench_tc.schema import Json

from . import sse, usage
from .chat import Chat, Split
from .offer import Offer
from .session import Refused
from .stream import ChatStream

RAW = "_raw"
ITEMS = "_items"


class Said(NamedTuple):
    """A whole reply."""

    message: Chat
    finish: str | None


class ChatCompletions:
    """`/chat/completions`."""

    flat: bool = False
    """Whether a tool's function stands in its entry itself."""
    usage: tuple[str, ...] = usage.CHAT
    """Counts that are added up over replies that the door answers."""
    done: bytes = sse.DONE
    """What ends a stream."""

    def read(self, body: Chat) -> Chat:
        """A request with its conversation in `messages`. Raises Refused."""
        messages = body.get("messages")
        if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
            raise Refused("the body has no list of messages")
        if body.get("functions"):
            raise Refused("'functions' is not supported: send the tools as 'tools'")
        if body.get("n") not in (None, 1):
            raise Refused("'n' is not supported: ask for one reply")
        return dict(body)

    def write(self, body: Chat, messages: list[Chat], tools: list[Json] | None, offered: Offer) -> Chat:
        """The request that goes to the model."""
        written = {**body, "messages": messages}
        return with_tools(written, tools, offered)

    def said(self, parsed: Json) -> Said | None:
        """The reply that a body is; None for anything else."""
        choices = parsed.get("choices") if isinstance(parsed, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return None
        message = choice.get("message")
        if not isinstance(message, dict) or not isinstance(message.get("tool_calls") or [], list):
            return None
        return Said(message, choice.get("finish_reason"))

    def reply(self, parsed: Chat, found: Split) -> Chat:
        """The body that the agent gets."""
        choice = {**parsed["choices"][0], "message": found.out}
        if not found.sent and choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"
        return {**parsed, "choices": [choice]}

    def stream(self, offered: Offer, before: Json) -> ChatStream:
        """A reply in pieces. `before`: the one that the door has answered."""
        return ChatStream(offered, before)

    def written(self, chunk: Chat) -> bytes:
        """A piece of a stream."""
        return sse.written(chunk)

    def failure(self, said: str) -> bytes:
        """An error in the middle of a stream."""
        return sse.written({"error": {"message": said, "type": "rbtc_proxy_error"}})


def with_tools(body: Chat, tools: list[Json] | None, offered: Offer) -> Chat:
    """A request with these tools (None: its own), what it chooses among them in the model's names."""
    if tools is not None:
        body["tools"] = tools
    if isinstance(choice := body.get("tool_choice"), dict):
        body["tool_choice"] = chosen(choice, offered)
    return body


def chosen(choice: Chat, offered: Offer) -> Chat:
    """A `tool_choice` in the model's names, of either API: one tool, or several that are allowed."""
    found = dict(choice)
    for key in ("function", "allowed_tools"):
        if isinstance(found.get(key), dict):
            found[key] = chosen(found[key], offered)
    if isinstance(found.get("name"), str) and found.get("type", "function") == "function":
        found["name"] = offered.forward(found["name"])
    if isinstance(tools := found.get("tools"), list):
        found["tools"] = [chosen(one, offered) if isinstance(one, dict) else one for one in tools]
    return found
