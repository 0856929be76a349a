"""Severity: accuracy by dose, and whether it follows the dose. The numbers are those of `stats.dose`."""

from collections.abc import Iterable

from robustbench_tc.io import numbers

from ..dose import Series, series
from . import Given, Table

PACKS = ("severity",)

DOSES = "severity_doses"
"""The table that the report draws."""

_DOSES = (
    "Accuracy over all rows of a dose, and over the samples that have every dose of the series. The doses of "
    "a series are drawn apart: a stronger one does not hold the slips of a weaker one."
)
_TRENDS = (
    "Slope: change of accuracy per step to the next dose, over the samples that have every dose; p exact, by "
    "the signs of the samples' own slopes. Trend: Page's L, exact, by the order of the doses within samples. "
    "Both two-sided."
)


def tables(given: Given) -> Iterable[Table]:
    """Doses and trends of every series that the run holds two doses of."""
    usable = given.outcomes.usable(given.allow_missing)
    found = series(given.outcomes, usable)
    if found:
        yield doses(found)
        yield trends(found)


def doses(found: Iterable[Series]) -> Table:
    """Accuracy by dose."""
    return Table(
        name=DOSES,
        title="Accuracy by dose",
        columns=("series", "dose", "type", "n", "accuracy", "common n", "clean", "accuracy over common n"),
        rows=tuple(
            (
                one.name,
                f"{dose.dose:g}",
                dose.code,
                dose.accuracy.n,
                dose.accuracy,
                one.n,
                None if one.clean is None else one.clean.value,
                dose.common,
            )
            for one in found
            for dose in one.doses
        ),
        note=_DOSES,
    )


def trends(found: Iterable[Series]) -> Table:
    """Slope and trend of each series."""
    return Table(
        name="severity_trends",
        title="Slope and trend by series",
        columns=("series", "doses", "common n", "slope per step", "p of slope", "p of trend"),
        rows=tuple(
            (
                one.name,
                len(one.doses),
                one.n,
                one.slope,
                None if one.slope is None or one.slope.p is None else numbers.p_value(one.slope.p),
                None if one.trend_p is None else numbers.p_value(one.trend_p),
            )
            for one in found
        ),
        note=_TRENDS,
    )
