"""Logs of an agent that runs already, as conversations: `read_log`.

    types     what a log is, however it was written
    lines     a file as JSON values with their lines, bounded
    chat      OpenAI's chat messages and Responses items
    spans     OpenTelemetry's GenAI spans
    read      a file as a `Log`

Nothing of a log's content stands in an error: a line that cannot be read is named by its number.
"""

from .read import read_log
from .types import Conversation, Log, LoggedCall, Message, Refused

__all__ = ["Conversation", "Log", "LoggedCall", "Message", "Refused", "read_log"]
