"""What reads show: the arguments that they are tried with, where two worlds differ, which values are needed.

Values to try come from what an agent could know: the call itself, what it was answered, gold's other
arguments, the schema's own words, and the two states, what differs in them first. Every choice is bounded.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from typing import NamedTuple

from robustbench_tc.schema import Json, LiveRow, LiveTool, dumps, loads
from robustbench_tc.worlds.host import Handle
from robustbench_tc.worlds.same_state import state_hash

from ..checks import HOLDS, Verdict
from .entries import GoldCall, gold_calls

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
        found = one.get(field, [])
        listed = found if isinstance(found, list) else [found]
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


# --- two worlds ---------------------------------------------------------------------------------------

_ERROR = re.compile(r"^\s*(?:\{\s*\"error\"\s*:|Error during execution:)")


def failed(text: str) -> bool:
    """Whether a result says that the call failed: an object with an error in front, or upstream's words."""
    return _ERROR.match(text) is not None


async def hash_of(world: Handle) -> str:
    """Of the state that a world is in."""
    return state_hash((await world.snapshot()).state)


async def first_difference(
    one: Handle, other: Handle, reads: Iterable[tuple[str, dict[str, Json]]]
) -> str | None:
    """The first read that two worlds answer differently, tried in copies of them. A tool that is called a
    read and yet moves the world is passed over, and what it did is gone."""
    tried = [await one.copy(), await other.copy()]
    before = await hash_of(one)
    settled, moving = set[str](), set[str]()
    try:
        for name, arguments in reads:
            if name in moving:
                continue
            answers = [await world.call(name, arguments) for world in tried]
            if name not in settled and not failed(answers[0].text):
                if await hash_of(tried[0]) != before:
                    moving.add(name)
                    for world in tried:
                        await world.aclose()
                    tried = [await one.copy(), await other.copy()]
                    continue
                settled.add(name)
            if answers[0].text != answers[1].text and not any(answer.problem for answer in answers):
                return f"{name} {dumps(arguments)}"
    finally:
        for world in tried:
            await world.aclose()
    return None


# --- what is needed -----------------------------------------------------------------------------------

LONG = 100_000
"""Characters of a text among gold's arguments: one that stands in a result is a value that was used."""


class Seen(NamedTuple):
    """What one of gold's calls came to."""

    text: str
    before: str
    after: str
    """Hashes of the state."""
    again: str | None
    """Of a write: the hash after a second equal call."""


def used(row: LiveRow, place: int, seen: Sequence[Seen]) -> str:
    """Whether a value of the read is one that gold uses later and could have from nowhere else."""
    if any(True for _ in _needed(row, place, seen)):
        return HOLDS
    name = gold_calls(row)[place].call.name
    return f"no value that {name} gives is needed later, or they are known before"


def matters(row: LiveRow, place: int, seen: Sequence[Seen], stale: str) -> str:
    """Whether gold's next step depends on a read that was answered `stale`."""
    calls = gold_calls(row)
    if all(later.turn > calls[place].turn for later in calls[place + 1 :]):
        return HOLDS
    if any(not _gives(stale, value) for value in _needed(row, place, seen)):
        return HOLDS
    return f"{calls[place].call.name} reads an old state, and the next step does not depend on it"


def answers(row: LiveRow, pairs: list[tuple[GoldCall, Seen]]) -> Verdict:
    """Whether gold has read what the replies have to hold; None where no turn asks."""
    asking = [(number, turn.answers) for number, turn in enumerate(row.turns) if turn.answers]
    for number, wanted in asking:
        read = [parsed(one.text) for gold, one in pairs if gold.turn <= number]
        for field, values in (pair for one in wanted for pair in one.items()):
            known = [value for result in read for value in under(result, field)]
            if not values or any(value not in known for value in values):
                return f"turn {number}: gold has not read {field[:40]} {dumps(values)[:80]}"
    return HOLDS if asking else None


def uses(later: list[dict[str, Json]], value: Json) -> bool:
    """Whether later arguments have a value, whole or within a text."""
    text = str(value)
    known = [leaf for parameters in later for leaf in leaves(parameters)]
    inside = any(isinstance(leaf, str) and len(text) > 1 and text in leaf for leaf in known)
    return inside or any(type(leaf) is type(value) and leaf == value for leaf in known)


def parsed(text: str) -> Json:
    """A result as JSON; None where it is none."""
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None


def _needed(row: LiveRow, place: int, seen: Sequence[Seen]) -> Iterator[Json]:
    calls = gold_calls(row)
    said = [m.content for turn in row.turns[: calls[place].turn + 1] for m in turn.messages]
    before = [*(one.text for one in seen[:place]), *(dumps(g.call.parameters) for g in calls[: place + 1])]
    earlier = "\n".join([*said, *before])
    for gold in calls[place + 1 :]:
        for value in leaves(gold.call.parameters, LONG):
            if (
                not isinstance(value, bool)
                and _gives(seen[place].text, value)
                and not _stands(value, earlier)
            ):
                yield value


def _gives(result: str, value: Json) -> bool:
    """Whether a result has a value, as a word or as a leaf: JSON writes line ends in another way."""
    same = (type(one) is type(value) and one == value for one in leaves(result, LONG))
    return _stands(value, result) or any(same)


def _stands(value: Json, text: str) -> bool:
    """Whether a value stands in a text as a word of its own."""
    word = value if isinstance(value, str) else dumps(value)
    return bool(word) and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None
