"""The options of builds whose texts a model writes."""

from pathlib import Path
from typing import Annotated

import typer

MaxRequests = Annotated[
    int | None, typer.Option(min=0, help="Requests that the whole build may send to endpoints.")
]
MaxCost = Annotated[
    float | None, typer.Option(min=0, help="In the currency of --price; the build stops before it.")
]
Price = Annotated[
    tuple[float, float] | None,
    typer.Option(help="Price per million prompt and completion tokens, for --max-cost."),
]
Concurrency = Annotated[int, typer.Option(min=1, help="Requests in flight, per address.")]
Store = Annotated[
    Path, typer.Option(help="Where answers of endpoints are kept: asked once, replayed ever after.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the build report as JSON.")]
