"""Was the call that a model meant delivered by its server? What a client in function-calling mode gets.

*Meant* are the calls that the reader finds outside of reasoning. *Delivered* are they where a client that
repairs nothing gets the same: native calls alone, their arguments a JSON object, names among those sent.
"""

import json
import re
from collections.abc import Sequence

import msgspec

from robustbench_tc.llm.wire_names import safe_name
from robustbench_tc.schema import Json, Tool, dumps

from .parse import Parsed

MEANING: dict[str, str] = {
    "in_text": "the call is in the text: no tool parser on the server, or the model left its template",
    "in_reasoning": "the call is in the reasoning, where nobody carries it out",
    "no_json": "arguments are not JSON",
    "not_an_object": "arguments are JSON, but no object",
    "double_encoded": "arguments are a JSON text inside a JSON text",
    "arguments_not_text": "arguments are an object where the API has a text",
    "unknown_name": "a name that was not sent",
    "markup_in_name": "a name with markup around it",
    "bad_id": "a call without an id of its own",
    "empty_arguments": "no arguments, though some are required",
    "merged_calls": "arguments of two calls in one",
    "cut": "cut off at the token limit",
    "leaked_tokens": "special tokens of the chat template in the call",
    "legacy_function_call": "`function_call`, the API before tools",
}
"""What is wrong with the first reply whose calls were not delivered → what it means, for people."""

_TOKEN = re.compile(r"<[|｜]")
"""Where a chat template's special token begins."""


def undelivered(
    native: Json, meant: Parsed, tools: Sequence[Tool], finish_reason: str | None = None
) -> str | None:
    """Why a client does not get the calls that are `meant`, as the reader found them; None where it does.

    `native`: `[{"id", "name", "arguments"}]`, names mapped back; `fault` where the reply's own form was
    broken. A reply without any call says why where something is to be said: it was cut, or its call is a
    thought.
    """
    for call in native or ():
        if fault := _fault(call, tools, finish_reason):
            return fault
    got = [[call["name"], msgspec.json.decode(call["arguments"] or "{}")] for call in native or ()]
    if got and dumps(got) == dumps([[one.name, one.parameters] for one in meant.calls]):
        return None
    if got or meant.calls:
        return "in_text"
    if "call_in_thought" in meant.flags:
        return "in_reasoning"
    return "cut" if finish_reason == "length" else None


def _fault(call: dict[str, Json], tools: Sequence[Tool], finish_reason: str | None) -> str | None:
    """What keeps a client from carrying out a native call."""
    name, arguments = str(call["name"]), str(call["arguments"])
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None and _TOKEN.search(name):
        return "leaked_tokens"
    if tool is None:
        sent = "|".join(re.escape(safe_name(tool.name)) for tool in tools)
        holds_one = re.search(rf"(?<![A-Za-z0-9])({sent})(?![A-Za-z0-9])", safe_name(name))
        return "markup_in_name" if tools and holds_one else "unknown_name"
    if call.get("fault") is not None:
        return str(call["fault"])
    try:
        found = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        if finish_reason == "length":
            return "cut"
        if _TOKEN.search(arguments):  # inside of a JSON text they are the user's words
            return "leaked_tokens"
        return "merged_calls" if _first_object(arguments) else "no_json"
    if isinstance(found, str) and found.lstrip()[:1] in ("{", "["):
        return "double_encoded"
    if not isinstance(found, dict):
        return "not_an_object"
    return "empty_arguments" if not found and tool.required else None


def _first_object(arguments: str) -> bool:
    """Whether a whole JSON object is followed by another one."""
    try:
        found, end = json.JSONDecoder().raw_decode(arguments.lstrip())
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and re.match(r"\s*,?\s*\{", arguments.lstrip()[end:]) is not None
