"""The types page: what every perturbation changes, and what it costs the models of a board."""

from collections.abc import Sequence
from typing import NamedTuple

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats.across import Across, across

from .board import Board, order
from .pages import label, render
from .query import Query
from .row import Row


class TypeOfBoard(NamedTuple):
    """One type over the models of a board."""

    code: str
    accuracy: Across
    delta: Across
    best: Row | None
    """The first model by accuracy under it."""


def types_page(board: Board, versions: Sequence[Board], default: str) -> str:
    """The page of one board."""
    return render(
        "types.html.j2",
        title=f"Types, {label(board)}",
        here="types",
        board=board,
        boards=versions,
        default=default,
        query=Query(version=board.version),
        label=label,
        lines=[_line(board, one.code) for one in taxonomy.types()],
    )


def _line(board: Board, code: str) -> TypeOfBoard:
    found = [row.figures.type(code) for row in board.rows]
    most = across(accuracy.value for accuracy, _ in found).most
    first = [row for row, (accuracy, _) in zip(board.rows, found, strict=True) if accuracy.value == most]
    return TypeOfBoard(
        code,
        across(accuracy.value for accuracy, _ in found),
        across(delta.value for _, delta in found),
        min(first, key=lambda row: order(row, code)) if most is not None else None,
    )
