"""The badge of a run, for a README: one figure and the run's tier in words, as a small SVG of our own."""

import os

from markupsafe import Markup

from robustbench_tc import taxonomy
from robustbench_tc.eval.figures import element
from robustbench_tc.io import numbers

from .row import Row

SHOWN = {
    "perturbed": "perturbed",
    "clean": "clean",
    **{f"delta_{name}": f"Δ {name}" for name in taxonomy.COMPONENTS},
}
"""What a badge may show: a metric's name → its words."""

_NAME = "RobustBench-TC"
_DARK, _LIGHT = "#243447", "#f4f6f8"
_TIERS = {"published": "#0a5bd3", "reproduced": "#0b7a3b", "endpoint-matched": "#0f6f78"}
_REST = "#5c6670"
"""Of unverified runs, and where there is nothing to show: white on it has a contrast above 5."""

_CHARACTER = 6.6
"""Pixels that a character of 11 pixels takes; the text is set to that width, whatever font draws it."""

_HEIGHT = 22
_PAD = 8


def badge(row: Row | None, show: str = "perturbed") -> str:
    """The badge of a row; without one it says that nothing is listed under this name. A defended run's shows
    no figure: it would be read as the model's."""
    if row is None:
        return _draw("not listed", _REST, "nothing is listed under this name")
    if row.defence:
        tip = f"{row.model} behind defences ({row.defence}): its figures are not the model's"
        return _draw("defended run, no rank", _REST, tip)
    found = row.figures.metric(show)
    sign = show.startswith("delta_")
    value = numbers.typeset(numbers.number(found.value, sign=sign))
    said = f"{SHOWN[show]} {value}"
    tip = f"{row.model}: {said}"
    if found.low is not None:
        tip += f" {numbers.typeset(numbers.interval(found, sign=sign))}"
    return _draw(f"{said} · {row.tier}", _TIERS.get(row.tier, _REST), f"{tip}, {row.tier}")


def board_address() -> str:
    """Where the board is for the world, for texts that are copied elsewhere: a Space says so itself."""
    host = os.environ.get("SPACE_HOST", "")
    return f"https://{host}" if host else "https://ADDRESS-OF-THE-BOARD"


def _draw(text: str, colour: str, tip: str) -> str:
    left, right = (len(part) * _CHARACTER + 2 * _PAD for part in (_NAME, text))
    width = left + right

    def words(part: str, x: float, fill: str, weight: str) -> Markup:
        return element(
            "text",
            part,
            x=x + _PAD,
            y=15,
            fill=fill,
            font_weight=weight,
            textLength=len(part) * _CHARACTER,
            lengthAdjust="spacingAndGlyphs",
        )

    inside = (
        element("title", f"{_NAME}: {tip}"),
        element(
            "path", d=f"M4 0H{left:.0f}V{_HEIGHT}H4A4 4 0 0 1 0 {_HEIGHT - 4}V4A4 4 0 0 1 4 0Z", fill=_DARK
        ),
        element(
            "path",
            d=f"M{left:.0f} 0H{width - 4:.0f}A4 4 0 0 1 {width:.0f} 4V{_HEIGHT - 4}"
            f"A4 4 0 0 1 {width - 4:.0f} {_HEIGHT}H{left:.0f}Z",
            fill=colour,
        ),
        words(_NAME, 0, _LIGHT, "600"),
        words(text, left, "#ffffff", "400"),
    )
    drawn = element(
        "svg",
        *inside,
        xmlns="http://www.w3.org/2000/svg",
        width=round(width),
        height=_HEIGHT,
        viewBox=f"0 0 {width:.0f} {_HEIGHT}",
        role="img",
        aria_label=f"{_NAME}: {tip}",
        font_family="system-ui, -apple-system, Segoe UI, Roboto, Liberation Sans, sans-serif",
        font_size=11,
    )
    return f"{drawn}\n"
