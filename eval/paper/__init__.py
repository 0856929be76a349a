"""The paper's 21 models as counts: another dataset version, shown beside ours, never ranked with it."""

import csv
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

from robustbench_tc.errors import unknown

from ..models import Model, models as served

SOURCE = "arXiv:2605.11928"
"""Where the counts come from, as tables cite it."""

VERSION = "paper"
"""What stands in the column `dataset_version` for the paper's rows."""

BASELINE = "ToolRL-Qwen2.5-3B"
"""The model that the paper's marks and gap closures refer to."""

CELLS = Path(__file__).with_name("cells.csv")
"""The counts as a file, for the marts."""


T = TypeVar("T", bound=msgspec.Struct)


class Cell(msgspec.Struct, frozen=True):
    """One model under one condition; `cells.csv` has the printed figures beside."""

    model: str
    type_code: str
    component: str
    """One of the four, or `clean`."""
    n: int
    correct: int


class HalfWidth(msgspec.Struct, frozen=True):
    """A printed ± of an accuracy, and the counts that it is of."""

    n: int
    correct: int
    half_width: float


class Table2Value(msgspec.Struct, frozen=True):
    """One printed value of Table 2; `metric` is clean, perturbed or delta_COMPONENT (positive when worse)."""

    model: str
    metric: str
    value: float
    half_width: float
    stars: int


def _rows(name: str, kind: type[T]) -> tuple[T, ...]:
    lines = CELLS.with_name(name).read_text(encoding="utf-8").splitlines()
    rows = [{key: value or None for key, value in row.items()} for row in csv.DictReader(lines)]
    return msgspec.convert(rows, tuple[kind, ...], strict=False)  # type: ignore[valid-type]


@cache
def cells() -> tuple[Cell, ...]:
    """21 models × 23 conditions."""
    return _rows("cells.csv", Cell)


@cache
def half_widths() -> tuple[HalfWidth, ...]:
    """The 630 printed accuracies."""
    return _rows("half_widths.csv", HalfWidth)


@cache
def table2() -> tuple[Table2Value, ...]:
    """The 126 printed values."""
    return _rows("table2.csv", Table2Value)


@cache
def models() -> dict[str, Model]:
    """The 21 models by name, in the paper's order, and how they were served."""
    return {name: one for name, one in served().items() if one.group != "open"}


def counts(model: str) -> dict[str, tuple[int, int]]:
    """type code (and `clean`) → (correct, n) of one model. Raises UserError with near misses."""
    if model not in models():
        raise unknown("model of the paper", model, models())
    return {cell.type_code: (cell.correct, cell.n) for cell in cells() if cell.model == model}
