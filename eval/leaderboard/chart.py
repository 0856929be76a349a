"""The board over time as one figure: every run that is vouched for, and the best of them so far."""

import math
from itertools import accumulate

from markupsafe import Markup

from robustbench_tc.eval import figures
from robustbench_tc.eval.dots import thinned
from robustbench_tc.eval.figures import Axis, Dot, Path
from robustbench_tc.io import numbers
from robustbench_tc.safe_text import safe

from .boards import Board

DOTS = 200
"""At most; the leading ones are drawn first."""

NAME = 26
"""Letters of the best model's name, which stands at the end of the line."""

SIZE = (900, 260)


def progress(board: Board) -> Markup:
    """Accuracy over time with a step line of the best so far; empty where no run is vouched for."""
    there = [row for row in (*board.rows, *board.past) if row.may_rank and row.head is not None]
    there.sort(key=lambda row: (row.day, row.run))
    values = [row.head.value for row in there if row.head is not None]
    if not values:
        return Markup("")
    # As numbers of years; a day of a run's id need not be one of the calendar's.
    days = [int(row.day[:4]) + int(row.day[5:7]) / 12 + int(row.day[8:]) / 372 for row in there]
    best = [-1.0, *accumulate(values, max)]
    leading = [at for at, value in enumerate(values) if value > best[at]]
    steps = [(days[at], level) for at in leading for level in (max(best[at], values[leading[0]]), values[at])]
    tenths = range(math.floor(10 * min(values)), max(math.ceil(10 * best[-1]), 1) + 1)
    x = Axis(days[0], days[-1], {days[at]: there[at].day for at in (0, -1)})
    y = Axis(tenths[0] / 10, tenths[-1] / 10, {t / 10: numbers.number(t / 10, 1) for t in tenths})
    places = [(x.share(day), y.share(value)) for day, value in zip(days, values, strict=True)]
    dots = [
        Dot(
            days[at],
            values[at],
            "ours" if at in leading else "past",
            f"{safe(there[at].entry.submission.model)}, {there[at].day}: {numbers.number(values[at])}",
        )
        for at in thinned(places, SIZE, leading[::-1], DOTS)
    ]
    path = Path(
        [*steps, (days[-1], best[-1])], "ours", safe(there[leading[-1]].entry.submission.model)[:NAME]
    )
    return figures.chart(
        x,
        y,
        dots,
        [path],
        "perturbed accuracy of every run that is vouched for over time, and the best so far as a line",
        size=SIZE,
        right=200,
        kind="progress",
    )
