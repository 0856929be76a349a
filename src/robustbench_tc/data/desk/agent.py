"""The agent that is evaluated: `rbtc eval bench --callable agent:answer` asks it every request.

It needs no model: of the tools whose required parameters the request states, it takes the one that shares
most words with it. Put your own in its place: docs/own-agents.md says what a task holds and what may be given
back.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from robustbench_tc.api import Reply, Task

SPELT = {
    "integer": r"\b\d{4}\b",
    "number": r"\b\d+(?:\.\d+)?(?= [A-Z]{3}\b)",
    "date": r"\b\d{1,2} [A-Z][a-z]+ \d{4}",
    "email": r"[\w.]+@[\w.]+\w",
    "string": r'(?<=")[^"]+(?=")',
}
"""How a request writes a value of this type or format."""
READ: dict[str, Callable[[str], Any]] = {
    "integer": int,
    "number": float,
    "date": lambda text: f"{datetime.strptime(text, '%d %B %Y'):%Y-%m-%d}",
}


def answer(task: Task) -> Reply:
    """Your agent goes here: hand it `task.messages` and `task.tools`, and return the calls that it makes."""
    request = [message["content"] for message in task.messages if message["role"] == "user"][-1]
    best, call = 1, None
    for tool in (one["function"] for one in task.tools):
        arguments = value_in_request(request, tool["parameters"])
        common = 2 * len(stems(request) & stems(tool["name"]))
        common += len(stems(request) & stems(tool.get("description", "")))
        if arguments and arguments.keys() >= set(tool["parameters"].get("required", ())) and common > best:
            best, call = common, {"name": tool["name"], "arguments": arguments}
    return Reply(calls=[call]) if call else Reply(text="Could you tell me more?")


def stems(text: str) -> set[str]:
    return {word[:5] for word in re.findall(r"[a-z]{3,}", text.lower())} - {"the"}


def value_in_request(request: str, schema: dict[str, Any]) -> Any:
    """What a request says of a parameter; None where it says nothing."""
    if "properties" in schema:
        inner = {name: value_in_request(request, one) for name, one in schema["properties"].items()}
        return {name: value for name, value in inner.items() if value not in (None, {})}
    if "enum" in schema:
        return next((one for one in schema["enum"] if stems(one) <= stems(request)), None)
    kind = schema.get("format") or str(schema.get("type"))
    spelt = schema.get("pattern", "").strip("^$") or SPELT.get(kind)
    match = re.search(spelt, request) if spelt and "default" not in schema else None
    return READ.get(kind, str)(match[0]) if match else None
