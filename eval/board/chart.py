"""The board over time as one figure: every run that is vouched for, and the best of them so far."""

import math
from collections.abc import Sequence
from datetime import date

from markupsafe import Markup

from robustbench_tc.eval import figures
from robustbench_tc.eval.dots import thinned
from robustbench_tc.eval.figures import Axis, Dot, Path
from robustbench_tc.io import numbers

from .boards import Board, Row

DOTS = 200
"""At most; the leading ones are drawn first."""

SIZE = (760, 260)


def progress(board: Board) -> Markup:
    """Accuracy over time with a step line of the best so far; empty where no run is vouched for."""
    there = [row for row in (*board.rows, *board.past) if row.may_rank and row.head is not None]
    there.sort(key=lambda row: (row.day, row.run))
    points = [(_number(row), row.head.value) for row in there if row.head is not None]
    if not points:
        return Markup("")
    leading = _leading([value for _, value in points])
    steps: list[tuple[float, float]] = []
    for at in leading:
        steps += [(points[at][0], steps[-1][1])] if steps else []
        steps.append(points[at])
    steps.append((points[-1][0], steps[-1][1]))
    values = [value for _, value in points]
    tenths = range(math.floor(10 * min(values)), max(math.ceil(10 * max(values)), 1) + 1)
    x = Axis(points[0][0], points[-1][0], {_number(row): row.day for row in (there[0], there[-1])})
    y = Axis(tenths[0] / 10, tenths[-1] / 10, {t / 10: numbers.number(t / 10, 1) for t in tenths})
    places = [(x.share(a), y.share(b)) for a, b in points]
    dots = [
        Dot(
            *points[at],
            "ours" if at in leading else "past",
            f"{there[at].entry.submission.model}, {there[at].day}: {numbers.number(points[at][1])}",
            name=there[at].entry.submission.model if at == leading[-1] else "",
        )
        for at in thinned(places, SIZE, leading[::-1], DOTS)
    ]
    said = "perturbed accuracy of every run that is vouched for over time, and the best so far as a line"
    return figures.chart(x, y, dots, [Path(steps, "ours")], said, size=SIZE, right=24, kind="progress")


def _number(row: Row) -> float:
    """Its day as a number. What is no day of the calendar is the first of all days."""
    try:
        return float(date.fromisoformat(row.day).toordinal())
    except ValueError:
        return 1.0


def _leading(values: Sequence[float]) -> list[int]:
    """Where a value is above all before it."""
    found: list[int] = []
    for at, value in enumerate(values):
        if not found or value > values[found[-1]]:
            found.append(at)
    return found
