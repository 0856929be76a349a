"""`rbtc init`: a working example of own tools, cases and an agent, to be replaced by one's own."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from . import _console

NEXT = (
    "rbtc build --cases cases.yaml --out bench",
    "rbtc eval bench --agent name-biased --out run",
    "rbtc gate run",
)
"""What README.md of the example goes on with."""


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, or an empty one.")],
) -> None:
    """Write a working example to start from: a support desk's tools, cases, agent and CI file.

    Example: rbtc init my-agent
    """
    from .. import api

    written = api.init(folder)
    _console.echo(f"wrote {len(written)} files: {', '.join(written)}")
    _console.echo("next:")
    if folder.resolve() != Path.cwd():
        dashed = "./" if str(folder).startswith("-") else ""
        _console.echo(f"  cd {shlex.quote(dashed + str(folder))}")
    for line in NEXT:
        _console.echo(f"  {line}")
