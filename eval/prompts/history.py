"""Calls of earlier turns in a row's messages: written as text, read back where they are asked natively."""

from collections.abc import Sequence

import msgspec

from robustbench_tc.schema import Call, Message, dumps

_BEGIN, _END = "<tool_call>", "</tool_call>"


def as_text(calls: Sequence[Call]) -> str:
    """Calls in the canonical form of the rows: one JSON object a line between tags."""
    lines = [dumps({"name": call.name, "parameters": call.parameters}) for call in calls]
    return "\n".join([_BEGIN, *lines, _END])


def earlier_calls(message: Message) -> tuple[str, tuple[Call, ...]] | None:
    """The text in front of a message's calls, and the calls; None where it does not end with such."""
    lines = message.content.split("\n")
    if lines[-1] != _END or _BEGIN not in lines:
        return None
    begin = len(lines) - 1 - lines[::-1].index(_BEGIN)
    try:
        calls = [msgspec.json.decode(line, type=Call) for line in lines[begin + 1 : -1]]
    except (ValueError, RecursionError):
        return None
    return ("\n".join(lines[:begin]), tuple(calls)) if calls else None
