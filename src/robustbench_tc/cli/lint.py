"""`rbtc lint`: what of a tool registry would break before any model is asked."""

from pathlib import Path
from typing import Annotated

import typer

from . import _console

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="TOOLS...", help="Tool files, or a cases file (.yaml) for the tools that it names."
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings fail too.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]

SHOWN = 50
"""Findings of one code that the terminal shows."""


def lint(files: Files, strict: Strict = False, as_json: Json = False) -> None:
    """Look at tools before any model does: status 0 fine, 1 findings that break.

    Errors: same names, names that become equal on the wire, schemas that MCP refuses, instructions inside
    descriptions. The rest are warnings (docs/own-lint.md).

    Example: rbtc lint orders.json crm.json --strict
    """
    from .. import api

    found = api.lint(files)
    if as_json:
        _console.json({"exit_code": found.exit_code(strict), **found.plain()})
    else:
        for code, several in found.by_code().items():
            for one in several[:SHOWN]:
                _console.echo(f"{one.level}: {code}: {', '.join(one.tools[:4])}: {one.message}")
            if len(several) > SHOWN:
                _console.echo(f"{several[0].level}: {code}: {len(several) - SHOWN} more (--json shows them)")
        _console.echo(found.sentence())
    raise typer.Exit(found.exit_code(strict))
