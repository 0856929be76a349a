"""The arguments that reads are tried with, to see whether any of them shows what a call did.

Values come from what an agent could know: the call itself, what it was answered, gold's other arguments, the
schema's own words, and the two states, what differs in them first. Every choice is bounded.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator
from itertools import islice, product

from robustbench_tc.schema import Json, LiveTool, dumps, loads

VALUES = 32
"""Values that a parameter is tried with."""

TRIED = 200
"""Calls of a tool that are tried."""

FIRST = 6
"""Calls of every tool that are tried before the rest of any."""

LEAVES = 5_000
"""Leaves of a state that are looked at."""

TEXT = 200
"""Characters of a text that is tried as an argument."""

_QUOTED = re.compile(r"[\"']([^\"'\n]{1,80})[\"']")


def arguments(tool: LiveTool, known: dict[str, list[Json]], values: list[Json]) -> Iterator[dict[str, Json]]:
    """Arguments for a read: `known` has values by parameter name, `values` those of any name, best first."""
    plain = tool.plain
    choices = {
        name: _choices(schema, known.get(name, []), values)
        for name, schema in plain.properties.items()
        if isinstance(schema, dict)
    }
    required = [name for name in plain.required if name in choices]
    yield from islice(_combined(required, choices), TRIED)
    for name in choices:
        if name not in required:
            yield from islice(_combined([*required, name], choices), VALUES)


def reads(
    tools: Iterable[LiveTool], known: dict[str, list[Json]], values: list[Json]
) -> Iterator[tuple[str, dict[str, Json]]]:
    """Calls of reads: the best guesses of every tool, then the others."""
    tried = [(tool.name, iter(arguments(tool, known, values))) for tool in tools]
    for width in (FIRST, None):
        for name, left in tried:
            yield from ((name, one) for one in islice(left, width))


def _combined(names: list[str], choices: dict[str, list[Json]]) -> Iterator[dict[str, Json]]:
    width = VALUES if len(names) < 2 else max(4, int(TRIED ** (1 / len(names))))
    for values in product(*(choices[name][:width] for name in names)):
        yield dict(zip(names, values, strict=True))


def _choices(schema: dict[str, Json], known: list[Json], values: list[Json]) -> list[Json]:
    enum = schema.get("enum")
    if isinstance(enum, list):
        return _distinct(enum)[:VALUES]
    kind = schema.get("type")
    default = [schema["default"]] if "default" in schema else []
    if kind == "array":
        inner = schema.get("items")
        single = _choices(inner if isinstance(inner, dict) else {}, [], values)
        return _distinct([*known, *default, *([value] for value in single)])[:VALUES]
    said = schema.get("description")
    words = _QUOTED.findall(said) if isinstance(said, str) else []
    fitting = (value for value in (*known, *default, *words, *values) if _fits(value, kind))
    return _distinct(fitting)[:VALUES]


def _fits(value: Json, kind: object) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, str):
        return kind in ("string", None)
    if isinstance(value, int):
        return kind in ("integer", "number", "float", None)
    if isinstance(value, float):
        return kind in ("number", "float", None)
    return isinstance(value, dict) and kind == "object"


def _distinct(values: Iterable[Json]) -> list[Json]:
    return list({dumps(value): value for value in values}.values())


def of_calls(calls: Iterable[dict[str, Json]]) -> dict[str, list[Json]]:
    """Parameter name → the values that calls give it."""
    found: dict[str, list[Json]] = {}
    for parameters in calls:
        for name, value in parameters.items():
            found.setdefault(name, []).append(value)
    return found


def leaves(value: Json, longest: int = TEXT) -> list[Json]:
    """Keys and plain values of a JSON value at any depth, the first `LEAVES`, texts of at most `longest`
    characters. A text of JSON is read."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):  # a text that only begins like JSON
            value = loads(value)
    return list(islice(_leaves(value, 0, longest), LEAVES))


def _leaves(value: Json, depth: int, longest: int) -> Iterator[Json]:
    if depth > 40:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _leaves(inner, depth + 1, longest)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, depth + 1, longest)
    elif isinstance(value, int | float) or (isinstance(value, str) and 0 < len(value) <= longest):
        yield value


def apart(one: Json, other: Json) -> list[Json]:
    """Leaves that only one of two states has."""
    mine, theirs = leaves(one), leaves(other)
    here, there = {dumps(v) for v in mine}, {dumps(v) for v in theirs}
    return [v for v in (*theirs, *mine) if (dumps(v) in here) != (dumps(v) in there)]


def under(value: Json, field: str) -> Iterator[Json]:
    """Plain values that stand under a key of that name, at any depth."""
    for _, one in _mappings(value, "", 0):
        found = one.get(field)
        listed = found if isinstance(found, list) else [found] if field in one else []
        yield from (inner for inner in listed if not isinstance(inner, dict | list))


def beside(value: Json, key: str) -> list[str]:
    """Keys of every mapping that has `key`, and of those that stand under the same name (the `contents` of
    other folders): ids of other records, where records are kept by id."""
    mappings = list(_mappings(value, "", 0))
    fields = {field for field, one in mappings if field and key in one}
    return [name for field, one in mappings if key in one or field in fields for name in one]


def _mappings(value: Json, field: str, depth: int) -> Iterator[tuple[str, dict[str, Json]]]:
    """Every mapping in a JSON value with the name it stands under."""
    if depth > 40:
        return
    if isinstance(value, dict):
        yield field, value
        for name, one in value.items():
            yield from _mappings(one, name, depth + 1)
    elif isinstance(value, list):
        for one in value:
            yield from _mappings(one, field, depth + 1)
