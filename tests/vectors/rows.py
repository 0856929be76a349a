"""What the checkers of every kind of row share."""

from collections.abc import Callable, Sequence
from typing import Any

from robustbench_tc.schema import Call, Json

Row = dict[str, Any]
"""One line of a vector file."""

Check = Callable[[Row], str]
"""Says of a row `agreed`, the class of its disagreement, or `unlisted`."""

AGREED = "agreed"
UNLISTED = "unlisted"
"""A disagreement that scoring.md does not list: a defect, of ours or of the list."""


def calls_of(found: Json) -> list[Call]:
    """The well-formed calls of a prediction column."""
    return [
        Call(item["name"], item["parameters"])
        for item in found or ()
        if isinstance(item, dict)
        and isinstance(item.get("name"), str)
        and isinstance(item.get("parameters"), dict)
    ]


def as_pairs(calls: Sequence[Call]) -> list[Json]:
    """Calls in the form of the decoders' vectors: one `{name: parameters}` each."""
    return [{call.name: call.parameters} for call in calls]
