"""What the packs beyond the core measure, as tables: one module of this folder for each.

Every module is imported. It names its pack or packs (`PACKS`) and makes their tables (`tables`); it is asked
only where a run holds rows of one of them. The report, `rbtc summary --full` and their JSON show what it
gives, so a new number is written here and nowhere else.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import compress
from pkgutil import iter_modules
from typing import NamedTuple, TypeAlias, get_args

import msgspec
import numpy as np

from robustbench_tc import taxonomy
from robustbench_tc.io import numbers

from ..intervals import Interval
from ..outcomes import Outcomes
from ..runs import Run
from ..summary import Summary
from ..values import pack_of

PACKS = (*get_args(taxonomy.Pack), "live", "live_cascade")

Cell: TypeAlias = str | int | float | Interval | None
"""A text, a count, a share or difference, one with its 95 % interval; None: it cannot be said."""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table of one run."""

    name: str
    """For programs: `language_deltas`."""
    title: str
    """For people, without a full stop."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    """As many cells in each as there are columns, the first of them a text."""
    note: str = ""
    """What the values are and what they leave out, in whole sentences."""
    pack: str = ""
    """Whose table it is; empty for one that no pack makes."""


def spelled(
    cell: Cell,
    number: Callable[[float], str] = numbers.number,
    span: Callable[[Interval], str] = numbers.interval,
) -> tuple[str, str]:
    """A cell as people read it, and its interval or ""."""
    if isinstance(cell, Interval):
        return number(cell.value), span(cell)
    if isinstance(cell, float):
        return number(cell), ""
    return numbers.NONE if cell is None else str(cell), ""


def typeset(cell: Cell) -> tuple[str, str]:
    """`spelled` for pages: numbers with a real minus sign, texts as they are."""
    text, span = spelled(cell)
    return (text if isinstance(cell, str) else numbers.typeset(text)), numbers.typeset(span)


class Answer(NamedTuple):
    """An answer with its verdict."""

    unit: str
    """What counts as one in intervals and tests."""
    clean_id: str
    repeat: int
    right: int
    error_mode: str | None
    flags: frozenset[str]
    injected: bool | None
    attempts: int | None


ANSWER = ("clean_id", "repeat", "error_mode", "injected", "attempts")
"""What an answer has of a run's columns as they are."""


class Given(msgspec.Struct, frozen=True):
    """What the tables of a run are made from."""

    run: Run
    """Every verdict."""
    outcomes: Outcomes
    """The same as counts per clean id and type, over the rows of the subset."""
    summary: Summary
    allow_missing: bool = False
    """Whether values may stand over the rows that are there, where others are missing."""

    def codes(self, pack: str) -> tuple[str, ...]:
        """The pack's types that the run holds rows of, in order; those with missing rows only if allowed."""
        usable = self.outcomes.usable(self.allow_missing)
        return tuple(code for code in usable if code != taxonomy.CLEAN and pack_of(code) == pack)

    def answers(self, code: str) -> Iterator[Answer]:
        """Those with a verdict to the rows of a type that are in the counts."""
        rows, column = self.run.rows, self.outcomes.types.index(code)
        unit_of, there = self.outcomes.unit_of(), self.outcomes.n[:, column] > 0
        asked = set(compress(self.outcomes.clean_ids, there.tolist()))
        for at in np.flatnonzero((rows["type_code"] == code) & (rows["correct"] >= 0)).tolist():
            row = {name: rows[name][at] for name in ANSWER}
            if row["clean_id"] in asked:
                flags = frozenset(rows["flags"][at].split(","))
                yield Answer(unit=unit_of[row["clean_id"]], right=rows["correct"][at], flags=flags, **row)


Tables: TypeAlias = Callable[[Given], Iterable[Table]]


@cache
def makers() -> dict[str, Tables]:
    """Pack → what makes its tables."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    found = {pack: module.tables for module in modules for pack in module.PACKS}
    return {pack: found[pack] for pack in PACKS if pack in found}


def tables(given: Given) -> tuple[Table, ...]:
    """The tables of every pack that the run holds, packs in order."""
    return tuple(
        msgspec.structs.replace(table, pack=pack)
        for pack, make in makers().items()
        if given.codes(pack) or (pack == "live" and given.outcomes.live)
        for table in (*make(given), *_balanced(given, pack))
    )


ENOUGH = 30
"""Controls below which the table marks a type."""


def _balanced(given: Given, pack: str) -> Iterable[Table]:
    """The pack's types in which calling nothing is right or accepted, with what their accuracy is made of."""
    codes = [code for code in given.codes(pack) if code in given.outcomes.balanced]
    if codes:
        yield Table(
            name=f"{pack}_balanced",
            title="Where calling nothing is right or accepted",
            columns=(
                "type",
                "control",
                "controls",
                "balanced accuracy",
                "on its rows",
                "on controls",
                "never-calls",
            ),
            rows=tuple(_both_sides(given, code) for code in codes),
            note="Balanced accuracy, which is the type's accuracy everywhere, is the mean of the shares "
            "right on its rows and on their controls: rows of the same samples, asked in the same words, in "
            "which a call is due. never-calls: the share of its rows that an agent which always declines has "
            f"right; its balanced accuracy is 0.500. Fewer than {ENOUGH} controls: marked with *.",
        )


def _both_sides(given: Given, code: str) -> tuple[Cell, ...]:
    """A type's balanced accuracy beside the two shares that it is the mean of."""
    outcomes, control = given.outcomes, taxonomy.get(code).control
    at, due = outcomes.types.index(code), outcomes.types.index(control)
    there = outcomes.n[:, at] > 0
    n = int(outcomes.n[there, due].sum())
    called = int(outcomes.correct[there, due].sum())
    own = int(outcomes.correct[there, at].sum()) - called
    controls = int(there.sum())
    found = given.summary.types[code].accuracy
    return code, control, f"{controls}{'*' * (controls < ENOUGH)}", found, own / n, called / n, 1.0
