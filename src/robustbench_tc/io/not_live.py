"""Live runs and datasets given to the commands of the benchmark: one line names what to use instead."""

from pathlib import Path

from ..errors import UserError
from ..schema import TASKS


def refuse_run(path: Path) -> None:
    """UserError for the folder of a live run, or a file in one."""
    for folder in (path, path.parent):
        if (folder / "live_run.json").is_file():
            raise UserError(
                f"{folder} is a live run: use rbtc live summary, score or report, or rbtc show "
                "(or rbtc sql live_recovery --run)"
            )


def refuse_no_run(path: Path) -> None:
    """UserError for what is no run folder at all: to score it would not help."""
    if not (path / "run.json").is_file():
        raise UserError(f"{path} is not a run folder: it has no run.json (`rbtc eval` makes one)") from None


def refuse_dataset(folder: Path) -> None:
    """UserError for a live dataset."""
    if is_dataset(folder):
        raise UserError(
            f"{folder} is a live dataset: run it with rbtc live run, check it with rbtc audit {folder}"
        )


def is_dataset(folder: Path) -> bool:
    """Whether a folder holds a live dataset."""
    return any((folder / TASKS).glob("test-*.parquet"))
