"""The types page: what every perturbation changes, and what it costs the models of a board."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats.across import Across, across

from .board import Board, best_first
from .pages import label, render
from .query import Query
from .row import Row, type_values


class TypeOfBoard(NamedTuple):
    """One type over the models of a board."""

    code: str
    accuracy: Across
    delta: Across
    best: Row | None
    """The first by accuracy under it, of models that have a rank, else of all."""


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
        lines=lines_of(board),
    )


def lines_of(board: Board) -> list[TypeOfBoard]:
    """Every core type over the rows of a board."""
    found = type_values([row.figures for row in board.rows])
    ranked = [at for at, row in enumerate(board.rows) if row.rank] or list(range(len(board.rows)))
    return [_line(board.rows, ranked, code, found[code]) for code in taxonomy.codes()]


def _line(rows: Sequence[Row], ranked: Sequence[int], code: str, found: NDArray[np.float64]) -> TypeOfBoard:
    accuracies, deltas = (across(column[~np.isnan(column)]) for column in found.T)
    of_ranked = found[ranked, 0]
    most = np.nanmax(of_ranked, initial=-1.0)
    first = [rows[ranked[at]] for at in np.flatnonzero(of_ranked == most).tolist()]
    return TypeOfBoard(code, accuracies, deltas, next(iter(best_first(first, code)), None))
