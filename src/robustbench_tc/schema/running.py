"""What running systems do to a call beyond the core's types, the same at doors and in live episodes.

Another fault of this kind is a text of UNMADE or a function of RESULT_FAULTS, and its name in RunningKind.
"""

from collections.abc import Callable
from typing import Literal

RunningKind = Literal["outage", "dropped_tool", "truncated", "empty_result", "oversized"]

UNMADE: dict[str, str] = {
    "outage": "HTTP 503 Service Unavailable. The service is down for all requests.",
    "dropped_tool": "Unknown tool: the server does not offer it any more.",
}
"""What a call is answered with that is not carried out."""

OVERSIZED = 50_000
"""Characters."""


def truncated(result: str) -> str:
    """The first half, cut wherever that ends."""
    return result[: len(result) // 2]


def empty_result(result: str) -> str:
    """Nothing, in the form that the result has."""
    return {"[": "[]", "{": "{}"}.get(result.lstrip()[:1], "")


def oversized(result: str) -> str:
    """The result over and over, until it has more than OVERSIZED characters."""
    line = f"{result or '-'}\n"
    return line * (OVERSIZED // len(line) + 1)


RESULT_FAULTS: dict[str, Callable[[str], str]] = {
    one.__name__: one for one in (truncated, empty_result, oversized)
}
"""What the agent gets of the result of a call that was carried out."""
