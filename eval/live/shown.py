"""A tool's result as an agent is shown it: does it read as a failure, and what values are in it."""

import json
from collections.abc import Iterator

from robustbench_tc.schema import Json
from robustbench_tc.worlds.faults import CORE_TEXTS
from robustbench_tc.worlds.fit import failed

Path = tuple[str | int, ...]
"""Keys and positions, from the outside in."""


def looks_failed(text: str) -> bool:
    """Whether a result reads as a failure: a core text, or an error of the world's."""
    return text in CORE_TEXTS.values() or failed(text)


def parsed(text: str) -> Json:
    """The object or list that a result begins with, whatever follows it; else its JSON, or its text."""
    try:
        found: Json = json.JSONDecoder().raw_decode(text)[0]
        return found if isinstance(found, dict | list) else json.loads(text)
    except (ValueError, RecursionError):
        return text


def leaves(value: Json, at: Path = (), depth: int = 0) -> Iterator[tuple[Path, Json]]:
    """Every value that is no list and no object, with its place, in order."""
    if depth > 40:
        return
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, (*at, key), depth + 1)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from leaves(one, (*at, number), depth + 1)
    else:
        yield at, value
