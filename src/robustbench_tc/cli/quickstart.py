"""`rbtc quickstart`: see it work, in one command."""

from pathlib import Path
from typing import Annotated

import typer

from . import _console
from .eval import say_agent
from .live_show import print_episode
from .summary import overview_of, print_gaps


def quickstart(
    out: Annotated[Path, typer.Option(help="Folder for all that is made.")] = Path("rbtc-quickstart"),
) -> None:
    """Build the starter samples, run a reference agent over them, play a live episode: no model, no key.

    Example: rbtc quickstart
    """
    from .. import api

    with _console.status("building", f"what is in {out} is whole; run it again") as progress:
        made = api.quickstart(out, progress=progress)
    print_episode(made.episode)
    _console.out.print()
    run = made.run.folder
    say_agent("name-biased", made.run.unexpected, run.record.expected)
    _console.out.print(f"its gaps (rbtc summary {run.path} has every table):")
    print_gaps(overview_of(run))
