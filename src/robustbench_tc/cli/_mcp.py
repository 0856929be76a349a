"""`--tools-from-mcp -- COMMAND ARG…`: the options that name a live MCP server, and the words behind `--`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..errors import UserError

if TYPE_CHECKING:
    from ..own.mcp_tools import Server

FLAG = "--tools-from-mcp"
_COMMAND = "robustbench_tc.mcp_command"

ToolsFromMcp = Annotated[
    bool,
    typer.Option(
        FLAG, help="Take the tools of a live MCP server too: end the line with -- COMMAND ARG… (docs/own.md)."
    ),
]
McpUrl = Annotated[
    str, typer.Option("--mcp-url", metavar="URL", help="Or of one that answers streamable HTTP.")
]
McpEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--mcp-env",
        metavar="NAME",
        help="An environment variable that COMMAND gets, beside HOME, PATH and the like. Repeatable.",
    ),
]
McpTimeout = Annotated[
    float, typer.Option("--mcp-timeout", min=0.1, help="Seconds that the MCP server may take.")
]
TIMEOUT_S = 60.0


def _split(context: Any, args: list[str]) -> list[str]:
    """The words before `--`; those behind it are the server's command, where one is asked for."""
    if "--" in args and FLAG in args[: args.index("--")]:
        at = args.index("--")
        context.meta[_COMMAND] = tuple(args[at + 1 :])
        return args[:at]
    return args


class WithServer(TyperCommand):
    """A command that may end with `-- COMMAND ARG…`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _split(ctx, args))


class GroupWithServer(TyperGroup):
    """The same of a command that has others below it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _split(ctx, args))


def server(
    context: typer.Context, asked: bool, url: str, env: list[str] | None, timeout_s: float
) -> "Server | None":
    """The server that the options name. Raises UserError for half of one."""
    command: tuple[str, ...] = context.meta.get(_COMMAND, ())
    if asked and not command:
        raise UserError(f"{FLAG}: write the server's command at the end of the line: -- python server.py")
    if asked and url:
        raise UserError(f"{FLAG} and --mcp-url each name a server: keep one")
    if not asked and not url:
        if env:
            raise UserError(f"--mcp-env is for the command of {FLAG}: name one")
        return None
    from ..own.mcp_tools import Server

    return Server(command=command, url=url, env=tuple(env or ()), timeout_s=timeout_s)
