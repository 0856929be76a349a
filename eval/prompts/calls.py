"""Calls as a model would write them: text in a source's output format; calls of earlier turns read back."""

import keyword
from collections.abc import Callable, Sequence

import msgspec

from robustbench_tc.errors import unknown
from robustbench_tc.schema import Call, Json, Message, dumps

DECLINED = "None of the listed tools fits this request, so I make no call."
"""What an agent says whose answer has no calls."""


def render_calls(calls: Sequence[Call], output_format: str) -> str:
    """Concrete calls as text in a source's output format. Raises UserError for an unknown one."""
    if output_format not in FORMATS:
        raise unknown("output format", output_format, FORMATS)
    return FORMATS[output_format](calls)


def python_calls(calls: Sequence[Call]) -> str:
    """`[f(a=1), g()]`."""
    return "[" + ", ".join(map(_python_call, calls)) + "]"


_BEGIN, _END = "<tool_call>", "</tool_call>"


def tool_call_tags(calls: Sequence[Call]) -> str:
    """One JSON object per line between call tags: also how the rows write calls of earlier turns."""
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


def react(calls: Sequence[Call]) -> str:
    """Thought, action and action input, once for each call."""
    return "\n".join(
        f"Thought: I use {call.name}.\nAction: {call.name}\nAction Input: {dumps(call.parameters)}"
        for call in calls
    )


FORMATS: dict[str, Callable[[Sequence[Call]], str]] = {
    "python_calls": python_calls,
    "tool_call_tags": tool_call_tags,
    "react": react,
}
"""Output format of a source → the calls of an answer in it, as a reference agent writes them."""


def _python_call(call: Call) -> str:
    arguments = [_python_argument(key, value) for key, value in call.parameters.items()]
    return f"{call.name}({', '.join(arguments)})"


def _python_argument(key: str, value: Json) -> str:
    """A keyword argument, or `**{'zip code': 7}` where Python has no such keyword."""
    is_keyword = key.isidentifier() and not keyword.iskeyword(key)
    return f"{key}={value!r}" if is_keyword else f"**{{{key!r}: {value!r}}}"
