"""`rbtc quickstart`: see it work, in one command."""

from pathlib import Path
from typing import Annotated

import typer

from ..eval.stats.failures import beginning
from ..schema import dumps
from . import _console
from .eval import say_agent


def quickstart(
    out: Annotated[Path, typer.Option(help="Folder for all that is made.")] = Path("rbtc-quickstart"),
) -> None:
    """Build the starter samples, run a reference agent over them, play a live episode: no model, no key.

    Example: rbtc quickstart
    """
    from .. import api
    from ..eval.stats.screen import WIDTH, screen

    with _console.status("building", f"what is in {out} is whole; run it again") as progress:
        made = api.quickstart(out, progress=progress)
    found = made.episode
    lines = [f"{found.model} · a live episode: {found.id}"]
    for turn in found.turns:
        lines += [f"user: {said}" for said in turn.says]
        for reply in turn.replies:
            for call in reply.calls:
                got = "carried out, but shown" if call.met else "shown"
                lines.append(f"calls {call.name} {dumps(call.arguments)}, {got}: {call.result}")
            if reply.text:
                lines.append(f"agent: {reply.text}")
    for line in lines:
        _console.out.print(beginning(line, WIDTH))
    for part in found.verdict():
        _console.out.print(_console.styled(part.text, part.style))
    _console.out.print()
    run = made.run.folder
    say_agent("name-biased", made.run.unexpected, run.record.expected)
    _console.show(screen(run))
