"""A user's own tools and cases: `init`, `lint`, `cases import`, `cases draft`, `cases review`."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from ..errors import UserError, unknown
from ..option import Option, Tell, listed, silent
from . import options

if TYPE_CHECKING:
    from ..own.desk import Example
    from ..own.drafting import Drafted
    from ..own.lint import Linted
    from ..own.logs.importing import Imported
    from ..own.mcp_tools import Server
    from ..own.reviewing import Reviewed
    from ..proxy.ground import Ground


def server_of(
    command: Sequence[str] = (), url: str = "", env: Sequence[str] = (), timeout_s: float = 60.0
) -> "Server | None":
    """The MCP server of `-- COMMAND ARG…` or `--mcp-url`; None where no option names one."""
    if not (command or url or env):
        return None
    from ..own.mcp_tools import Server

    return Server(command=tuple(command), url=url, env=tuple(env), timeout_s=timeout_s)


def init(
    folder: Annotated[str | Path, Option(name="dir", help="A new folder, or an empty one.", typed=Path)],
    *,
    framework: Annotated[
        Literal["langgraph", "openai-agents", "pydantic-ai"] | None,
        Option(help="Also write an agent that uses this framework."),
    ] = None,
) -> "Example":
    """Write a working example to start from: a support desk's tools, cases, agent and CI file.

    Example: rbtc init my-agent

    Raises UserError if the folder is not empty or a file cannot be written; it then leaves nothing behind.
    """
    from ..io.folders import write_new
    from ..own import desk

    files = desk.desk()
    if framework is not None:
        if framework not in desk.FRAMEWORKS:
            raise unknown("framework", framework, set(desk.FRAMEWORKS))
        files |= desk.framework(framework)
    write_new(Path(folder), files)
    return desk.Example(folder=Path(folder), files=tuple(files), framework=framework)


def lint(
    files: Annotated[
        "Sequence[Path | str]",
        Option(
            help="Tool files, a cases file (.yaml) for its tools, or the Python file of a world.",
            typed=tuple[Path, ...],
        ),
    ] = (),
    *,
    providers: Annotated[
        Sequence[str],
        Option(
            name="for",
            help="Providers that get the tools (openai, anthropic, gemini, mcp): what these reject is an "
            "error, what others reject is left out. Default: what any of them rejects is a warning.",
            read=listed,
        ),
    ] = (),
    strict: Annotated[bool, Option(help="Exit 1 on warnings too.")] = False,
    mcp_command: Sequence[str] = (),
    mcp_url: Annotated[str, options.MCP_URL] = "",
    mcp_env: Annotated[Sequence[str], options.MCP_ENV] = (),
    mcp_timeout: Annotated[float, options.MCP_TIMEOUT] = 60.0,
    save: Annotated[
        "Path | str | None",
        Option(
            help="Save the MCP server's tools to a new file, to lint and build without the server.",
            typed=Path | None,
        ),
    ] = None,
) -> "Linted":
    """Check tool definitions for problems before any model sees them; exits 1 on errors.

    Errors: tools that cannot be read, same names, names that become equal on the wire, instructions inside
    descriptions; the rest are warnings, including what a provider rejects (docs/own-lint.md). For the tools
    of a live MCP server, end the line with -- COMMAND ARG…. A world's file (.py, docs/worlds.md) is loaded,
    and the gold of its tasks is tried.

    Example: rbtc lint orders.json crm.json --for openai,mcp

    Raises UserError for files that cannot be read.

    >>> lint(["orders.json"]).exit_code  # doctest: +SKIP
    """
    from ..io.files import check_file
    from ..own.lint import lint_files
    from ..own.mcp_tools import keep_tools, list_tools
    from ..own.rules import Provider
    from ..own.tools import entries

    known = get_args(Provider)
    wanted = [one for one in known if one in providers]
    for name in providers:
        if name not in known:
            raise unknown("provider", name, set(known))
    server = server_of(mcp_command, mcp_url, mcp_env, mcp_timeout)
    paths = [Path(file) for file in files]
    if server is None:
        if save is not None:
            raise UserError("--save is for the tools of an MCP server: name one after --")
        return lint_files(paths, strict=strict, wanted=wanted)
    if save is not None and not Path(save).is_file():
        check_file(Path(save))
    found = list_tools(server)
    live = entries(found.json(), found.prefix, server.title)
    if save is not None:
        keep_tools(Path(save), found.json(), server.title)
    return lint_files(paths, live, server.title, strict, wanted)


def import_cases(
    logs: Annotated[
        "Sequence[Path | str]",
        Option(help="Messages, traces, batches, sessions, a door's journal.", typed=tuple[Path, ...]),
    ],
    out: Annotated[Path | str | None, options.OUT] = None,
    *,
    tools: Annotated[
        "Sequence[Path | str]",
        Option(help="Tools file; default: the tools listed in the logs. Repeatable.", read=tuple),
    ] = (),
    redact: Annotated[
        "Path | str | None",
        Option(help="File with additional patterns to replace, one per line.", typed=Path | None),
    ] = None,
    names_ok: Annotated[
        bool, Option(help="Allow writing to a git work tree although cases may contain names of people.")
    ] = False,
    faults: Annotated[
        bool,
        Option(
            help="Instead count the tools' faults in the logs, with intervals and texts; --out is a new "
            "file for a plan of these faults, to use with `rbtc proxy`."
        ),
    ] = False,
    progress: Tell = silent,
) -> "Imported | Ground":
    """Propose a case for every batch of calls in logs; mail addresses, numbers and keys are replaced.

    The formats of most providers, frameworks and tracing services are recognised (docs/own-logs.md), as is a
    door's journal. Names of people are not removed. Nothing is sent anywhere.

    Example: rbtc cases import agent.jsonl --tools tools.json --out imported

    Raises UserError.
    """
    from ..io.folders import check_new, real, write_new
    from ..own.logs.importing import make

    if faults:
        from .proxy import ground

        return ground(logs, out, progress=progress)
    if out is None:
        raise UserError("name the folder of the cases with --out")
    folder = real(Path(out))
    check_new(folder)
    tree = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)
    if tree is not None and redact is None and not names_ok:
        raise UserError(
            f"{folder} is in the git work tree {tree}, and names of people are not removed from logs: "
            "add --names-ok, give their patterns with --redact FILE, or name another --out"
        )
    patterns = None if redact is None else Path(redact)
    made, files = make(list(map(Path, logs)), list(map(Path, tools)), folder, patterns, progress)
    write_new(folder, files)
    return made


def draft_cases(
    tools: Annotated[
        "Sequence[Path | str]",
        Option(help="Files of your tools, or an OpenAPI file.", typed=tuple[Path, ...]),
    ],
    out: Annotated[Path | str, options.OUT],
    *,
    model: Annotated[str | None, options.MODEL] = None,
    base_url: Annotated["str | Sequence[str]", options.BASE_URL] = (),
    progress: Tell = silent,
) -> "Drafted":
    """Propose cases for each tool: calls with sample values, and requests that state them. Review them all.

    With --model a model writes the requests; each tool's definition is sent to it.

    Example: rbtc cases draft tools.json --out drafted

    Raises UserError.
    """
    from ..io.folders import check_new, real, write_new
    from ..own.drafting import make
    from ..own.tools import read_tools

    folder, paths = real(Path(out)), list(map(Path, tools))
    check_new(folder)
    urls = [base_url] if isinstance(base_url, str) else base_url
    if urls and model is None:
        raise UserError("--base-url says where a model is: name it with --model")
    names = [Path(os.path.relpath(path.resolve(), folder)).as_posix() for path in paths]
    found = [tool for path in paths for tool in read_tools(path)]
    progress(f"{len(found):,} tools")
    drafted, files = make(found, names, folder, model, next(iter(urls), None))
    write_new(folder, files)
    return drafted


def review_cases(
    cases: Annotated["Path | str", Option(help="The cases file.", typed=Path)],
    *,
    accept: Annotated[
        Sequence[str], Option(help="Accept this case, without asking. Repeatable.", read=listed)
    ] = (),
    drop: Annotated[
        Sequence[str], Option(help="Drop this case, without asking. Repeatable.", read=listed)
    ] = (),
    reviewer: Annotated[str, Option(help="Name of the reviewer; default: your user name.")] = "",
    ask: Callable[[str], str | None] | None = None,
    say: Tell = silent,
) -> "Reviewed":
    """Review proposed cases one by one in a terminal: accept, edit, drop or skip.

    Decisions are saved in CASES.review.jsonl; an edited case needs another review. Cases that you wrote need
    none. Without a terminal, or with --accept or --drop, nothing is asked.

    Example: rbtc cases review imported/cases.yaml

    Raises UserError.
    """
    from ..own.reviewing import Reviewed, Reviewing, ask_all

    found = Reviewing(Path(cases), reviewer)
    if both := set(accept) & set(drop):
        raise UserError(f"{min(both)[:80]}: --accept and --drop both name it")
    for name in (*accept, *drop):
        found.case(name)
    for name in (*accept, *drop):
        found.decide(name, "accept" if name in accept else "drop")
    if not accept and not drop and ask is not None and sys.stdin.isatty() and sys.stdout.isatty():
        ask_all(found, ask, say)
    return Reviewed(found.cases)
