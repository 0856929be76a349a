"""The live verbs of `api`, which takes them from here: what the command line does, as functions."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..eval.stats.live_defences import LiveDefenceTable


def live_defences(base: str | Path, runs: Sequence[str | Path]) -> "LiveDefenceTable":
    """`rbtc defences BASE RUN…` of live runs: what defended ones recover of each kind of fault, at what harm.

    Raises UserError for a run that is not scored, has no defences (or `base`: has some), or is of another
    dataset, model or mode.
    """
    from ..eval.live.after import played_run
    from ..eval.stats.live_defences import table

    return table(played_run(base), [played_run(run) for run in runs])
