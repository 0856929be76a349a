"""`rbtc probe`: what a server does with the requests of a run."""

from typing import Annotated

import typer
from rich.table import Table

from . import _console

Model = Annotated[str, typer.Argument(metavar="MODEL", help="Model id as the server knows it.")]
BaseUrl = Annotated[str | None, typer.Option(help="Of an OpenAI-compatible server; default OPENAI_BASE_URL.")]
Long = Annotated[int | None, typer.Option(min=1, metavar="WORDS", help="Also send a request this long.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


def probe(model: Model, base_url: BaseUrl = None, long: Long = None, as_json: Json = False) -> None:
    """Check in fourteen short requests how a server handles tools, calls, schemas and parameters.

    Ends with the `rbtc eval` line that fits. Exits 1 if a check that every run needs fails.

    Example: rbtc probe qwen3-8b --base-url http://localhost:8000/v1
    """
    from .. import api
    from ..eval.probe import failed, mode

    found = api.probe(model, base_url=base_url, long=long)
    where = f" --base-url {base_url}" if base_url else ""
    fitting = f"rbtc eval robustbench-tc --model {model}{where} --mode {mode(found)}"
    if as_json:
        _console.json({"findings": found, "eval": fitting})
    else:
        table = Table()
        table.add_column("check")
        table.add_column("answer")
        table.add_column("meaning", overflow="fold")
        for one in found:
            table.add_row(
                *(_console.styled(_console.one_line(text)) for text in (one.check, one.answer, one.note))
            )
        _console.out.print(table)
        _console.echo(fitting)
    raise typer.Exit(bool(failed(found)))
