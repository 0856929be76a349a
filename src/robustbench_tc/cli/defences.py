"""`rbtc list defences`: what may stand between a model and its rows."""

from typing import Annotated

import typer

from . import _console


def list_defences(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """The defences of `--defend` (`rbtc eval`, `rbtc live run`): code, ways, further requests, what it does.

    Example: rbtc list defences
    """
    from ..eval.defend import DEFENCES

    rows = [
        {
            "code": kind.code,
            "ways": list(kind.arguments),
            "requests": "k - 1" if kind.code == "vote" else str(kind.requests),
            "modes": list(kind.modes),
            "what": kind.what,
        }
        for kind in DEFENCES.values()
    ]
    if as_json:
        _console.json(rows)
        return
    lines = (
        (kind.code, ", ".join(kind.arguments), str(row["requests"]), ", ".join(kind.modes), kind.what)
        for kind, row in zip(DEFENCES.values(), rows, strict=True)
    )
    columns = ("code", "ways", "further requests", "modes", "what")
    _console.out.print(_console.table(columns, lines, folded=columns[1:]))
