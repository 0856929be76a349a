"""Figures as SVG, drawn by hand so that they follow the reader's colour scheme: `figures.css` colours their
classes in light and dark. Every figure in a page has its numbers in a table beside it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple, TypeVar

from markupsafe import Markup, escape

from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.io import numbers
from robustbench_tc.safe_text import shortened

Value = TypeVar("Value")

Cell = tuple[str, str, str | None, str]
"""Of a grid: text, colour, class, tip."""

ROW = 22
"""Height of a row in pixels."""

NAME = 30
"""Characters of a name beside a grid: a longer one is shortened, its tip has it whole."""

CODE = 24
"""Characters of a type's code in a figure."""

LINE = 15
"""Least distance of two names above each other."""

GAP = 7
"""Between a dot's centre and its name."""


def style() -> Markup:
    """The style sheet of all figures."""
    return Markup(files("robustbench_tc.eval.report").joinpath("figures.css").read_text("utf-8"))


# --- elements -----------------------------------------------------------------------------------------


def element(name: str, *inside: str, **attributes: str | float | None) -> Markup:
    """An element; text and attributes are escaped. `_class` is `class`, `text_anchor` is `text-anchor`."""
    said = "".join(
        f' {key.strip("_").replace("_", "-")}="'
        f'{escape(value if isinstance(value, str) else f"{round(value, 1):g}")}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{said}>{''.join(map(escape, inside))}</{name}>")


def _svg(
    width: float,
    height: float,
    parts: Iterable[str],
    label: str | None = None,
    kind: str | None = None,
) -> Markup:
    """`label` says what is to be seen; a figure without one only repeats what stands beside it."""
    said = {"aria_hidden": "true"} if label is None else {"role": "img", "aria_label": label}
    box = f"0 0 {width:.0f} {height:.0f}"
    return element("svg", *parts, _class=kind, viewBox=box, width=width, height=height, **said)


def _text(x: float, y: float, text: str, kind: str | None = None, anchor: str | None = None) -> Markup:
    return element("text", text, x=x, y=y, _class=kind, text_anchor=anchor)


def _with_tip(tip: str, *parts: str, kind: str | None = None) -> Markup:
    return element("g", element("title", tip), *parts, _class=kind)


# --- rows of names ------------------------------------------------------------------------------------


def heatmap(
    rows: Sequence[tuple[str, Mapping[str, Interval | None]]],
    groups: Mapping[str, Mapping[str, str]],
    label: str,
) -> Markup:
    """Shares as coloured cells, a row for each name. `groups`: heading → column → its name."""

    def cell(found: Interval) -> Cell:
        # Three classes, because the text's colour has to change at another value in dark than in light.
        side = "high" if found.value >= 0.62 else "mid" if found.value >= 0.53 else "low"
        tip = f"{numbers.number(found.value)} {numbers.interval(found)}, n {found.n}"
        return f"{100 * found.value:.0f}", f"heat {_step(found.value)}", side, tip

    return _grid(rows, groups, label, cell)


class Shift(NamedTuple):
    """A loss (positive) or a gain, and whether a test tells it from none."""

    value: float
    significant: bool | None
    """None: nothing was tested."""
    tip: str


def shifts(
    rows: Sequence[tuple[str, Mapping[str, Shift | None]]],
    groups: Mapping[str, Mapping[str, str]],
    label: str,
    reach: float,
) -> Markup:
    """Losses and gains as coloured cells, in points; `reach`: the shift of the strongest colour.

    Significant ones have a border and a bold number, so that nothing hangs on colour alone.
    """

    def cell(found: Shift) -> Cell:
        side = "loss" if found.value > 0 else "win"
        colour = f"{side} {_step(min(abs(found.value) / reach, 1.0))}"
        word = {True: "significant", False: "not significant", None: "not tested"}[found.significant]
        text = numbers.typeset(numbers.number(100 * found.value, 0))
        return text, colour, "sure" if found.significant else None, f"{found.tip}, {word}"

    return _grid(rows, groups, label, cell)


def _step(share: float) -> str:
    """The class of a share from 0 to 1, in twentieths: a page allows no style of single elements."""
    return f"s{round(20 * share)}"


def _grid(
    rows: Sequence[tuple[str, Mapping[str, Value | None]]],
    groups: Mapping[str, Mapping[str, str]],
    label: str,
    cell_of: Callable[[Value], Cell],
) -> Markup:
    longest = max((len(said) for said, _ in rows), default=0)
    left, width, head, gap = 16 + 6.7 * min(max(longest, 8), NAME), 35, 146, 8
    x = left
    parts: list[Markup] = []
    columns: list[tuple[str, str, float]] = []
    for heading, names in groups.items():
        parts.append(_text(x + width * len(names) / 2, 12, heading, "axis", "middle"))
        for column, name in names.items():
            turned = f"translate({x + width / 2 + 4:g} {head - 6}) rotate(-55)"
            parts.append(element("text", shortened(column, CODE - 2), transform=turned, _class="axis"))
            columns.append((column, name, x))
            x += width
        x += gap
    for at, (said, values) in enumerate(rows):
        y = head + at * ROW
        parts.append(_with_tip(said, _text(left - 8, y + 15, shortened(said, NAME), "name", "end")))
        for column, name, start in columns:
            box = {"x": start, "y": y, "width": width - 2, "height": ROW - 2}
            if (value := values.get(column)) is None:
                parts.append(_with_tip(f"{said}, {name}: no value", element("rect", **box, _class="gap")))
                continue
            text, colour, kind, tip = cell_of(value)
            inside = _text(start + width / 2 - 1, y + 14.5, text, anchor="middle")
            cell = element("rect", **box, _class=colour, rx=2)
            parts.append(_with_tip(f"{said}, {name}: {tip}", cell, inside, kind=kind))
    return _svg(x + 62, head + ROW * len(rows) + 2, parts, label, "heatmap")


# --- two axes -----------------------------------------------------------------------------------------


class Axis(NamedTuple):
    """One direction of a chart."""

    low: float
    high: float
    ticks: Mapping[float, str]
    log: bool = False
    name: str = ""

    def share(self, value: float) -> float:
        """Where a value lies, from 0 at the low end to 1 at the high end."""
        low, high, at = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return (at - low) / (high - low) if high > low else 0.5

    def place(self, value: float) -> float:
        """The same in percent, at most at an end."""
        return round(100 * min(max(self.share(value), 0.0), 1.0), 2)


class Dot(NamedTuple):
    """A point of a chart."""

    x: float
    y: float
    kind: str
    tip: str = ""
    name: str = ""
    """Stands beside it where there is room."""


class Path(NamedTuple):
    """A line of a chart; its name stands at its end."""

    points: Sequence[tuple[float, float]]
    kind: str
    name: str = ""


def chart(
    x: Axis,
    y: Axis,
    dots: Iterable[Dot],
    paths: Iterable[Path],
    label: str,
    *,
    size: tuple[int, int],
    right: int = 16,
    kind: str | None = None,
) -> Markup:
    """Points and lines between two axes. `right`: room for the names of lines."""
    (width, height), left, top, bottom = size, 52, 12, 34 + (20 if x.name else 0)

    def at(across: float, up: float) -> tuple[float, float]:
        inside = width - left - right, height - top - bottom
        return left + inside[0] * x.share(across), top + inside[1] * (1 - y.share(up))

    parts = []
    for value, said in y.ticks.items():
        _, level = at(x.low, value)
        parts.append(element("line", x1=left, y1=level, x2=width - right, y2=level, _class="grid"))
        parts.append(_text(left - 8, level + 4, said, "axis", "end"))
    for value, said in x.ticks.items():
        parts.append(_text(at(value, y.low)[0], height - bottom + 20, said, "axis", "middle"))
    if x.name:
        parts.append(_text((left + width - right) / 2, height - 8, x.name, "axis", "middle"))
    if y.name:
        turned = f"translate(12 {height / 2:g}) rotate(-90)"
        parts.append(element("g", _text(0, 0, y.name, "axis", "middle"), transform=turned))
    lines = list(paths)
    for path in lines:
        drawn = " ".join("{:.1f},{:.1f}".format(*at(*point)) for point in path.points)
        parts.append(element("polyline", points=drawn, _class=f"path {path.kind}"))
    below = 0.0
    for level, path in sorted((at(*path.points[-1])[1], path) for path in lines if path.name):
        below = max(level + 4, below + LINE)
        parts.append(_text(width - right + 8, below, path.name, f"name {path.kind}"))
    shown = [(dot, at(dot.x, dot.y)) for dot in dots]
    parts += [
        element("circle", element("title", dot.tip), cx=a, cy=b, r=4, _class=f"dot {dot.kind}")
        for dot, (a, b) in shown
    ]
    # the names of dots, right of them or at the edge left of them, where they cover no other name
    taken: list[tuple[float, float, float]] = []
    for dot, (a, b) in shown:
        long = 6.3 * min(len(dot.name), NAME)
        start = a + GAP if a + GAP + long <= width - 4 else a - GAP - long
        free = all(abs(b - y) >= LINE or start >= end or start + long <= begin for begin, end, y in taken)
        if dot.name and free:
            taken.append((start, start + long, b))
            parts.append(_text(start, b + 4, shortened(dot.name, NAME), "name beside"))
    return _svg(width, height, parts, label, kind)


def ticks(low: float, high: float) -> dict[float, str]:
    """Two to six round values between two numbers."""
    step: float = 10 ** math.floor(math.log10((high - low) / 2))
    while (high - low) / step > 5:
        step *= 2
    first, last = math.ceil(low / step), math.floor(high / step)
    return {value: f"{value:g}" for value in (round(i * step, 6) for i in range(first, last + 1))}


def alone(figure: Markup) -> str:
    """A figure as a file of its own, with its style."""
    opening, inside = str(figure).split(">", 1)
    named = opening.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return f"{named}>{element('style', style())}{inside}\n"
