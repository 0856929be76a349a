"""What is said to an agent in a live episode, in both modes; nothing of it depends on a row's fault.

Prompt mode has a system message with the registry, and shows the results of a reply's calls in one user
message. fc mode sends the registry as native tools, and one tool message for each call.
"""

import hashlib
from collections.abc import Sequence
from functools import cache

from robustbench_tc.schema import PLEASE_DECIDE, Json, Message, Reply, Tool, dumps

from .. import wire

SYSTEM = """You act for a user by calling functions, which are listed at the end. Your calls are carried \
out, and you are shown their results.

Write calls as Python calls with keyword arguments inside square brackets, and nothing else in that reply:
[name_of_function(parameter=value, other_parameter="text")]

The calls of one reply are carried out in order. Copy function and parameter names exactly as they are \
listed. Put texts in quotes. Leave out optional parameters that you have no value for.

Go on until the request is fulfilled. Then reply to the user in plain words, without any call; that ends \
your turn.

Functions, one JSON object per line:
"""

RESULTS = "Results, one JSON object per line, in the order of the calls:\n"

NEW_TOOLS = "From now on there are further functions, one JSON object per line:\n"
"""Prompt mode, in front of what the user says in a turn that adds tools."""

TRY_AGAIN = "There are further functions now. Please go on with my request."
"""What the user says in a turn that adds tools and has no message of its own."""

MAX_CALLS = 50
"""Calls of one reply that are carried out."""

READ_AS = "bfcl_v3"
"""The source whose order of forms replies are read in: the form that SYSTEM asks for comes first."""

QUIET = (Message("user", TRY_AGAIN),)
"""A turn in which nothing is said, as a request has to have a message."""

Messages = list[dict[str, Json]]


@cache
def version() -> str:
    """`live-1-` and 8 hex digits over every text of this file: what answers depend on beside the row."""
    texts = dumps((SYSTEM, RESULTS, NEW_TOOLS, TRY_AGAIN, wire.NO_TEXT, PLEASE_DECIDE, MAX_CALLS))
    return "live-1-" + hashlib.sha256(texts.encode()).hexdigest()[:8]


def opening(tools: Sequence[Tool], messages: Sequence[Message], mode: str) -> Messages:
    """The messages before the first reply."""
    if mode == "fc":
        return user_messages(messages, (), mode)
    own = [one.content for one in messages if one.role == "system"]
    rest = [one for one in messages if one.role != "system"]
    return [
        {"role": "system", "content": "\n\n".join([SYSTEM + _listed(tools), *own])},
        *user_messages(rest, (), mode),
    ]


def user_messages(messages: Sequence[Message], added: Sequence[Tool], mode: str) -> Messages:
    """The user's messages of a turn; in prompt mode they begin with the tools that it adds."""
    found = [{"role": one.role, "content": one.content} for one in messages or QUIET]
    if added and mode == "prompt":
        found[0]["content"] = f"{NEW_TOOLS}{_listed(added)}\n\n{found[0]['content']}"
    return found


def replied(
    reply: Reply, results: Sequence[tuple[str, str]], names: wire.WireNames, mode: str, before: Messages
) -> Messages:
    """A reply and what its calls were answered, as the next request has them. `results`: each call's name as
    it is shown, and its answer; `before`: the request that it replied to."""
    turn = PLEASE_DECIDE if reply.answered else None
    if results:
        turn = RESULTS + "\n".join(dumps({"name": name, "result": text}) for name, text in results)
    texts = [text for _, text in results]
    return wire.replied(reply.text, reply.tool_calls, texts, turn, mode, names, before)


def _listed(tools: Sequence[Tool]) -> str:
    return "\n".join(dumps(tool) for tool in tools)
