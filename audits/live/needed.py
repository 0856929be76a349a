"""Which values of a read are needed: by gold later, or by the reply; and whether an old state misleads."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from robustbench_tc.schema import Json, LiveRow, dumps, loads

from ..checks import HOLDS, Verdict
from . import asked
from .met import GoldCall, gold_calls

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
            known = [value for result in read for value in asked.under(result, field)]
            if not values or any(value not in known for value in values):
                return f"turn {number}: gold has not read {field[:40]} {dumps(values)[:80]}"
    return HOLDS if asking else None


def uses(later: list[dict[str, Json]], value: Json) -> bool:
    """Whether later arguments have a value, whole or within a text."""
    text = str(value)
    leaves = [leaf for parameters in later for leaf in asked.leaves(parameters)]
    inside = any(isinstance(leaf, str) and len(text) > 1 and text in leaf for leaf in leaves)
    return inside or any(type(leaf) is type(value) and leaf == value for leaf in leaves)


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
        for value in asked.leaves(gold.call.parameters, LONG):
            if (
                not isinstance(value, bool)
                and _gives(seen[place].text, value)
                and not _stands(value, earlier)
            ):
                yield value


def _gives(result: str, value: Json) -> bool:
    """Whether a result has a value, as a word or as a leaf: JSON writes line ends in another way."""
    same = (type(one) is type(value) and one == value for one in asked.leaves(result, LONG))
    return _stands(value, result) or any(same)


def _stands(value: Json, text: str) -> bool:
    """Whether a value stands in a text as a word of its own."""
    word = value if isinstance(value, str) else dumps(value)
    return bool(word) and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None
