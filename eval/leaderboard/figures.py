"""Small figures as inline SVG, drawn with classes so that the style sheet colours them in both themes."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime

from markupsafe import Markup

from .records import Metric

_PLAIN = Markup('<svg class="{}" viewBox="0 0 {} {}" width="{}" height="{}" aria-hidden="true">{}</svg>')


def interval(
    metric: Metric,
    axis: tuple[float, float] = (0.0, 1.0),
    mark: float | None = None,
    width: int = 120,
    height: int = 16,
) -> Markup:
    """A value with its interval on an axis; `mark` adds a tick (the model's clean accuracy)."""
    if metric.value is None:
        return Markup("")

    def x(value: float) -> float:
        share = (value - axis[0]) / (axis[1] - axis[0])
        return round(4 + (width - 8) * min(max(share, 0.0), 1.0), 1)

    middle = height / 2
    parts = [Markup('<line class="axis" x1="4" x2="{}" y1="{}" y2="{}"/>').format(width - 4, middle, middle)]
    if metric.low is not None and metric.high is not None:
        parts.append(
            Markup('<line class="reach" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
                x(metric.low), x(metric.high), middle, middle
            )
        )
    if mark is not None:
        at = x(mark)
        parts.append(Markup('<line class="tick" x1="{}" x2="{}" y1="2" y2="{}"/>').format(at, at, height - 2))
    parts.append(Markup('<circle class="dot" cx="{}" cy="{}" r="3"/>').format(x(metric.value), middle))
    return _PLAIN.format("interval", width, height, width, height, Markup("").join(parts))


def axis_of(metrics: Iterable[Metric]) -> tuple[float, float]:
    """Tenths around every interval, so that differences can be seen."""
    known = [one for one in metrics if one.value is not None]
    low = min((one.low if one.low is not None else one.value or 0 for one in known), default=0)
    high = max((one.high if one.high is not None else one.value or 0 for one in known), default=1)
    ends = math.floor(10 * low) / 10, math.ceil(10 * high) / 10
    return ends if ends[0] < ends[1] else (0.0, 1.0)


def shares(parts: Sequence[tuple[str, int]], width: int = 400, height: int = 18) -> Markup:
    """Counts as one stacked bar; the class of a part is its name."""
    total = sum(count for _, count in parts)
    if not total:
        return Markup("")
    x, drawn = 0.0, []
    for name, count in parts:
        w = width * count / total
        drawn.append(
            Markup('<rect class="share {}" x="{:.1f}" y="0" width="{:.1f}" height="{}"/>').format(
                name, x, max(w - 1, 0.5), height
            )
        )
        x += w
    return _PLAIN.format("shares", width, height, width, height, Markup("").join(drawn))


def progress(points: Sequence[tuple[datetime, float, bool]], width: int = 760, height: int = 300) -> Markup:
    """Values over time with a step line of the best so far; the flag of a point: it was the best then."""
    if not points:
        return Markup("")
    left, right, top, bottom = 48, 16, 14, 34
    first, last = points[0][0], points[-1][0]
    span = max((last - first).total_seconds(), 1.0)
    values = [value for _, value, _ in points]
    tenths = range(math.floor(10 * min(values)), max(math.ceil(10 * max(values)), 1) + 1)
    low, high = tenths[0] / 10, tenths[-1] / 10
    if low == high:
        low, high = low - 0.1, high + 0.1

    def x(when: datetime) -> float:
        share = (when - first).total_seconds() / span if last > first else 0.5
        return round(left + (width - left - right) * share, 1)

    def y(value: float) -> float:
        return round(top + (height - top - bottom) * (1 - (value - low) / (high - low)), 1)

    drawn = []
    for tenth in tenths:
        value = tenth / 10
        drawn.append(
            Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
                left, width - right, y(value), y(value)
            )
            + Markup('<text class="label end" x="{}" y="{}">{:.1f}</text>').format(
                left - 8, y(value) + 4, value
            )
        )
    for when, place in ((first, "start"), (last, "end")) if last > first else ((first, "middle"),):
        drawn.append(
            Markup('<text class="label {}" x="{}" y="{}">{}</text>').format(
                place, x(when), height - 12, when.strftime("%Y-%m-%d")
            )
        )
    best, path = None, []
    for when, value, leads in points:
        if leads:
            path.append(f"M{x(when)},{y(value)}" if best is None else f"H{x(when)}V{y(value)}")
            best = value
    path.append(f"H{width - right}")
    drawn.append(Markup('<path class="best" d="{}"/>').format("".join(path)))
    for when, value, leads in points:
        drawn.append(
            Markup('<circle class="{}" cx="{}" cy="{}" r="5"/>').format(
                "dot leads" if leads else "dot", x(when), y(value)
            )
        )
    return Markup(
        '<svg class="progress" viewBox="0 0 {} {}" role="img" aria-label="Perturbed accuracy of every '
        'submission over time, with the best so far; the table below has the figures">{}</svg>'
    ).format(width, height, Markup("").join(drawn))


def heat(value: float | None) -> str:
    """The class of a heat-map cell: ten steps from 0 to 1."""
    return "none" if value is None else f"h{min(9, int(value * 10))}"
