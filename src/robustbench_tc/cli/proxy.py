"""`rbtc proxy`: the doors, by which an agent that is left as it is meets faults."""

import threading
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from .. import taxonomy
from ..errors import UserError
from ..io.numbers import counts
from . import _console
from ._console import styled

app = typer.Typer(
    no_args_is_help=True,
    help="Stand between an untouched agent and its model or its tools, and carry out a plan of faults.",
)

Upstream = Annotated[str, typer.Option(metavar="URL", help="Base URL of the model's server, up to /v1.")]
PlanFile = Annotated[Path, typer.Option(metavar="FILE", help="The plan, a YAML file (docs/proxy-llm.md).")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="On 127.0.0.1; 0: a free one.")]
JournalFile = Annotated[
    Path, typer.Option("--journal", metavar="FILE", help="Gets a line for each exchange; is added to.")
]
AllowWrites = Annotated[
    bool, typer.Option("--allow-writes", help="Faults may replace results of tools that write, too.")
]
Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="COMMAND ARG…", help="The server's, behind `--`.", show_default=False),
]
ServerUrl = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="Address of a server (streamable HTTP).")
]
SessionName = Annotated[
    str, typer.Option("--session", metavar="NAME", help="<case>.<repeat> of a COMMAND's calls.")
]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds that the server may say nothing.")]


Journal = Annotated[Path, typer.Argument(metavar="JOURNAL", help="What a door wrote.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.callback()
def _proxy() -> None:
    pass


@app.command()
def llm(
    upstream: Upstream,
    plan: PlanFile,
    port: Port = 0,
    journal: JournalFile = Path("journal.jsonl"),
    allow_writes: AllowWrites = False,
    timeout: Timeout = 600.0,
) -> None:
    """Relay chat completions on loopback, and carry out the plan in each session; Ctrl-C ends it.

    Only --upstream is contacted, with the key that the agent itself sends.

    Example: rbtc proxy llm --upstream http://127.0.0.1:8000/v1 --plan plan.yaml
    """
    from ..api import proxy

    served = proxy.proxy_llm(
        upstream,
        plan,
        port=port,
        journal=journal,
        allow_writes=allow_writes,
        silence_s=timeout,
        say=_console.note,
    )
    with _console.keeping(f"the door is closed; its journal is {journal}"), served as url:
        _console.out.print(styled(f"base URL of a session: {url.removesuffix('/v1')}/s/CASE.REPEAT/v1"))
        _console.out.print(styled(f"without a session:     {url}"))
        _console.out.print(styled(f"journal: {journal}; nothing but {upstream} is asked"))
        threading.Event().wait()  # until Ctrl-C


@app.command(context_settings={"ignore_unknown_options": True})
def mcp(
    plan: PlanFile,
    command: Command = None,
    url: ServerUrl = None,
    port: Port = 0,
    session: SessionName = "mcp.0",
    journal: JournalFile = Path("journal.jsonl"),
    allow_writes: AllowWrites = False,
    timeout: Timeout = 600.0,
) -> None:
    """Relay MCP between a client and one server, and carry out the plan.

    With a COMMAND behind `--` it speaks on standard input and output, as a server does: put it in front of
    the command in the client's configuration. With --url it listens on loopback.

    Example: rbtc proxy mcp --plan plan.yaml -- python server.py
    """
    from ..api import proxy

    if bool(command) == (url is not None):
        raise UserError("give either the server's COMMAND behind `--`, or its address with --url")
    if command:
        code = proxy.proxy_mcp_stdio(
            command, plan, session=session, journal=journal, allow_writes=allow_writes
        )
        if code:
            raise UserError(f"the MCP server ended with status {code}")
        return
    served = proxy.proxy_mcp(
        url or "", plan, port=port, journal=journal, allow_writes=allow_writes, silence_s=timeout
    )
    with _console.keeping(f"the door is closed; its journal is {journal}"), served as address:
        _console.out.print(styled(f"address of a session: {address.removesuffix('/mcp')}/s/CASE.REPEAT/mcp"))
        _console.out.print(styled(f"without a session:    {address}"))
        _console.out.print(styled(f"journal: {journal}; nothing but {url} is asked"))
        threading.Event().wait()  # until Ctrl-C


@app.command()
def run(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help="A dataset's folder, or its name on the Hub.")
    ],
    command: Annotated[str, typer.Option(metavar="WORDS", help="The program; started once for each row.")],
    upstream: Upstream,
    types: Annotated[str, typer.Option(metavar="A,B", help="Types of the dataset; default: all.")] = "",
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The run folder.")] = None,
    journal: JournalFile = Path("journal.jsonl"),
    model: Annotated[str | None, typer.Option(help="The run's name; default: the command.")] = None,
    allow_writes: AllowWrites = False,
    concurrency: Annotated[int, typer.Option(min=1, max=256, help="Programs at once.")] = 4,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that a program may take.")] = 300.0,
) -> None:
    """Run a program that owns its loop once for each row behind the LLM door, and score what it did.

    The clean request is on its standard input, OPENAI_BASE_URL in its environment holds the session. Run the
    same command again to go on where it was stopped.

    Example: rbtc proxy run bench --command "python agent.py --loop" --upstream http://127.0.0.1:8000/v1
    """
    from ..api import proxy

    kept = f"{journal} is whole, run the same command again"
    with _console.status("running the program", kept) as tell:
        made, scored = proxy.proxy_run(
            dataset,
            command,
            upstream,
            types=taxonomy.split(types),
            out=out,
            journal=journal,
            model=model,
            allow_writes=allow_writes,
            concurrency=concurrency,
            timeout_s=timeout,
            progress=lambda done, all_: tell(f"{done} of {all_} rows"),
            say=_console.note,
        )
    for reason, count in (*made.failures.items(), *scored.failures.items()):
        _console.note(f"{count} × {reason}")
    if made.there:
        _console.note(f"{made.there} sessions were in {journal} already")
    _console.note(
        f"{scored.predictions} predictions in {scored.folder.path}; `rbtc report` and `rbtc gate` read it"
    )


@app.command()
def summary(journal: Journal, as_json: Json = False) -> None:
    """Print calls, errors and faults of a door's journal, and what the agent did after each fault.

    It needs no dataset. Verdicts are made by `rbtc score JOURNAL`.

    Example: rbtc proxy summary journal.jsonl
    """
    from ..api import proxy

    found = proxy.summarise_journal(journal)
    if as_json:
        _console.json(found)
        return

    say = partial(_console.out.print, markup=False, highlight=False)
    say(
        f"{found.sessions} sessions, {found.exchanges} exchanges, {found.calls} calls of the model's, "
        f"{found.held} of them answered by the door"
    )
    for title, counted in (
        ("sessions by type", found.types),
        ("without their type", found.skipped),
        ("errors by status", found.errors),
        ("lines of other doors", found.others),
    ):
        if counted:
            say(f"{title}: {counts(counted)}")
    if not found.faults:
        say("faults met: none")
        return
    columns = ("fault", "met", "spared", "called again", "called others", "answered", "stopped")
    rows = []
    for one in found.faults:
        numbers = (one.met, one.spared, one.called_again, one.called_others, one.answered, one.stopped)
        rows.append((one.kind, *map(str, numbers)))
    title = "results that faults took the place of, and what the model did then"
    _console.out.print(_console.table(columns, rows, title))
