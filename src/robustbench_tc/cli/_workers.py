"""The options that say who does the work; none of them moves a byte of what comes out."""

from typing import Annotated, Literal

import typer

from ..compute.parallel import Workers
from ..errors import UserError
from ._words import one_of

NumProc = Annotated[int, typer.Option(min=1, help="Processes; the bytes are the same for any.")]
Engine = Annotated[
    Literal["local", "ray"],
    one_of("engine", "local", "ray", help="local, or ray: tasks on a cluster (extra `scale`)."),
]
Address = Annotated[
    str | None, typer.Option(help="Ray cluster to join; default: one of --num-proc CPUs is started here.")
]


def workers(num_proc: int, engine: Literal["local", "ray"], address: str | None) -> Workers:
    """The options as one value. Raises UserError."""
    if address is not None and engine != "ray":
        raise UserError("--address names a Ray cluster: say --engine ray too")
    return Workers(num_proc=num_proc, engine=engine, address=address)
