"""The progress page: every submission of a board over time, and the best so far."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from markupsafe import Markup

from robustbench_tc.eval import figures
from robustbench_tc.eval.figures import Axis, Dot
from robustbench_tc.io import numbers

from .board import Board
from .pages import label, render
from .query import Query
from .row import Row


def progress_page(board: Board, versions: Sequence[Board], default: str) -> str:
    """Every submission of a board over time."""
    dated = [row for row in (*board.rows, *board.past) if row.submitted_at is not None]
    dated.sort(key=lambda row: (row.submitted_at or "", row.id))
    lines: list[tuple[Row, float, bool]] = []
    best = -1.0
    for row in dated:
        value = row.figures.metric("perturbed").value or 0.0
        lines.append((row, max(best, value), value > best))
        best = max(best, value)
    return render(
        "progress.html.j2",
        title=f"Progress, {label(board)}",
        here="progress",
        board=board,
        boards=versions,
        default=default,
        query=Query(version=board.version),
        lines=lines,
        figure=_course(lines) if lines else "",
        label=label,
    )


def _course(lines: Sequence[tuple[Row, float, bool]]) -> Markup:
    """Perturbed accuracy over time, with a step line of the best so far."""
    when = [datetime.fromisoformat(row.submitted_at or "").timestamp() for row, _, _ in lines]
    values = [row.figures.metric("perturbed").value or 0.0 for row, _, _ in lines]
    tenths = range(math.floor(10 * min(values)), max(math.ceil(10 * max(values)), 1) + 1)
    ends = dict.fromkeys((when[0], when[-1]))
    steps = [(when[0], lines[0][1])]
    for moment, (_, best, _) in zip(when, lines, strict=True):
        steps += [(moment, steps[-1][1]), (moment, best)]
    return figures.chart(
        Axis(when[0], when[-1], {end: f"{datetime.fromtimestamp(end, UTC):%Y-%m-%d}" for end in ends}),
        Axis(tenths[0] / 10, tenths[-1] / 10, {t / 10: numbers.number(t / 10, 1) for t in tenths}),
        [
            Dot(moment, value, "ours" if leads else "past", f"{row.model}: {numbers.number(value)}")
            for moment, value, (row, _, leads) in zip(when, values, lines, strict=True)
        ],
        [figures.Path(steps, "ours")],
        "Perturbed accuracy of every submission over time, with the best so far; the table has the figures",
        size=(760, 300),
        right=44,
        kind="progress",
    )


