"""`rbtc init`: a working example of own tools, cases and an agent, to be replaced by one's own."""

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from . import _console

Framework = Literal["langgraph", "openai-agents", "pydantic-ai"]

NEXT: tuple[str, ...] = (
    "rbtc build --cases cases.yaml --out bench",
    "rbtc eval bench --agent name-biased --out run",
    "rbtc gate run",
)
"""The next commands, as in README.md of the example."""


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, or an empty one.")],
    framework: Annotated[
        Framework | None, typer.Option(help="An agent of this framework beside the plain one.")
    ] = None,
) -> None:
    """Write a working example to start from: a support desk's tools, cases, agent and CI file.

    Example: rbtc init my-agent
    """
    from .. import api

    written = api.init(folder, framework)
    _console.echo(f"wrote {len(written)} files: {', '.join(written)}")
    _console.echo("next:")
    if folder.resolve() != Path.cwd():
        dashed = "./" if str(folder).startswith("-") else ""
        _console.echo(f"  cd {shlex.quote(dashed + str(folder))}")
    commands = NEXT
    if framework is not None:
        name = framework.replace("-", "_")
        commands = (
            NEXT[0],
            f"python -m venv {framework}",
            f"{framework}/bin/pip install --require-hashes -r {name}_requirements.txt",
            f'rbtc eval bench --command "{framework}/bin/python {name}_agent.py" --out runs/{framework}',
        )
    for line in commands:
        _console.echo(f"  {line}")
