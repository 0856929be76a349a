"""Live runs and datasets given to the commands of the benchmark: one line names what to use instead."""

from pathlib import Path

from robustbench_tc.errors import UserError
from robustbench_tc.live import TASKS


def refuse_run(path: Path) -> None:
    """UserError for the folder of a live run."""
    if (path / "live_run.json").is_file():
        raise UserError(
            f"{path} is a live run: use rbtc live summary, score, report or show "
            "(or rbtc sql live_recovery --run)"
        )


def refuse_dataset(folder: Path) -> None:
    """UserError for a live dataset."""
    if any((folder / TASKS).glob("test-*.parquet")):
        raise UserError(f"{folder} is a live dataset: run it with rbtc live run")
