"""Runs as several verbs take them, and what these say of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from . import _console

DatasetName = Annotated[
    str, typer.Argument(metavar="[DATASET]", help="Release folder, Hub id org/name, or the paper's api_eval.")
]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
DatasetOption = Annotated[
    str | None,
    typer.Option("--dataset", help="Where the run's dataset lies now, if it was moved."),
]
AllowMissing = Annotated[
    bool, typer.Option("--allow-missing", help="Print numbers although some rows have no answer.")
]


def say(notes: Sequence[str]) -> None:
    for one in notes:
        _console.note(one)


def say_left_out(left_out: dict[str, int]) -> None:
    """Rows of the dataset that cannot be evaluated, by reason."""
    for reason, count in left_out.items():
        _console.err.print(f"left out: {count} × {reason}", markup=False)
