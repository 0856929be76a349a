"""`rbtc leaderboard`: serve the board, check a submission, verify one, rebuild, export a Space."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError

if TYPE_CHECKING:
    from ..eval.leaderboard.checks import Asked
    from ..eval.leaderboard.limits import Limits


def marts(names: Sequence[str], run: str | None) -> dict[str, list[dict[str, Any]]]:
    """The rows of each mart over a scored run folder, or over the paper's counts; one connection."""
    import duckdb

    from ..eval import paper
    from ..sql.query import FOLDER, Inputs, connect

    inputs = Inputs(paper=paper.CELLS) if run is None else Inputs(runs=(run,))
    with connect(inputs) as connection:
        try:
            return {
                name: connection.sql(FOLDER.joinpath(f"{name}.sql").read_text("utf-8"))
                .to_arrow_table()
                .to_pylist()
                for name in names
            }
        except duckdb.Error as error:
            raise UserError(f"{run or 'paper'}: {str(error).strip().splitlines()[0]}") from None


def worker_command(dataset: Path, limits: "Limits") -> list[str]:
    """Starts the process that reads and scores uploads: `eval.leaderboard.worker`."""
    import msgspec

    start = "from robustbench_tc.cli.leaderboard import work; work()"
    return [sys.executable, "-P", "-c", start, str(dataset), msgspec.json.encode(limits).decode()]


def work() -> None:
    """What `worker_command` runs."""
    import duckdb  # noqa: F401  (once, before anything is forked)
    import msgspec

    from ..eval.leaderboard.limits import Limits
    from ..eval.leaderboard.worker import serve as answer_jobs

    dataset, limits = sys.argv[1:3]
    answer_jobs(load_asked(dataset), msgspec.json.decode(limits, type=Limits), marts)


def load_asked(dataset: str, revision: str | None = None) -> "Asked":
    """A dataset for a board. Raises UserError."""
    from ..eval import inputs
    from ..eval.leaderboard.checks import Asked

    return Asked.of(inputs.load(dataset, revision=revision))
