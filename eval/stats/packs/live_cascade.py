"""Cascades: whether faults of one episode cost more together than each alone would lead one to expect."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from robustbench_tc.live_types import CASCADES, type_code

from ..intervals import share_of
from . import Cell, Given, Table

if TYPE_CHECKING:
    from ...live.score import LiveScore

PACKS = ("live_cascade",)

TOGETHER = {"ac": "2, of different calls", "ab": "2, the second on the retry of the same call", "abc": "3"}
"""Which faults of a task (`live_types.CASCADES`) → their line."""

Scores = Mapping[str, Mapping[tuple[str, int], "LiveScore"]]
"""Which faults → task and repeat → its score; "" are the clean rows."""


def tables(given: Given) -> Iterable[Table]:
    """Success by number of faults, and what each fault of several cost."""
    codes = {"": "clean", **{letters: type_code(name) for name, letters in CASCADES.items()}}
    found = [one for one in given.run.live if one.success is not None]
    scores = {
        letters: {(one.clean_id, one.repeat): one for one in found if one.type_code == code}
        for letters, code in codes.items()
    }
    yield Table(
        name="live_cascade_success",
        title="Success by number of faults",
        columns=("faults", "episodes", "all met", "success", "if independent"),
        rows=tuple(_lines(scores)),
        note="If independent: the clean rows' share right, times the share right with each fault alone over "
        "the clean rows', all of the tasks of the line that have every row it takes; it has no interval of "
        "its own. Success below it: together they cost more than each alone. Episodes that did not meet all "
        "of their faults count too: who gives up at the first meets no second.",
    )
    yield Table(
        name="live_cascade_costs",
        title="Which fault cost what",
        columns=("faults", "fault", "met", "calls after it", "writes after it", "tokens after it"),
        rows=tuple(_costs(scores)),
        note="a and b stand before the same call: a is not carried out; b is, and is told as a is. c is "
        "another call's. Summed over the episodes that met it: what came after it in its turn, until the "
        "agent met another.",
    )


def _lines(scores: Scores) -> Iterator[tuple[Cell, ...]]:
    clean, faulted = scores[""], set().union(*(scores[letters] for letters in CASCADES.values()))
    yield _line("0", 0, [one for key, one in clean.items() if key in faulted])
    yield _line("1", 1, [one for letter in "abc" for key, one in scores[letter].items() if key in clean])
    for letters, name in TOGETHER.items():
        parts = ("", *letters)
        same = [key for key in scores[letters] if all(key in scores[part] for part in parts)]
        right = {part: sum(bool(scores[part][key].success) for key in same) for part in parts}
        independent = None
        if right[""]:
            kept = prod(right[letter] / right[""] for letter in letters)
            independent = min(1.0, kept * right[""] / len(same))
        yield _line(name, len(letters), [scores[letters][key] for key in same], independent)


def _line(
    name: str, faults: int, found: Sequence["LiveScore"], independent: float | None = None
) -> tuple[Cell, ...]:
    met = sum((one.met or 0) >= faults for one in found)
    success = share_of(sorted((one.clean_id, bool(one.success)) for one in found))
    return name, len(found), met if faults else None, success, independent


def _costs(scores: Scores) -> Iterator[tuple[Cell, ...]]:
    for letters, name in TOGETHER.items():
        for at, letter in enumerate(letters):
            met = [cost for one in scores[letters].values() if (cost := one.faults[at])["met"]]
            known = ([cost[what] for cost in met] for what in ("steps", "writes", "tokens"))
            yield name, letter, len(met), *(None if None in counts else sum(counts) for counts in known)
