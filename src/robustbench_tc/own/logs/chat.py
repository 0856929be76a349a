"""OpenAI's chat messages and Responses items as conversations."""

import json
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import msgspec

from robustbench_tc.own.cases import OwnTool
from robustbench_tc.own.files import Unreadable, decode_text
from robustbench_tc.schema import Json

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class LoggedCall(msgspec.Struct, frozen=True):
    """A call that the agent made."""

    id: str
    """Empty where the log has none."""
    name: str
    """As the log writes it."""
    arguments: dict[str, Json] | None
    """None where the text is not a JSON object."""
    text: str
    """The arguments as the log has them."""


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation."""

    role: Role
    text: str
    calls: tuple[LoggedCall, ...] = ()
    call_id: str = ""
    """Of a tool's message: which call it answers. Empty where the log does not say."""
    left_out: tuple[str, ...] = ()
    """Kinds of parts that are not text: `image`, `audio`, `file`."""


class Conversation(msgspec.Struct, frozen=True):
    """One conversation, its messages in order."""

    id: str
    """The log's own, else made of its file and line. May stand there twice."""
    line: int
    """Where it begins, from 1; several conversations may stand in one line."""
    messages: tuple[Message, ...]
    tools: tuple[OwnTool, ...] | None
    """What the agent was offered; None where the log does not say."""


class Refused(msgspec.Struct, frozen=True):
    """A line, or a part of one, that could not be read."""

    line: int
    why: str
    """Without anything of the line's content."""


class Log(msgspec.Struct, frozen=True):
    """A log file."""

    conversations: tuple[Conversation, ...]
    refused: tuple[Refused, ...]
    ignored: int = 0
    """Spans of other operations, and GenAI spans that recorded no content."""


_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",  # before tool calls had ids
}
_TEXTS = ("text", "input_text", "output_text", "refusal")
_LEFT_OUT = {
    "image_url": "image",
    "input_image": "image",
    "input_audio": "audio",
    "audio": "audio",
    "file": "file",
    "input_file": "file",
}
_ITEMS = ("message", "function_call", "function_call_output", "reasoning")
"""Items of Responses that are read; `reasoning` is passed over."""


def is_message(value: Json) -> bool:
    """Whether a value is a chat message or an item of Responses."""
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("role"), str) or value.get("type") in _ITEMS


def messages_of(line: dict[str, Json]) -> tuple[Message, ...] | None:
    """The messages of a line `{messages}`, or `{input, output}` of Responses; None where it has neither."""
    if "messages" in line:
        return read_messages(line["messages"])
    given = line.get("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list):
        return None
    output = line.get("output", [])
    if not isinstance(output, list):
        raise Unreadable("'output' is not a list")
    first: list[Json] = []
    if (said := line.get("instructions")) is not None:
        first = [{"role": "system", "content": said}]
    return read_messages([*first, *given, *output])


def read_messages(entries: Json) -> tuple[Message, ...]:
    """Messages of a list. Raises Unreadable."""
    if not isinstance(entries, list) or not entries:
        raise Unreadable("'messages' is not a list with messages in it")
    found: list[Message] = []
    joins = False  # whether the message before is made of items, which a call belongs to
    for number, entry in enumerate(entries, 1):
        try:
            if not isinstance(entry, dict):
                raise Unreadable("is not an object")
            kind = entry.get("type")
            if kind == "reasoning" and "role" not in entry:
                continue
            if kind == "function_call" and "role" not in entry:
                call = read_call(entry, entry.get("call_id"))
                if joins:
                    calls = (*found[-1].calls, call)
                    found[-1] = msgspec.structs.replace(found[-1], calls=calls)
                else:
                    found.append(Message("assistant", "", (call,)))
                joins = True
            elif kind == "function_call_output" and "role" not in entry:
                text, left_out = content(entry.get("output"))
                found.append(Message("tool", text, (), name(entry.get("call_id")), left_out))
                joins = False
            else:
                found.append(_message(entry))
                joins = kind == "message" and found[-1].role == "assistant"
        except Unreadable as error:
            raise Unreadable(f"message {number}: {error}") from None
    if not found:
        raise Unreadable("no messages")
    return tuple(found)


def _message(entry: dict[str, Any]) -> Message:
    role = _ROLES.get(entry["role"]) if isinstance(entry.get("role"), str) else None
    if role is None:
        raise Unreadable("'role' is not one of system, user, assistant, tool")
    text, left_out = content(entry.get("content"))
    if role == "assistant" and not text and isinstance(entry.get("refusal"), str):
        text = entry["refusal"]
    calls = tuple(_calls(entry)) if role == "assistant" else ()
    answered = name(entry.get("tool_call_id")) if role == "tool" else ""
    return Message(role, text, calls, answered, left_out)


def _calls(entry: dict[str, Any]) -> Iterator[LoggedCall]:
    listed = entry.get("tool_calls")
    if listed is not None:
        if not isinstance(listed, list):
            raise Unreadable("'tool_calls' is not a list")
        for call in listed:
            if not isinstance(call, dict):
                raise Unreadable("a tool call is not an object")
            if not isinstance(call.get("function"), dict):
                raise Unreadable("a tool call has no 'function'")
            yield read_call(call["function"], call.get("id"))
    if (old := entry.get("function_call")) is not None:
        if not isinstance(old, dict):
            raise Unreadable("'function_call' is not an object")
        yield read_call(old, None)


def read_call(body: dict[str, Any], given: Json) -> LoggedCall:
    """A call whose id is given beside it. Raises Unreadable."""
    called = body.get("name")
    if not isinstance(called, str) or not called.strip():
        raise Unreadable("a call has no name")
    return logged(name(given), called, body.get("arguments"))


def logged(call_id: str, called: str, arguments: Json) -> LoggedCall:
    """A call whose arguments are an object or its text; nothing at all is no arguments."""
    if isinstance(arguments, str):
        if not arguments.strip():
            return LoggedCall(call_id, called, {}, arguments)
        try:
            value = decode_text(arguments)
        except Unreadable:
            value = None
        return LoggedCall(call_id, called, value if isinstance(value, dict) else None, arguments)
    if arguments is None:
        return LoggedCall(call_id, called, {}, "")
    text = json.dumps(arguments, ensure_ascii=False)
    return LoggedCall(call_id, called, arguments if isinstance(arguments, dict) else None, text)


def content(given: Json) -> tuple[str, tuple[str, ...]]:
    """The text of a message's content, and the kinds of its parts that are not text."""
    if given is None:
        return "", ()
    if isinstance(given, str):
        return given, ()
    if not isinstance(given, list):
        raise Unreadable("'content' is neither a text nor a list of parts")
    texts, left_out = [], []
    for part in given:
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind in _TEXTS:
            text = part.get("refusal" if kind == "refusal" else "text")
            if not isinstance(text, str):
                raise Unreadable("a part of 'content' has no text")
            texts.append(text)
        elif isinstance(kind, str) and kind in _LEFT_OUT:
            left_out.append(_LEFT_OUT[kind])
        else:
            raise Unreadable("a part of 'content' is of a kind that is not read")
    return "".join(texts), tuple(left_out)


def name(given: Json) -> str:
    """An id as a text; empty where there is none."""
    if isinstance(given, bool) or not isinstance(given, str | int):
        return ""
    return str(given)
