"""The matrix page: who is significantly better than whom, and the ranks that the data allow."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from robustbench_tc.eval.stats import ranks
from robustbench_tc.eval.stats.ranks import Places

from . import namesakes
from .board import Board
from .filters import bar
from .pages import focus_name, label, render
from .places import pairs
from .query import View
from .row import Row

PATH = "/matrix"
SHOWN = ranks.EXACT
"""Models of a matrix: the first of a view, so that every pair is tested exactly."""


class Cell(NamedTuple):
    """One model against another."""

    sign: str
    """`better`, `worse`, or empty: not told apart."""
    p: float
    """Holm's, over the pairs that are shown."""


class Line(NamedTuple):
    """A row of the matrix."""

    row: Row
    cells: tuple[Cell | None, ...]
    """None for the model itself."""
    better: int
    """Models of the matrix that it is significantly better than."""
    worse: int


def lines(rows: Sequence[Row], focus: str) -> list[Line]:
    """Every row against every other one."""
    found = pairs(rows, focus)
    adjusted = found.adjusted()
    out = []
    for i, row in enumerate(rows):
        cells = tuple(
            None
            if i == j
            else Cell(
                "better" if found.better[i, j] else "worse" if found.better[j, i] else "",
                float(adjusted[i, j]),
            )
            for j in range(len(rows))
        )
        signs = [cell.sign for cell in cells if cell is not None]
        out.append(Line(row, cells, signs.count("better"), signs.count("worse")))
    return out


def matrix_page(
    view: View, board: Board, versions: Sequence[Board], default: str, places: Mapping[str, Places]
) -> str:
    """The page of the first SHOWN models of a view."""
    shown = view.rows[:SHOWN]
    return render(
        "matrix.html.j2",
        title=f"Matrix, {label(board)}",
        here="matrix",
        lines=lines(shown, view.query.focus) if len(shown) > 1 else [],
        places=places,
        labels=namesakes.of(board),
        focus_said=focus_name(view.query.focus),
        exact=ranks.EXACT,
        most=ranks.MOST,
        **bar(view, board, versions, default, PATH),
    )
