"""Values that an agent could try as arguments, best guesses first: from gold, results, words, the state."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from robustbench_tc.schema import Call, Json, LiveRow, LiveTool
from robustbench_tc.worlds.fit import wrong_type

from .trace import Traced

VALUES = 8
"""Values that are tried of one parameter."""

CALLS = 32
"""Calls that are tried of one tool."""

_QUOTED = re.compile(r"[\"']([^\"'\n]{1,80})[\"']")
_WORD = re.compile(r"[^\s,;:!?()\"]+")


class Leaf(NamedTuple):
    """A value, and the name it stood under (empty: in running text)."""

    field: str
    value: Json
    path: tuple[str | int, ...] = ()


def leaves(value: Json, field: str = "", path: tuple[str | int, ...] = ()) -> Iterator[Leaf]:
    """Every text, number and boolean in a JSON value; depth is bounded."""
    if len(path) > 30:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, str(key), (*path, key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from leaves(inner, field, (*path, index))
    elif value is not None:
        yield Leaf(field, value, path)


def parsed(text: str) -> Json:
    """A result as JSON; None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def words(text: str) -> Iterator[Leaf]:
    """Quoted passages, words and numbers of what a user says, those that look like ids or addresses first."""
    yield from (Leaf("", found) for found in _QUOTED.findall(text))
    plain = [word.strip(".'") for word in _WORD.findall(text)]
    odd = [word for word in plain if re.search(r"\d|@|_|\w\.\w", word)]
    for word in (*odd, *(word for word in plain if len(word) > 2)):
        yield Leaf("", word)
        number = parsed(word)
        if isinstance(number, int | float):
            yield Leaf("", number)


def keys(value: Json, field: str = "", depth: int = 0) -> Iterator[Leaf]:
    """Keys of mappings in a state: many worlds hold records by their ids."""
    if depth > 30:
        return
    if isinstance(value, Mapping):
        if len(value) > 1 and all(isinstance(inner, Mapping) for inner in value.values()):
            yield from (Leaf(f"{field.removesuffix('s')}_id", key) for key in value)
        for key, inner in value.items():
            yield from keys(inner, str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from keys(inner, field, depth + 1)


def known(row: LiveRow, calls: Sequence[Traced], turn: int, texts: Sequence[str] = ()) -> list[Leaf]:
    """What an agent that did as gold can know in a turn: gold's arguments and results so far, the user's
    words up to it, and `texts` as further results, which come first."""
    found = [leaf for text in texts for leaf in leaves(parsed(text))]
    for one in reversed(calls):
        found += leaves(one.call.parameters)
        found += leaves(parsed(one.text))
    for said in reversed(row.turns[: turn + 1]):
        for message in said.messages:
            found += words(message.content)
    return found


def of_state(state: Json) -> list[Leaf]:
    """The values of a state and the keys of its records."""
    return [*keys(state), *leaves(state)]


def tries(tool: LiveTool, pool: Sequence[Leaf]) -> Iterator[Call]:
    """Calls of a tool with arguments from a pool, at most `CALLS`: required ones, then one optional."""
    properties = tool.parameters.get("properties") or {}
    required = [name for name in tool.parameters.get("required") or () if name in properties]
    values = {name: _values(name, schema, pool) for name, schema in properties.items()}
    optional = [name for name in properties if name not in required and values[name]]
    sets = [required, *([*required, name] for name in optional)]
    made = (
        Call(tool.name, dict(zip(names, chosen, strict=True)))
        for names in sets
        for chosen in _combined([values[name] for name in names])
    )
    yield from itertools.islice(made, CALLS)


def _combined(lists: Sequence[Sequence[Json]]) -> list[tuple[Json, ...]]:
    """Every choice of one value each, those of the best guesses first."""
    places = itertools.product(*(range(len(values)) for values in lists))
    ordered = sorted(itertools.islice(places, 4096), key=lambda chosen: (sum(chosen), chosen))
    return [tuple(values[i] for values, i in zip(lists, chosen, strict=True)) for chosen in ordered]


def _values(name: str, schema: Json, pool: Sequence[Leaf]) -> list[Json]:
    """Values for a parameter: those under its own name or quoted in its description (where BFCL lists what
    can be given), under a name that is alike, then any of its type."""
    if not isinstance(schema, Mapping):
        return []
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"][:VALUES])
    if schema.get("type") == "boolean":
        return [False, True]
    if schema.get("type") == "array":
        return [[value] for value in _values(name, schema.get("items") or {}, pool)[:3]]
    description = schema.get("description")
    said = _QUOTED.findall(description) if isinstance(description, str) else []
    ranked = sorted((*pool, *(Leaf(name, word) for word in said)), key=lambda one: _distance(name, one.field))
    found: list[Json] = []
    for leaf in ranked:
        fits = wrong_type({"properties": {name: schema}}, {name: leaf.value}) is None
        if fits and not any(type(one) is type(leaf.value) and one == leaf.value for one in found):
            found.append(leaf.value)
            if len(found) == VALUES:
                break
    return found


def _distance(name: str, field: str) -> int:
    if field == name:
        return 0
    shared = set(name.lower().split("_")) & set(field.lower().split("_")) - {"id", ""}
    if shared or (field and (name.lower().endswith(field.lower()) or field.lower().endswith(name.lower()))):
        return 1
    return 2 if field == "" else 3
