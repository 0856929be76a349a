"""The short way for the usual replies: a list of simple Python calls, JSON between call tags, JSON objects of a
name and its arguments, or ReAct lines, and nothing else.

It reads what the general way reads, with the same result, several times as fast, and gives up with None on
anything else: other keys, escapes in a Python string, a name that may mean another one.
"""

import re
from collections.abc import Sequence

import msgspec

from robustbench_tc.schema import Call, Json, Tool

from . import python_literals
from .context import bare_name
from .json_calls import NAME_KEYS, PARAMETER_KEYS
from .names import is_no_name, stripped_prefix
from .python_calls import WRAPPING_KEYS

_REACT = re.compile(
    r"\s*+(?:Thought:[^\n<:]*+\n)?Action: ([^\s\"'`*<>\[\](){}:]{1,128})[ ]*\nAction Input: (\{[^\n]*\})["
    r" ]*(?:\n|\Z)"
)
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_OPEN_SIZE, _CLOSE_SIZE = len(_OPEN), len(_CLOSE)
_MAX = 16_384
_MAY_BE_A_CALL = re.compile(r"[({<\[✿?]|:\s*\n")
_SIGN_OF_A_CALL = re.compile(r"[({<\[✿?:]")
"""Cheaper: most thoughts hold none of them."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_decode = msgspec.json.decode


def short_form(text: str, tools: Sequence[Tool]) -> tuple[str, list[Call], int] | None:
    """The code and the calls of a usual reply, and where its final answer begins; None for any other reply."""
    body = text.strip()
    if '"type"' in body or "'type'" in body:  # perhaps a schema
        return None
    if not body or len(body) > _MAX or not (body.isascii() or _SURROGATE.search(body) is None):
        return None
    behind = 0
    if body.startswith("<think>"):
        end = body.find("</think>")
        if end < 0 or body.find("ction", 7, end) >= 0 or body.find("CTION", 7, end) >= 0:
            return None
        if _SIGN_OF_A_CALL.search(body, 7, end) and _MAY_BE_A_CALL.search(body, 7, end):
            return None
        behind = text.find("</think>") + 8
        body = body[end + 8 :].strip()
        if not body or "think" in body:
            return None
    if body.startswith("```") and body.endswith("```"):
        start = body.find("\n") + 1
        if not start or start > 20 or body.find("```", start) != len(body) - 3:
            return None
        body = body[start:-3].strip()
        if not body or body[0] not in "[{":
            return None
    try:
        code, calls = _usual(body)
    except (ValueError, RecursionError):
        return None
    return (code, calls, behind) if calls and _are_usual(calls, tools) else None


def _usual(body: str) -> tuple[str, list[Call]]:
    """The code and the calls, if it is one of the forms. Raises ValueError, or RecursionError."""
    if body[0] == "{" or body.startswith(("[{", "[[")):
        value = _decode(body)
        return "J", list(map(_call, value if type(value) is list else (value,)))
    if body[0] == "[":
        return "B1", (python_literals.calls(body) if body[-1] == "]" else None) or []
    if body[0] == "<":
        if not (body.startswith(_OPEN) and body.endswith(_CLOSE)) or body.count("<") != 2:
            raise ValueError("other tags")
        inner = body[_OPEN_SIZE:-_CLOSE_SIZE].strip()
        return "A1", [_call(_decode(line)) for line in inner.split("\n")]
    calls: list[Call] = []
    at = 0
    while match := _REACT.match(body, at):
        calls.append(Call(match[1], _decode(match[2])))
        at = match.end()
    return "R1", calls if at == len(body) else []


def _are_usual(calls: list[Call], tools: Sequence[Tool]) -> bool:
    """Whether every name is the registry's, or can be a tool's where there is none, and no call holds its
    arguments inside another one."""
    for call in calls:
        name = call.name
        if tools:
            for tool in tools:
                if tool.name == name:
                    break
            else:
                if is_no_name(name) or name.endswith(".call") or stripped_prefix(name) is not None:
                    return False
        elif is_no_name(name) or stripped_prefix(name, certain=True) is not None:
            return False
        if len(call.parameters) == 1 and not WRAPPING_KEYS.isdisjoint(call.parameters):
            return False
    return True


def _call(value: Json) -> Call:
    """The call of an object that holds a name and an object of arguments, and nothing else. Raises ValueError."""
    if type(value) is not dict or len(value) != 2:
        raise ValueError("no call")
    (name_key, name), (key, arguments) = value.items()
    if type(name) is not str or type(arguments) is not dict or not name or bare_name(name) != name:
        raise ValueError("no usual call")
    if name_key not in NAME_KEYS or key not in PARAMETER_KEYS:
        raise ValueError("other keys")
    return Call(name, arguments)
