"""The heat map: accuracy or Δ of every model under every type."""

from collections.abc import Sequence

from . import namesakes
from .board import Board
from .filters import bar
from .pages import heat, label, render
from .query import View
from .row import CONDITIONS, Row

PATH = "/heatmap"


def heatmap_page(view: View, board: Board, versions: Sequence[Board], default: str) -> str:
    """The page; `show=delta` of the query asks for Δ."""
    by_delta = view.query.show == "delta"
    return render(
        "heatmap.html.j2",
        title=f"Heat map, {label(board)}",
        here="heatmap",
        by_delta=by_delta,
        cells=lambda row: _cells(row, by_delta),
        labels=namesakes.of(board),
        **bar(view, board, versions, default, PATH),
    )


def _cells(row: Row, by_delta: bool) -> list[tuple[float | None, str]]:
    """(value, class) of clean and every type."""
    found: list[tuple[float | None, str]] = []
    for condition in CONDITIONS:
        one = row.figures.delta(condition) if by_delta else row.figures.accuracy(condition)
        found.append((one.value, heat_of_delta(one.value) if by_delta else heat(one.value)))
    return found


def heat_of_delta(value: float | None) -> str:
    """The class of a cell: nothing lost is as light as accuracy 1, half of all rows lost as dark as 0."""
    return "none" if value is None else heat(1 - 2 * max(0.0, value))
