"""The plots of a board: every model as a point, with the efficient frontier."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from robustbench_tc import taxonomy
from robustbench_tc.eval import figures
from robustbench_tc.eval.dots import thinned
from robustbench_tc.eval.figures import Axis, Dot, Path
from robustbench_tc.eval.stats.frontier import Sign, efficient, outline
from robustbench_tc.eval.stats.lattice import Floats
from robustbench_tc.io import numbers

from . import namesakes
from .board import Board
from .filters import bar
from .pages import dollars, label, render
from .query import View
from .row import Row, metric_values

PATH = "/plots"

LARGE, SMALL = (760, 420), (520, 340)
"""Sizes in pixels."""

POINTS = 250
"""Points of one plot: of more models those that would cover each other are drawn once."""

NAMED = 12
"""Names of the frontier's models that are tried."""


class Side(NamedTuple):
    """What one axis shows."""

    name: str
    value: str
    """A metric (`stats.values.METRICS`), or one of STATED."""
    better: Sign
    log: bool = False
    spell: Callable[[float], str] = numbers.number


class Plot(NamedTuple):
    """One plot as it is shown."""

    key: str
    title: str
    figure: Markup
    """Empty where fewer than two models can be drawn."""
    frontier: tuple[str, ...]
    """Ids of the rows on it, from the best in x on."""
    left_out: int
    """Models that do not say what one of the axes needs."""
    needs: str
    """What those do not say."""
    drawn: int
    models: int


PERTURBED = Side("perturbed accuracy", "perturbed", 1)
SIDES: dict[str, tuple[str, Side, Side, str]] = {
    "clean": ("Clean against perturbed", Side("clean accuracy", "clean", 1), PERTURBED, ""),
    **{
        f"delta_{name}": (
            f"Accuracy against Δ {name}",
            Side(
                f"Δ {name} (left loses less)",
                f"delta_{name}",
                -1,
                spell=lambda value: numbers.typeset(numbers.signed(value)),
            ),
            PERTURBED,
            "",
        )
        for name in taxonomy.COMPONENTS
    },
    "size": (
        "Accuracy against size",
        Side("billions of parameters", "params_b", -1, True, numbers.size),
        PERTURBED,
        "parameters",
    ),
    "price": (
        "Accuracy against price",
        Side("US dollars for 1,000 rows, at stated prices", "price", -1, True, dollars),
        PERTURBED,
        "tokens and prices above 0",
    ),
}
"""Key → title, x, y, and what a model has to say to be drawn."""

STATED = ("params_b", "price")
"""What an axis may show besides metrics: fields of a row."""


def plots(rows: Sequence[Row], labels: Mapping[str, str]) -> list[Plot]:
    """Every plot. `rows`: in the board's order; `labels`: what tells rows of one name apart."""
    drawn = {side.value for _, x, y, _ in SIDES.values() for side in (x, y)}
    values = metric_values([row.figures for row in rows], sorted(drawn.difference(STATED)))
    values |= {name: np.array([getattr(row, name) for row in rows], np.float64) for name in STATED}
    return [
        _plot(key, title, rows, labels, np.stack((values[x.value], values[y.value]), 1), x, y, needs)
        for key, (title, x, y, needs) in SIDES.items()
    ]


def _plot(
    key: str,
    title: str,
    rows: Sequence[Row],
    labels: Mapping[str, str],
    values: Floats,
    x: Side,
    y: Side,
    needs: str,
) -> Plot:
    """One plot; `values`: [rows, 2], NaN where a row does not say it."""
    known = ~np.isnan(values).any(axis=1) & ((values[:, 0] > 0) | (not x.log))
    of, points = np.flatnonzero(known), values[known]
    best = efficient(points, x.better, y.better)
    shown: list[int] = []
    figure = Markup("")
    if len(points) > 1:
        size = LARGE if key == "clean" else SMALL
        axes = _axis(x, points[:, 0]), _axis(y, points[:, 1])
        spots = np.stack([axis.shares(points[:, i]) for i, axis in enumerate(axes)], 1)
        shown = thinned(spots, size, best, POINTS)
        named, ours = set(best[:: max(1, -(-len(best) // NAMED))]), set(best)
        dots = []
        for i in shown:
            row, (across, up) = rows[of[i]], points[i].tolist()
            kind = "efficient" if i in ours else "dominated"
            tip = _tip(row, labels, (across, up), x, y)
            dots.append(Dot(across, up, kind, tip, f"/model/{row.id}", row.model if i in named else ""))
        figure = figures.chart(
            *axes,
            dots,
            [Path(outline([(across, up) for across, up in points[best].tolist()]), "frontier")],
            f"{title}: one point for each model, and the frontier; the table below has the figures",
            size=size,
            kind="scatter",
        )
    ids = tuple(rows[of[i]].id for i in best)
    return Plot(key, title, figure, ids, len(rows) - len(points), needs, len(shown), len(points))


def _tip(row: Row, labels: Mapping[str, str], point: tuple[float, float], x: Side, y: Side) -> str:
    name = f"{row.model} ({labels[row.id]})" if row.id in labels else row.model
    return f"{name}: {x.name.partition(' (')[0]} {x.spell(point[0])}, {y.name} {y.spell(point[1])}"


def _axis(side: Side, values: Floats) -> Axis:
    low, high = float(values.min()), float(values.max())
    if not side.log:
        return figures.round_axis(low, high, side.name)
    low, high = low / 1.3, high * 1.3
    ticks = {at: side.spell(at) for at in figures.decades(low, high)}
    return Axis(low, high, ticks, log=True, name=side.name)


def plots_page(view: View, rows: Sequence[Row], board: Board, versions: Sequence[Board], default: str) -> str:
    """The page; `rows`: all that fit, of which the table shows those of `view`."""
    labels = namesakes.of(board)
    return render(
        "plots.html.j2",
        title=f"Plots, {label(board)}",
        here="plots",
        plots=plots(rows, labels),
        labels=labels,
        **bar(view, board, versions, default, PATH),
    )
