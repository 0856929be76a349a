"""`rbtc ground`: which faults the tools of an agent's logs really had, and a plan with them."""

from pathlib import Path
from typing import Annotated

import typer

from . import _console


def ground(
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOG...", help="Chat messages or GenAI spans as JSON lines.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A new file that gets the plan for `rbtc proxy`.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Count the faults that tools had in logs, with intervals and their words, and write a plan of them.

    Nobody is contacted. E-mail addresses, phones, keys, card and account numbers are replaced; names are not.

    Example: rbtc ground agent.jsonl --out plan.yaml
    """
    from rich.table import Table

    from .. import api

    with _console.status("reading the logs") as said:
        found = api.ground(logs, out, progress=said)
    if as_json:
        _console.json(found)
        return
    table = Table("fault", title=f"{found.calls} answered calls in {found.conversations} conversations")
    for name in ("calls", "rate", "95 %", "in a plan"):
        table.add_column(name, justify="left" if name == "in a plan" else "right")
    for one in found.faults:
        plan = " or ".join((one.plan, *one.not_told_apart)) if one.plan else "none"
        if one.at:
            plan += f", at call {', '.join(map(str, one.at))}"
        interval = f"{one.low:.2%} to {one.high:.2%}"
        table.add_row(one.kind, str(one.met), f"{one.rate:.2%}", interval, plan)
    _console.out.print(table)
    for one in found.faults:
        for text in one.texts:
            _console.echo(f"{one.kind}: {' '.join(text.split())[:300]}")
    if found.unanswered:
        _console.echo(f"calls without an answer: {found.unanswered}")
    if found.refused:
        _console.echo(f"lines that cannot be read: {found.refused} (`rbtc cases import` names them)")
    _console.echo(f"not to be seen in a log: {', '.join(found.unseen)}")
    if out is not None:
        _console.echo(f"wrote {out}")
