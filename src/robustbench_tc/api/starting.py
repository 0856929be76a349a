"""`quickstart`: the whole pipeline once, on what ships with the package."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

from ..option import Tell, silent
from . import options

if TYPE_CHECKING:
    from ..eval.live.show import Shown
    from ..shown import Part
    from .evaluated import Evaluated

EPISODE = "orders_6::live_timeout_after_effect"
"""A refund times out after it was paid."""


class Quickstart(NamedTuple):
    """What a quickstart made."""

    run: "Evaluated"
    """Of the reference agent `name-biased`, scored."""
    episode: "Shown"
    """Of the scripted agent `blind-retrier`."""

    @property
    def exit_code(self) -> int:
        """1 where a verdict on the reference agent is not the known one."""
        return int(bool(self.run.unexpected))

    def shown(self) -> "Iterator[Part]":
        """The episode, a line for everything that was said, and the first screen of the run."""
        from ..eval.stats.failures import beginning
        from ..eval.stats.screen import WIDTH, screen
        from ..schema import dumps

        lines = [f"{self.episode.model} · a live episode: {self.episode.id}"]
        for number, turn in enumerate(self.episode.turns):
            lines += [f"user: {said.content}" for said in turn.messages]
            for reply in self.episode.replies_in(number):
                for call in reply.steps:
                    got = "carried out, but shown" if call.met else "shown"
                    lines.append(f"calls {call.name} {dumps(call.arguments)}, {got}: {call.text}")
                lines += [f"agent: {reply.text}"] if reply.text else []
        yield from (beginning(line, WIDTH) for line in lines)
        yield from self.episode.verdict()
        total, wrong = self.run.folder.record.expected, self.run.unexpected
        known = f"{total - len(wrong)} of {total}" if wrong else f"all {total}"
        yield ""
        yield f"{known} verdicts on the agent name-biased are the known ones"
        yield from screen(self.run.folder).shown()


def quickstart(
    out: Annotated[Path | str, options.OUT] = Path("rbtc-quickstart"), *, progress: Tell = silent
) -> Quickstart:
    """Build the starter samples, run a reference agent over them, play a live episode: no model, no key.

    The folder then holds `robustbench-tc` (the starter samples with 22 perturbation types), `run`,
    `robustbench-tc-live` (a small live dataset) and `live-run`; the folders of an earlier quickstart are
    replaced.

    Example: rbtc quickstart

    Raises UserError if one of these folders contains anything else.

    >>> quickstart("rbtc-quickstart").run.unexpected  # doctest: +SKIP
    []
    """
    from .building import build, build_live
    from .evaluating import evaluate
    from .showing import show

    out = Path(out)
    build(out / "robustbench-tc", profile="bundled", force=True, progress=progress)
    progress("asking a reference agent every row")
    run = evaluate(out / "robustbench-tc", agent="name-biased", out=out / "run", fresh=True)
    live, played = out / "robustbench-tc-live", out / "live-run"
    build_live(live, worlds=("orders",), kinds=("timeout_after_effect",), force=True, progress=progress)
    progress("playing an episode")
    evaluate(live, agent="blind-retrier", ids=("orders_6",), out=played, fresh=True)
    return Quickstart(run, cast("Shown", show(played, EPISODE)))
