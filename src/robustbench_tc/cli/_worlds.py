"""Options of commands that replay a live build in its worlds."""

from typing import Annotated

import typer

World = Annotated[
    list[str] | None,
    typer.Option("--world", help="For a live build: a world's file that it was built from. Repeatable."),
]
WorldPython = Annotated[
    str | None, typer.Option(help="For a live build: the Python that has BFCL's classes.")
]
