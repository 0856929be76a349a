"""`rbtc quickstart`: see it work, in one command."""

from pathlib import Path
from typing import Annotated

import typer

from ..schema import dumps
from . import _console
from ._predictions import beginning
from .eval import say_agent
from .live_show import print_verdict
from .summary import WIDTH, print_summary


def quickstart(
    out: Annotated[Path, typer.Option(help="Folder for all that is made.")] = Path("rbtc-quickstart"),
) -> None:
    """Build the starter samples, run a reference agent over them, play a live episode: no model, no key.

    Example: rbtc quickstart
    """
    from .. import api

    with _console.status("building", f"what is in {out} is whole; run it again") as progress:
        made = api.quickstart(out, progress=progress)
    tell, found = _console.out.print, made.episode
    tell(f"{found.model} · a live episode: {found.id}")
    for turn in found.turns:
        for said in turn.says:
            tell(beginning(f"user: {said}", WIDTH))
        for reply in turn.replies:
            for call in reply.calls:
                got = "carried out, but shown" if call.met else "shown"
                tell(beginning(f"calls {call.name} {dumps(call.arguments)}, {got}: {call.result}", WIDTH))
            if reply.text:
                tell(beginning(f"agent: {reply.text}", WIDTH))
    print_verdict(found.scores)
    tell()
    run = made.run.folder
    say_agent("name-biased", made.run.unexpected, run.record.expected)
    print_summary(run)
