"""The board itself: the table of models."""

import math
from collections.abc import Iterable, Mapping, Sequence

from robustbench_tc.eval import figures
from robustbench_tc.eval.figures import Axis
from robustbench_tc.eval.stats.blind import BlindLine
from robustbench_tc.eval.stats.ranks import Places

from . import namesakes
from .board import Board
from .filters import bar
from .pages import label, not_behind, render
from .query import View
from .records import Metric


def board_page(
    view: View,
    board: Board,
    versions: Sequence[Board],
    default: str,
    places: Mapping[str, Places] | None = None,
) -> str:
    """A board. `places`: the ranks that the data allow, by row id (`places.places`)."""
    axis = axis_of(row.figures.accuracy(view.query.focus) for row in view.rows)
    return render(
        "board.html.j2",
        title=f"Board of {label(board)}",
        here="board",
        axis=axis,
        scale=figures.scale((axis.low, axis.high), axis.ticks),
        places=places or {},
        labels=namesakes.of(board),
        costs=any(row.tokens is not None or row.latency_s is not None for row in board.rows),
        blind_of=blind_of,
        not_behind=not_behind,
        **bar(view, board, versions, default, "/"),
    )


def blind_of(line: BlindLine, focus: str) -> float | None:
    """A reference line's accuracy in a focus."""
    return line.heads[focus] if focus in line.heads else line.types.get(focus)


def axis_of(metrics: Iterable[Metric]) -> Axis:
    """Tenths around every interval, so that differences can be seen."""
    known = [(one.value, one.low, one.high) for one in metrics if one.value is not None]
    ends = [end for value, low, high in known for end in (value, low, high) if end is not None] or [0.0, 1.0]
    low, high = math.floor(10 * min(ends)), max(math.ceil(10 * max(ends)), math.floor(10 * min(ends)) + 1)
    return Axis(low / 10, high / 10, {at / 10: f"{at / 10:g}" for at in range(low, high + 1)})
