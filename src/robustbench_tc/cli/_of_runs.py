"""Runs as several verbs take them, and what these say of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import _console

if TYPE_CHECKING:
    from ..eval.record import RunFolder

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


def say_reader(folder: "RunFolder") -> None:
    """A line where the run's verdicts rest on another version of the reader than this package's."""
    from ..eval.parse import READER_VERSION

    made_by = folder.record.reader or "1"
    if folder.scores_path.is_file() and made_by != READER_VERSION:
        _console.note(
            f"the verdicts of {folder.path} were made by version {made_by} of the reader, this is version "
            f"{READER_VERSION} (docs/calls.md): `rbtc score {folder.path}` makes them again"
        )
