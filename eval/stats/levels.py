"""What an agent is asked for, level by level: perception, interaction, reasoning, internalization
(docs/levels.md).

A level's line over the core types stands beside one line for each pack that a run holds, and one over all of
them. Only the core's lines could be compared across runs that were asked for other packs; no headline number
is made of any.
"""

from typing import get_args

import msgspec

from robustbench_tc import taxonomy

from .intervals import Interval
from .outcomes import Outcomes
from .packs import Table
from .summary import Clustered, around
from .values import Counts, codes_of, line_of

LEVELS: tuple[taxonomy.Level, ...] = get_args(taxonomy.Level)

COLUMNS = ("level", "pack", "types", "right", "n", "accuracy", "Δ", "Δ matched")

EVERY = "all"
"""Stands for the core and the packs of a level together."""


class LevelLine(Counts, frozen=True, kw_only=True):
    """The rows of one level in the core, in one pack, or in all."""

    level: taxonomy.Level
    pack: str
    """`core`, the name of a pack, or `all` where there are several."""
    types: tuple[str, ...]
    """The types whose rows these are."""
    accuracy: Interval | None = None
    """None where a row, or of the core a type, is missing."""
    delta: float | None = None
    """Accuracy over all clean rows − this accuracy."""
    delta_matched: Interval | None = None
    """Mean over anchored pairs of (clean correct − perturbed correct); None without any."""


def levels(outcomes: Outcomes, *, allow_missing: bool = False) -> tuple[LevelLine, ...]:
    """The lines of every level that the run has a verdict in, in order."""
    counts, usable = outcomes.counts(), set(outcomes.usable(allow_missing))
    lines = _lines(tuple(code for code, found in counts.items() if found.n))
    clean = line_of(counts.get(taxonomy.CLEAN, Counts()), taxonomy.CLEAN in usable, None).accuracy
    made = []
    for (level, pack), codes in lines.items():
        found = sum((counts[code] for code in codes), Counts())
        wanted = set(codes)
        if pack == "core" or (pack == EVERY and (level, "core") in lines):
            wanted |= set(codes_of(level))
        line = line_of(found, allow_missing or wanted <= usable, clean)
        # Each by itself: not even the last digit of a core line depends on the packs beside it.
        intervals = Clustered(outcomes, [codes])
        made.append(
            LevelLine(
                **msgspec.structs.asdict(found),
                level=level,
                pack=pack,
                types=codes,
                accuracy=around(line.accuracy, intervals.accuracy, codes),
                delta=line.delta,
                delta_matched=around(line.delta_matched, intervals.delta_matched, codes),
            )
        )
    return tuple(made)


def _lines(codes: tuple[str, ...]) -> dict[tuple[taxonomy.Level, str], tuple[str, ...]]:
    """(level, pack) → the types among `codes`; with several packs also their sum."""
    found: dict[tuple[taxonomy.Level, str], tuple[str, ...]] = {}
    kinds = [kind for kind in taxonomy.among(codes) if kind.scored]
    for level in LEVELS:
        packs = {
            pack: tuple(kind.code for kind in kinds if (kind.level, kind.pack) == (level, pack))
            for pack in dict.fromkeys(kind.pack for kind in kinds if kind.level == level)
        }
        found |= {(level, pack): packs[pack] for pack in get_args(taxonomy.Pack) if pack in packs}
        if len(packs) > 1:
            found[level, EVERY] = tuple(code for of_pack in packs.values() for code in of_pack)
    return found


def table(lines: tuple[LevelLine, ...]) -> Table:
    """The lines as a table of the terminal and the report."""
    return Table(
        name="levels",
        title="by level: what an agent is asked for",
        columns=COLUMNS,
        rows=tuple(
            (
                one.level,
                one.pack,
                len(one.types),
                one.correct,
                one.n,
                one.accuracy,
                one.delta,
                one.delta_matched,
            )
            for one in lines
        ),
        note="The core's lines are made of the 22 types alone; no headline number holds a pack "
        "(docs/levels.md).",
    )
