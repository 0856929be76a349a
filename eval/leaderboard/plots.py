"""The plots of a board: every model as a point, with the efficient frontier."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from robustbench_tc import taxonomy
from robustbench_tc.eval import figures
from robustbench_tc.eval.dots import thinned
from robustbench_tc.eval.figures import Axis, Dot, Path
from robustbench_tc.eval.stats.frontier import Sign, efficient, outline
from robustbench_tc.io import numbers

from . import namesakes
from .board import Board
from .filters import bar
from .pages import dollars, label, render
from .query import View
from .row import Row

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
    value: Callable[[Row], float | None]
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


def _metric(name: str) -> Callable[[Row], float | None]:
    return lambda row: row.figures.value(name)


PERTURBED = Side("perturbed accuracy", _metric("perturbed"), 1)
SIDES: dict[str, tuple[str, Side, Side, str]] = {
    "clean": ("Clean against perturbed", Side("clean accuracy", _metric("clean"), 1), PERTURBED, ""),
    **{
        f"delta_{name}": (
            f"Accuracy against Δ {name}",
            Side(
                f"Δ {name} (left loses less)",
                _metric(f"delta_{name}"),
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
        Side("billions of parameters", lambda row: row.params_b, -1, True, numbers.size),
        PERTURBED,
        "parameters",
    ),
    "price": (
        "Accuracy against price",
        Side("US dollars for 1,000 rows, at stated prices", lambda row: row.price, -1, True, dollars),
        PERTURBED,
        "tokens and prices above 0",
    ),
}
"""Key → title, x, y, and what a model has to say to be drawn."""


def plots(rows: Sequence[Row], labels: Mapping[str, str]) -> list[Plot]:
    """Every plot. `rows`: in the board's order; `labels`: what tells rows of one name apart."""
    return [_plot(key, title, rows, labels, x, y, needs) for key, (title, x, y, needs) in SIDES.items()]


def _plot(
    key: str, title: str, rows: Sequence[Row], labels: Mapping[str, str], x: Side, y: Side, needs: str
) -> Plot:
    known: list[tuple[Row, tuple[float, float]]] = []
    for row in rows:
        across, up = x.value(row), y.value(row)
        if across is not None and up is not None and (across > 0 or not x.log):
            known.append((row, (across, up)))
    points = [point for _, point in known]
    best = efficient(points, x.better, y.better)
    shown: list[int] = []
    figure = Markup("")
    if len(known) > 1:
        size = LARGE if key == "clean" else SMALL
        axes = _axis(x, [across for across, _ in points]), _axis(y, [up for _, up in points])
        spots = [(axes[0].share(across), axes[1].share(up)) for across, up in points]
        shown = thinned(spots, size, best, POINTS)
        named = set(best[:: max(1, -(-len(best) // NAMED))])
        dots = [
            Dot(
                *points[i],
                "efficient" if i in set(best) else "dominated",
                _tip(known[i][0], labels, points[i], x, y),
                f"/model/{known[i][0].id}",
                known[i][0].model if i in named else "",
            )
            for i in shown
        ]
        figure = figures.chart(
            *axes,
            dots,
            [Path(outline([points[i] for i in best]), "frontier")],
            f"{title}: one point for each model, and the frontier; the table below has the figures",
            size=size,
            kind="scatter",
        )
    ids = tuple(known[i][0].id for i in best)
    return Plot(key, title, figure, ids, len(rows) - len(known), needs, len(shown), len(known))


def _tip(row: Row, labels: Mapping[str, str], point: tuple[float, float], x: Side, y: Side) -> str:
    name = f"{row.model} ({labels[row.id]})" if row.id in labels else row.model
    return f"{name}: {x.name.partition(' (')[0]} {x.spell(point[0])}, {y.name} {y.spell(point[1])}"


def _axis(side: Side, values: Sequence[float]) -> Axis:
    low, high = min(values), max(values)
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
