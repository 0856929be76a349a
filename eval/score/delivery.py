"""Meant and delivered: whether a client that trusts its server got the calls that a reply means.

The calls meant are those that the reader finds. Strict calls are what a client runs: native calls alone,
arguments that are the JSON text of an object, names that were sent, nothing repaired.
"""

import json
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from robustbench_tc.eval.parse import Parsed
from robustbench_tc.schema import Call, Json, Tool

from .values import json_equal

Reason = Literal[
    "in_text",
    "in_reasoning",
    "no_json",
    "not_an_object",
    "double_encoded",
    "arguments_not_text",
    "unknown_name",
    "markup_in_name",
    "bad_id",
    "empty_arguments",
    "merged_calls",
    "cut",
    "leaked_tokens",
]
"""Why a client does not get what a reply means."""

_TOKENS = re.compile(r"<[|｜][^<>\n]{1,48}[|｜]>|</?tool_call>|\[TOOL_CALLS\]")
_OBJECTS = re.compile(r"\}\s*\{")


class Delivery(msgspec.Struct, frozen=True):
    """Of one reply."""

    delivered: bool
    """The strict calls are the calls meant, in names, arguments and order."""
    reason: Reason | None = None
    """The first fault. `in_reasoning` stands beside equal calls: none was meant outside the thought."""


def delivery(
    parsed: Parsed, native: Json, tools: Sequence[Tool], *, finish_reason: str | None = None
) -> Delivery:
    """Whether the calls that a reply means reach a client.

    `native` are its native calls, their names those of `tools`.
    """
    entries = native if isinstance(native, list | tuple) else ()
    read = [strict(entry, tools, is_cut=finish_reason == "length") for entry in entries]
    ids = [entry.get("id") for entry in entries if isinstance(entry, dict)]
    faults: list[Reason] = [one for one in read if isinstance(one, str)]
    if any(not isinstance(one, str) or not one for one in ids) or len(set(map(str, ids))) < len(ids):
        faults.append("bad_id")
    if parsed.variant not in ("fc", None):
        faults.append("in_text")
    elif not parsed.calls and "call_in_thought" in parsed.flags:
        faults.append("in_reasoning")
    calls = [{"name": one.name, "parameters": one.parameters} for one in read if isinstance(one, Call)]
    meant = [{"name": one.name, "parameters": one.parameters} for one in parsed.calls]
    same = len(calls) == len(entries) and json_equal(calls, meant) and faults in ([], ["in_reasoning"])
    return Delivery(same, next(iter(faults), None))


def strict(entry: Json, tools: Sequence[Tool], *, is_cut: bool = False) -> Call | Reason:
    """The call of one native entry as a client reads it, or why there is none."""
    inner = entry.get("function", entry) if isinstance(entry, dict) else None
    name = inner.get("name") if isinstance(inner, dict) else None
    tool = next((tool for tool in tools if tool.name == name), None)
    if not isinstance(inner, dict) or tool is None:
        return "markup_in_name" if any(one.name in str(name) for one in tools) else "unknown_name"
    arguments = inner.get("arguments")
    if not arguments and not isinstance(arguments, dict):
        return "empty_arguments" if tool.required else Call(tool.name, {})
    if not isinstance(arguments, str):
        return "arguments_not_text"
    try:
        found = json.loads(arguments, parse_constant=_refused)
    except (ValueError, RecursionError):
        return _broken(arguments, is_cut=is_cut)
    if isinstance(found, str):
        return "double_encoded"
    if not isinstance(found, dict):
        return "not_an_object"
    return "empty_arguments" if not found and tool.required else Call(tool.name, found)


def _refused(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _broken(arguments: str, *, is_cut: bool) -> Reason:
    """Why arguments are no JSON."""
    if is_cut:
        return "cut"
    if _TOKENS.search(arguments):
        return "leaked_tokens"
    return "merged_calls" if _OBJECTS.search(arguments) else "no_json"


def row_delivered(meant: bool, replies: Sequence[Delivery]) -> bool:
    """Whether a row is right as delivered: right as meant, and every reply on its path delivered."""
    return meant and all(one.delivered for one in replies)
