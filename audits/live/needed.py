"""Which values of a read gold needs later, and whether a read that shows an old state misleads."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from robustbench_tc.live import LiveRow
from robustbench_tc.schema import Json, dumps

from ..invariants.base import HOLDS
from . import asked
from .met import gold_calls

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


def _needed(row: LiveRow, place: int, seen: Sequence[Seen]) -> Iterator[Json]:
    calls = gold_calls(row)
    said = [m.content for turn in row.turns[: calls[place].turn + 1] for m in turn.messages]
    before = [*(one.text for one in seen[:place]), *(dumps(g.call.parameters) for g in calls[: place + 1])]
    earlier = "\n".join([*said, *before])
    for gold in calls[place + 1 :]:
        for value in asked.leaves(gold.call.parameters, LONG):
            given = not isinstance(value, bool) and _gives(seen[place].text, value)
            if given and not _stands(value, earlier):
                yield value


def _gives(result: str, value: Json) -> bool:
    """Whether a result has a value, as a word or as a leaf: JSON writes line ends in another way."""
    same = (type(one) is type(value) and one == value for one in asked.leaves(result, LONG))
    return _stands(value, result) or any(same)


def _stands(value: Json, text: str) -> bool:
    """Whether a value stands in a text as a word of its own."""
    word = value if isinstance(value, str) else dumps(value)
    return bool(word) and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None
