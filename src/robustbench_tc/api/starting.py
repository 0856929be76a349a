"""`quickstart`: the whole pipeline once, on what ships with the package."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .progress import Progress

if TYPE_CHECKING:
    from ..eval.evaluate import Evaluated
    from ..eval.live.show import Shown

EPISODE = "orders_6::live_timeout_after_effect"
"""A refund times out after it was paid."""


class Quickstart(NamedTuple):
    """What a quickstart made."""

    run: "Evaluated"
    """Of the reference agent `name-biased`, scored."""
    episode: "Shown"
    """Of the scripted agent `blind-retrier`."""


def quickstart(out: str | Path, *, progress: Progress = lambda line: None) -> Quickstart:
    """`rbtc quickstart`: builds, runs and plays, without a model, a key or a network.

    The folder `out` then holds `robustbench-tc` (the starter samples with 22 perturbation types), `run`,
    `robustbench-tc-live` (a small live dataset) and `live-run`; what an earlier quickstart left there is
    replaced. Raises UserError where one of these holds anything else.

    >>> quickstart("rbtc-quickstart").run.unexpected  # doctest: +SKIP
    []
    """
    from ..eval.evaluate import evaluate
    from ..eval.live.after import show_episode
    from .building import build
    from .live import build_live
    from .playing import run_live

    out = Path(out)
    build(out / "robustbench-tc", profile="bundled", force=True, progress=progress)
    progress("asking a reference agent every row")
    run = evaluate(out / "robustbench-tc", agent="name-biased", out=out / "run", fresh=True)
    live, played = out / "robustbench-tc-live", out / "live-run"
    build_live(live, worlds=("orders",), kinds=("timeout_after_effect",), force=True, progress=progress)
    progress("playing an episode")
    run_live(live, agent="blind-retrier", ids="orders_6", out=played, fresh=True)
    return Quickstart(run, show_episode(played, EPISODE))
