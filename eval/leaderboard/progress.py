"""The progress page: every submission of a board over time, and the best so far of those that have ranks."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from markupsafe import Markup

from robustbench_tc.eval import figures
from robustbench_tc.eval.dots import thinned
from robustbench_tc.eval.figures import Axis, Dot
from robustbench_tc.io import numbers

from . import namesakes, tiers
from .board import Board
from .pages import label, render
from .query import PAGE, Query, View
from .row import Row

DOTS = 400
"""Of the figure, at most."""

SIZE = (760, 300)


class Line(NamedTuple):
    """One submission in the course of time."""

    row: Row
    value: float
    best: float | None
    """So far, of runs that have a rank or had one (`tiers.is_ranked`); None before the first of them."""
    leads: bool
    """Whether it was a new best."""


def course(board: Board) -> list[Line]:
    """Every dated submission, superseded ones included, oldest first."""
    dated = [row for row in (*board.rows, *board.past) if row.submitted_at is not None]
    dated.sort(key=lambda row: (row.submitted_at or "", row.id))
    lines: list[Line] = []
    best: float | None = None
    for row in dated:
        value = row.figures.value("perturbed") or 0.0
        leads = tiers.is_ranked(row) and (best is None or value > best)
        best = value if leads else best
        lines.append(Line(row, value, best, leads))
    return lines


def progress_page(board: Board, versions: Sequence[Board], default: str, page: int = 1) -> str:
    """The page; its table is paged, newest first."""
    lines = course(board)
    pages = max(1, -(-len(lines) // PAGE))
    page = min(page, pages)
    shown = lines[::-1][(page - 1) * PAGE : page * PAGE]
    query = Query(version=board.version, page=page)
    return render(
        "progress.html.j2",
        title=f"Progress, {label(board)}",
        here="progress",
        board=board,
        boards=versions,
        default=default,
        query=query,
        view=View(query, tuple(line.row for line in shown), len(lines), (), len(lines), page, pages),
        path="/progress",
        lines=shown,
        labels=namesakes.of(board),
        figure=_figure(lines) if lines else "",
        label=label,
    )


def _figure(lines: Sequence[Line]) -> Markup:
    """Perturbed accuracy over time, with a step line of the best so far where a run has a rank."""
    when = [datetime.fromisoformat(line.row.submitted_at or "").timestamp() for line in lines]
    values = [line.value for line in lines]
    tenths = range(math.floor(10 * min(values)), max(math.ceil(10 * max(values)), 1) + 1)
    ends = dict.fromkeys((when[0], when[-1]))
    x = Axis(when[0], when[-1], {end: f"{datetime.fromtimestamp(end, UTC):%Y-%m-%d}" for end in ends})
    y = Axis(tenths[0] / 10, tenths[-1] / 10, {t / 10: numbers.number(t / 10, 1) for t in tenths})
    leading = [i for i, line in enumerate(lines) if line.leads]
    steps: list[tuple[float, float]] = []
    for i in leading:
        steps += [(when[i], steps[-1][1])] if steps else []
        steps.append((when[i], values[i]))
    steps += [(when[-1], steps[-1][1])] if steps else []
    spots = [(x.share(moment), y.share(value)) for moment, value in zip(when, values, strict=True)]
    return figures.chart(
        x,
        y,
        [
            Dot(
                when[i],
                values[i],
                "ours" if lines[i].leads else "past",
                f"{lines[i].row.model}: {numbers.number(values[i])}",
                f"/model/{lines[i].row.id}",
            )
            for i in thinned(spots, SIZE, leading[::-1], DOTS)
        ],
        [figures.Path(steps, "ours")] if steps else [],
        "Perturbed accuracy of every submission over time, with the best so far; the table has the figures",
        size=SIZE,
        right=44,
        kind="progress",
    )
