"""The options of commands that write a folder which may be there already."""

from typing import Annotated

import typer

Force = Annotated[
    bool,
    typer.Option("--force", help="Replace a folder that rbtc wrote, if nothing else is in it."),
]
DiscardChanges = Annotated[
    bool,
    typer.Option("--discard-changes", help="Replace it even if files that rbtc wrote were changed since."),
]
