"""`rbtc list`: what there is."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from .. import taxonomy
from . import _console

app = typer.Typer(no_args_is_help=True, help="List what exists.")


@app.command("types")
def list_types(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the perturbation types: code and label, the paper's name, component, method.

    Example: rbtc list types --json
    """
    rows = taxonomy.types("all")
    if as_json:
        _console.json([msgspec.to_builtins(row) | taxonomy.published(row) for row in rows])
        return
    table = Table()
    for column in ("type", "paper's name", "component", "level", "pack", "method", "what is modified"):
        table.add_column(column, no_wrap=column == "type")
    for row in rows:
        name, facts = taxonomy.named(row.code), (row.component, row.level, row.pack, row.method)
        table.add_row(name, row.display_name, *facts, row.what_is_modified)
    _console.out.print(table)


@app.command("lm-eval")
def list_lm_eval() -> None:
    """The folder with the tasks for lm-eval's --include_path.

    Example: rbtc list lm-eval
    """
    from ..eval import adapters

    _console.echo(str(Path(adapters.__file__).resolve().parent / "lm_eval"))


@app.command("verifiers")
def list_verifiers() -> None:
    """The folder with the tasksets for verifiers, which an environment of its own installs.

    Example: rbtc list verifiers
    """
    from ..eval import adapters

    _console.echo(str(Path(adapters.__file__).resolve().parent / "verifiers"))
