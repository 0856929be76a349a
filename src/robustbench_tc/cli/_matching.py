"""What `rbtc leaderboard verify --base-url` asks and says."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..io import numbers
from . import _console

if TYPE_CHECKING:
    from ..eval.leaderboard.checks import Asked
    from ..eval.leaderboard.store import Store
    from ..eval.stats.reasked import Reasked


def match_endpoint(
    results: "Store",
    submission: str,
    data: "Asked",
    base_url: str,
    model: str | None,
    work: Path | None,
    by: str,
) -> None:
    """Asks the endpoint, marks the submission and prints what was found. Raises UserError."""
    from ..api.rebuilding import fresh_rows
    from ..eval.leaderboard.matched import match

    place = work or Path(f"verify-{submission}")
    dataset = data.name if data.revision is None else f"{data.name}@{data.revision}"
    with _console.keeping(f"answers so far are kept in {place}; the same command goes on"):
        made = match(
            results,
            submission,
            data,
            partial(fresh_rows, dataset),
            base_url=base_url,
            model=model,
            work=place,
            by=by,
            progress=_console.note,
        )
    assert made.matched is not None
    echo = _console.out.print
    echo(f"endpoint-matched {submission}, seed {made.matched.seed}", markup=False)
    echo(f"rows of the dataset: {_line(made.matched.again)}", markup=False)
    echo(f"fresh rows: {_line(made.matched.fresh)}", markup=False)
    echo("This proves the endpoint, not the model behind it.")


def _line(one: "Reasked") -> str:
    number = numbers.number
    return (
        f"another verdict in {one.mismatches} of {one.rows}, a share of {number(one.share_low)} to "
        f"{number(one.share_high)} (95 %); accuracy {number(one.again)} against {number(one.submitted)}, "
        f"difference {number(one.low)} to {number(one.high)}"
    )
