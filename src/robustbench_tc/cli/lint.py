"""`rbtc lint`: what of a tool registry would break before any model is asked."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError
from . import _console
from ._mcp import TIMEOUT_S, McpEnv, McpTimeout, McpUrl, ToolsFromMcp, server

Files = Annotated[
    list[Path] | None,
    typer.Argument(metavar="TOOLS", help="Tool files, or a cases file (.yaml) for the tools that it names."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings fail too.")]
Save = Annotated[
    Path | None,
    typer.Option(
        help="A new tools file for what the MCP server listed: lint and build it without the server."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]

SHOWN = 50
"""Findings of one code that the terminal shows."""


def lint(
    context: typer.Context,
    files: Files = None,
    strict: Strict = False,
    tools_from_mcp: ToolsFromMcp = False,
    mcp_url: McpUrl = "",
    mcp_env: McpEnv = None,
    mcp_timeout: McpTimeout = TIMEOUT_S,
    save: Save = None,
    as_json: Json = False,
) -> None:
    """Look at tools before any model does: status 0 fine, 1 findings that break.

    Errors: same names, names that become equal on the wire, schemas that MCP refuses, instructions inside
    descriptions. The rest are warnings (docs/own-lint.md).

    Example: rbtc lint orders.json crm.json --strict
    """
    from .. import api

    live = server(context, tools_from_mcp, mcp_url, mcp_env, mcp_timeout)
    if not files and live is None:
        raise UserError("no tools: name a tools file, or an MCP server with --tools-from-mcp -- COMMAND")
    found = api.lint(files or (), live, save)
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
