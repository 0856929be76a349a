"""Runs of one name told apart: the shortest label that says how each differs from the others."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from .board import Board
from .row import Row

RESPECTS = ("user", "mode", "defence", "day", "id")
"""What is looked at, in this order, until all of a name differ."""


def labels(rows: Iterable[Row]) -> dict[str, str]:
    """Row id → what tells it from those of the same name; rows whose name is theirs alone are left out."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.model.casefold()].append(row)
    return {
        row.id: label
        for group in groups.values()
        if len(group) > 1
        for row, label in zip(group, _apart(group), strict=True)
    }


def of(board: Board) -> dict[str, str]:
    """`labels` of a board's rows."""
    return board.once("labels", lambda: labels(board.rows))


def _apart(group: Sequence[Row]) -> list[str]:
    said: list[tuple[str, ...]] = [() for _ in group]
    for respect in RESPECTS:
        values = [_of(row, respect) for row in group]
        if len(set(values)) > 1:
            more = [(*words, value) for words, value in zip(said, values, strict=True)]
            if len(set(more)) > len(set(said)):
                said = more
        if len(set(said)) == len(group):
            break
    return [", ".join(words) for words in said]


def _of(row: Row, respect: str) -> str:
    if respect == "user":
        return row.user or "the paper"
    if respect == "defence":
        return row.defence or "undefended"
    if respect == "day":
        return (row.submitted_at or "")[:10] or "undated"
    if respect == "id":
        return row.id[-6:]
    return row.mode or "mode unknown"
