"""The badge of a run, for a README: one figure and the run's tier in words, as a small SVG of our own."""

from markupsafe import Markup

from robustbench_tc.eval.figures import element
from robustbench_tc.io import numbers
from robustbench_tc.safe_text import safe

from .boards import Row, defended

_NAME = "RobustBench-TC"
_DARK, _LIGHT = "#243447", "#f4f6f8"
_TIERS = {"published": "#0a5bd3", "reproduced": "#0b7a3b", "endpoint-matched": "#0f6f78"}
_REST = "#5c6670"
"""Of unverified runs, and where there is nothing to show: white on it has a contrast above 5."""

_CHARACTER = 6.6
"""Pixels that a character of 11 pixels takes; the text is set to that width, whatever font draws it."""

_HEIGHT = 22
_PAD = 8


def badge(row: Row) -> str:
    """The badge of a run."""
    colour = _REST if defended(row.entry) else _TIERS.get(row.tier, _REST)
    return _draw(badge_says(row), colour, f"{safe(row.entry.submission.model)}: {badge_says(row)}")


def badge_says(row: Row) -> str:
    """Its words. A defended run's has no figure: it would be read as the model's."""
    if defended(row.entry):
        return "defended run, no rank"
    value = numbers.number(row.head and row.head.value)
    name = "success with faults" if row.entry.kind == "live" else "perturbed"
    return f"{name} {value} · {row.tier}" + (", flagged" if row.flags else "")


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
