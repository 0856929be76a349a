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

Value = TypeVar("Value")

ROW = 22
"""Height of a row in pixels."""

NAME = 30
"""Characters of a name beside a grid: a longer one is shortened, its tip has it whole."""

CODE = 24
"""Characters of a type's code in a figure."""

LINE = 15
"""Least distance of two names beside the ends of their lines."""


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


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, _class=kind)


def _rect(x: float, y: float, width: float, height: float, kind: str, **more: str | float) -> Markup:
    return element("rect", x=x, y=y, width=width, height=height, _class=kind, **more)


def _with_tip(tip: str, *parts: str, kind: str | None = None) -> Markup:
    return element("g", element("title", tip), *parts, _class=kind)


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _said(found: Interval) -> str:
    return f"{numbers.number(found.value)} {numbers.interval(found)}, n {found.n}"


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
        return Cell(f"{100 * found.value:.0f}", f"heat {_step(found.value)}", side, _said(found))

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
        return Cell(text, colour, "sure" if found.significant else None, f"{found.tip}, {word}")

    return _grid(rows, groups, label, cell)


class Cell(NamedTuple):
    """A cell of a grid."""

    text: str
    colour: str
    kind: str | None
    tip: str


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
            parts.append(element("text", _shorten(column, CODE - 2), transform=turned, _class="axis"))
            columns.append((column, name, x))
            x += width
        x += gap
    for at, (said, values) in enumerate(rows):
        y = head + at * ROW
        parts.append(_with_tip(said, _text(left - 8, y + 15, _shorten(said, NAME), "name", "end")))
        for column, name, start in columns:
            value, box = values.get(column), (start, y, width - 2, ROW - 2)
            if value is None:
                parts.append(_with_tip(f"{said}, {name}: no value", _rect(*box, "gap")))
                continue
            cell = cell_of(value)
            inside = _text(start + width / 2 - 1, y + 14.5, cell.text, anchor="middle")
            tip = f"{said}, {name}: {cell.tip}"
            parts.append(_with_tip(tip, _rect(*box, cell.colour, rx=2), inside, kind=cell.kind))
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
        parts.append(_line(left, level, width - right, level, "grid"))
        parts.append(_text(left - 8, level + 4, said, "axis", "end"))
    for value, said in x.ticks.items():
        parts.append(_text(at(value, y.low)[0], height - bottom + 20, said, "axis", "middle"))
    if x.name:
        parts.append(_text((left + width - right) / 2, height - 8, x.name, "axis", "middle"))
    if y.name:
        turned = f"translate(12 {height / 2:g}) rotate(-90)"
        parts.append(element("g", _text(0, 0, y.name, "axis", "middle"), transform=turned))
    ends = []
    for path in paths:
        places = [at(*point) for point in path.points]
        drawn = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        parts.append(element("polyline", points=drawn, _class=f"path {path.kind}"))
        if path.name:
            ends.append((places[-1][1], path))
    below = 0.0
    for level, path in sorted(ends):
        below = max(level + 4, below + LINE)
        parts.append(_text(width - right + 8, below, path.name, f"name {path.kind}"))
    shown = [(dot, at(dot.x, dot.y)) for dot in dots]
    parts += [
        element("circle", element("title", dot.tip), cx=a, cy=b, r=4, _class=f"dot {dot.kind}")
        for dot, (a, b) in shown
    ]
    # the names of dots, each on the side where it covers no named dot and no other name
    named = [(place, _shorten(dot.name, NAME)) for dot, place in shown if dot.name]
    inside = (left, top - 8, width - 4, height - bottom)
    spots = beside([place for place, _ in named], [6.3 * len(name) for _, name in named], inside)
    for spot, (_, name) in zip(spots, named, strict=True):
        if spot is not None:
            parts.append(_text(spot.x, spot.y, name, "name beside", spot.anchor))
    return _svg(width, height, parts, label, kind)


class Spot(NamedTuple):
    """Where a text stands: its base line, and which of its ends is at x."""

    x: float
    y: float
    anchor: str


HEIGHT = 13.0
"""Of a line of text in pixels."""

SIDES = (
    (7.0, 4.0, "start", 0.0),
    (-7.0, 4.0, "end", 1.0),
    (0.0, -7.0, "middle", 0.5),
    (0.0, 16.0, "middle", 0.5),
)
"""Where a name may stand beside its dot: across, down, which of its ends is there, the share left of it."""


def beside(
    dots: Sequence[tuple[float, float]], widths: Sequence[float], inside: tuple[float, float, float, float]
) -> list[Spot | None]:
    """A place for each dot's name, in their order; None where every side of it is taken. `inside`: left, top,
    right, bottom."""
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in dots]
    found: list[Spot | None] = []
    for number, ((x, y), width) in enumerate(zip(dots, widths, strict=True)):
        found.append(None)
        others = [box for at, box in enumerate(taken) if at != number]
        for across, down, anchor, share in SIDES:
            left, top = x + across - share * width, y + down - HEIGHT + 3
            box = left, top, left + width, top + HEIGHT
            free = all(
                box[2] <= one[0] or one[2] <= left or box[3] <= one[1] or one[3] <= top for one in others
            )
            within = left >= inside[0] and top >= inside[1] and box[2] <= inside[2] and box[3] <= inside[3]
            if free and within:
                taken.append(box)
                found[-1] = Spot(x + across, y + down, anchor)
                break
    return found


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
