"""`rbtc show`: one row, one answer or one episode, as a person reads it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..errors import UserError
from ..option import Option, Tell, silent
from . import options

if TYPE_CHECKING:
    from ..eval.live.show import Shown
    from ..eval.row_view import RowView
    from ..eval.stats.failures import Replies


def show(
    place: Annotated[
        "str | Path",
        Option(name="where", help="A release, a run, a live run, or with --play a live dataset.", typed=str),
    ],
    row: Annotated[str, Option(name="id", help="An id, a clean_id, a task, or a unique prefix of one.")],
    *,
    repeat_number: Annotated[int, Option(help="Repeat of a live run's episode, from 0.", at_least=0)] = 0,
    play: Annotated[bool, Option(help="Play a row of a live dataset as the agent yourself.")] = False,
    dataset: Annotated[str | None, options.DATASET] = None,
    worlds: Annotated["Sequence[str]", options.WORLDS] = (),
    world_python: Annotated[str | None, options.WORLD_PYTHON] = None,
    ask: "Callable[[str], str | None]" = lambda question: None,
    say: Tell = silent,
) -> "RowView | Replies | Shown | str":
    """Show one row in readable form, from any folder that has it.

    For a release it prints the clean row and what each perturbation changed in it; for a run, the request,
    the answers, their verdicts and why; for a live run, turns, calls, the fault, results, and what each call
    changed in the world. ID::TYPE names one row of a sample.

    Example: rbtc show robustbench-tc bfcl_v3__BFCL_v3_multiple__multiple_110::CD_AB
    Example: rbtc show runs/live/agent-oracle-fc orders_1::live_silent_no_op
    Example: rbtc show robustbench-tc-live orders_1 --play

    Raises UserError for a folder that is none of these, and for an id that matches no row or several.
    """
    folder = Path(place).expanduser()
    if play:
        from ..eval.inputs import load_live
        from ..eval.live import inputs, show as live_show
        from ..eval.live.play import play as played

        data = load_live(str(place))
        found = live_show.find_row(data.rows, row, place)
        kinds = inputs.world_types([found], worlds, world_python)
        return played(found, kinds[found.world], ask, say)
    if (folder / "episodes.parquet").is_file():
        from ..eval.live.show import show_episode

        return show_episode(
            folder, row, repeat=repeat_number, dataset=dataset, worlds=worlds, world_python=world_python
        )
    if (folder / "run.json").is_file() or (folder / "scores.parquet").is_file():
        from ..eval.stats.failures import replies

        return replies(folder, row, dataset=dataset)
    from ..eval import row_view
    from ..eval.inputs import is_dataset

    if is_dataset(folder):
        raise UserError(f"{folder} is a live dataset: add --play to be the agent in one of its rows")
    return row_view.find(folder, row)
