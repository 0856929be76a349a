"""`rbtc proxy`: the doors, by which an agent that is left as it is meets faults."""

import threading
from pathlib import Path
from typing import Annotated

import typer

from . import _console
from ._console import styled

app = typer.Typer(
    no_args_is_help=True,
    help="Stand between an untouched agent and its model, and carry out a plan of faults.",
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
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds that the server may say nothing.")]


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
    from .. import api_proxy

    served = api_proxy.proxy_llm(
        upstream,
        plan,
        port=port,
        journal=journal,
        allow_writes=allow_writes,
        silence_s=timeout,
    )
    with _console.keeping(f"the door is closed; its journal is {journal}"), served as url:
        _console.out.print(styled(f"base URL of a session: {url.removesuffix('/v1')}/s/CASE.REPEAT/v1"))
        _console.out.print(styled(f"without a session:     {url}"))
        _console.out.print(f"journal: {journal}; nothing but {upstream} is asked")
        ended = threading.Event()
        while not ended.wait(0.5):  # a Ctrl-C just before a wait without an end would go unseen
            pass
