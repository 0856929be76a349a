"""What a log is, however it was written."""

from typing import Literal, TypeAlias

import msgspec

from robustbench_tc.own.cases import OwnTool
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
