"""`drill`: whether the writes of an MCP server may be repeated."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..errors import UserError, need_extra
from ..option import Option, Tell, silent
from . import options

if TYPE_CHECKING:
    from ..proxy.drill.report import Drilled


def drill(
    *,
    url: Annotated[
        str, Option(help="The streamable HTTP address of the server to drill, instead of a command.")
    ] = "",
    inputs: Annotated[
        Path | None,
        Option(help="Arguments, which tools read and write, and a reset command: YAML (docs/drill.md)."),
    ] = None,
    yes: Annotated[
        bool, Option(help="Execute writes on a server that has credentials or is not on this machine.")
    ] = False,
    sarif: Annotated[Path | None, Option(help="Also write the findings to this file, as SARIF.")] = None,
    badge: Annotated[Path | None, Option(help="Also write an SVG badge to this file.")] = None,
    save_plan: Annotated[
        Path | None, Option(help="Also write a plan for `rbtc proxy` that loses answers where that is safe.")
    ] = None,
    mcp_command: Sequence[str] = (),
    mcp_env: Annotated[Sequence[str], options.MCP_ENV] = (),
    mcp_timeout: Annotated[float, options.MCP_TIMEOUT] = 20.0,
    say: Tell = silent,
    progress: Tell = silent,
) -> "Drilled":
    """Test whether an MCP server's writes are safe to retry, by executing each once and twice.

    Each write is tried on fresh servers: one call, two, one whose answer is lost, two at the same moment.
    Reads show what changed. No model is needed. Exits 0 (nothing doubles unannounced), 1 (something does) or
    3 (no write could be judged).

    Example: rbtc drill -- python my_server.py
    Example: rbtc drill --inputs drill.yaml --save-plan plan.yaml -- python my_server.py
    Example: rbtc drill --url http://localhost:3000/mcp --sarif drill.sarif

    Raises UserError for a server that does not list its tools, and for writes that need --yes.

    >>> drill(mcp_command=["python", "my_server.py"]).exit_code  # doctest: +SKIP
    """
    from ..io.files import check_marked, save_marked
    from ..own.mcp_tools import Server, list_tools

    if bool(mcp_command) == bool(url):
        raise UserError("name one MCP server: its command after -- (-- python server.py), or --url")
    try:
        from ..proxy.drill import report
    except ModuleNotFoundError:
        raise need_extra("mcp", "mcp") from None
    forms = {report.sarif: sarif, report.badge: badge, report.plan: save_plan}
    files = {form: Path(file) for form, file in forms.items() if file is not None}
    for file in files.values():
        check_marked(file, report.MARK)
    server = Server(command=tuple(mcp_command), url=url, env=tuple(mcp_env), timeout_s=mcp_timeout)
    if (risk := report.risk(server)) and not yes:
        raise UserError(f"{server.title}: writes would really be executed, and {risk}: allow it with --yes")
    say(f"writes will really be executed: {server.title}")
    found = report.drilled(server, list_tools(server), inputs and Path(inputs), progress)
    for form, file in files.items():
        save_marked(file, form(found), report.MARK)
    return found
