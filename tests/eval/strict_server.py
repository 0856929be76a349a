"""What vLLM, OpenAI and Mistral refuse in a request: the strictest of each, put together.

The rules are facts about those servers: vLLM 19419 and 47761 (arguments are parsed before the template is
filled), vLLM 9019 (Mistral's ids), OpenAI's pattern for names, mistral-common's order of roles.
"""

import itertools
import json
import re
from collections.abc import Callable
from typing import Any

from tests.loopback import Fault, Handler, Reply, error_body

ID = re.compile(r"[A-Za-z0-9]{9}")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
FOLLOWS = {
    "system": {"user", "assistant"},
    "user": {"assistant"},
    "assistant": {"user", "tool"},
    "tool": {"tool", "assistant"},
}


def refusal(body: dict[str, Any]) -> str | None:
    """Why a request is refused; None: it is taken."""
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    if roles[0] == "tool" or roles[-1] not in ("user", "tool"):
        return f"the conversation begins with {roles[0]} and ends with {roles[-1]}"
    for role, following in itertools.pairwise(roles):
        if following not in FOLLOWS[role]:
            return f"unexpected role {following} after role {role}"
    for message in messages:
        if not isinstance(message.get("content"), str):
            return f"{message['role']}: content is not a text"
        if not message["content"].strip() and not message.get("tool_calls"):
            return f"{message['role']}: empty content"
    named = [one["function"]["name"] for one in body.get("tools") or ()]
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    if wrong := [
        name for name in (*named, *(c["function"]["name"] for c in calls)) if not NAME.fullmatch(name)
    ]:
        return f"name {wrong[0]!r}"
    return next(filter(None, map(_refused_call, calls)), None) or _refused_ids(messages)


def _refused_call(call: dict[str, Any]) -> str | None:
    if not ID.fullmatch(call["id"]):
        return f"id {call['id']!r}"
    try:
        arguments = json.loads(call["function"]["arguments"], parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return f"arguments: {error}"
    return None if isinstance(arguments, dict) else "arguments are no object"


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _refused_ids(messages: list[dict[str, Any]]) -> str | None:
    """Each call is answered once, in its order, right behind the reply that made it."""
    called: list[str] = []
    answered: list[str | None] = []
    for place, message in enumerate(messages):
        ids = [call["id"] for call in message.get("tool_calls") or ()]
        called += ids
        behind = messages[place + 1 : place + 1 + len(ids)]
        answered += [one.get("tool_call_id") for one in behind if one["role"] == "tool"]
    count = sum(message["role"] == "tool" for message in messages)
    if called != answered or len(set(called)) != len(called) or count != len(called):
        return f"calls {called} are answered as {answered}, of {count} results"
    return None


def strict(handler: Callable[[dict[str, Any]], Reply]) -> Handler:
    """The handler behind a check of every request: 400 for what any of the servers refuses."""

    def checked(body: dict[str, Any]) -> Reply:
        said = refusal(body)
        return handler(body) if said is None else Fault(400, error_body(said))

    return checked
