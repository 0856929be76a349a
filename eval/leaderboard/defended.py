"""Model × defence: defended runs beside the same submitter's undefended run of the same model and mode.

They are submissions of their own kind: on no board, without a rank, and here alone. The figures are those of
`rbtc defences` (`eval.stats.defences`), over the verdicts that the board holds.
"""

from collections.abc import Callable
from typing import NamedTuple

from robustbench_tc.eval.stats.defences import Cost, DefenceLine, line, with_frontier

from .board import Board, outcomes
from .records import Entry
from .row import Row

UNKNOWN = Cost(None, None)


class Defended(NamedTuple):
    """A defended run; `line` is None where there is no run to compare it with."""

    row: Row
    cost: Cost
    line: DefenceLine | None


class Group(NamedTuple):
    """The defended runs of one submitter's model in one mode."""

    base: Row | None
    """The undefended run that is listed; None: nobody has submitted it."""
    base_cost: Cost
    runs: tuple[Defended, ...]


Key = tuple[str, str, str]


def keys(board: Board) -> list[Key]:
    """(model, user, mode) of every group, those with an undefended run first, in the board's order."""
    known = {key: row.rank for row in board.rows if (key := _key(row))}
    there = {_key(row) for row in board.defended if row.superseded_by is None}
    return sorted(there, key=lambda key: (key not in known, known.get(key, 0), key))


def _key(row: Row) -> Key:
    return row.model, row.user or "", row.mode or ""


def group(board: Board, key: Key, entry_of: Callable[[str], Entry | None]) -> Group:
    """The runs of a group, the most accurate on perturbed rows first."""
    base = next((row for row in board.rows if _key(row) == key), None)
    rows = [row for row in board.defended if row.superseded_by is None and _key(row) == key]
    rows.sort(key=lambda row: (-(row.figures.metric("perturbed").value or 0.0), row.defence, row.id))
    costs = {row.id: _cost(entry_of(row.id)) for row in rows}
    if base is None or base.figures.verdicts is None:
        return Group(None, UNKNOWN, tuple(Defended(row, costs[row.id], None) for row in rows))
    plain = outcomes(base.figures)
    lines = with_frontier(
        [
            line(
                plain,
                outcomes(row.figures),
                run=row.id,
                defences=tuple(row.defence.split(",")),
                cost=costs[row.id],
            )
            for row in rows
        ]
    )
    runs = (Defended(row, costs[row.id], one) for row, one in zip(rows, lines, strict=True))
    return Group(base, _cost(entry_of(base.id)), tuple(runs))


def _cost(entry: Entry | None) -> Cost:
    return entry.cost or UNKNOWN if entry is not None else UNKNOWN
