"""The options that say who does the work; none of them moves a byte of what comes out."""

from typing import Annotated

import typer

from ..errors import UserError, unknown
from ..parallel import Workers

NumProc = Annotated[int, typer.Option(min=1, help="Processes; the bytes are the same for any.")]
Engine = Annotated[str, typer.Option(help="local, or ray: tasks on a cluster (extra `scale`).")]
Address = Annotated[
    str | None, typer.Option(help="Ray cluster to join; default: one of --num-proc CPUs is started here.")
]

ENGINES = ("local", "ray")


def workers(num_proc: int, engine: str, address: str | None) -> Workers:
    """The options as one value. Raises UserError."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if address is not None and engine != "ray":
        raise UserError("--address names a Ray cluster: say --engine ray too")
    return Workers(num_proc=num_proc, engine=engine, address=address)  # type: ignore[arg-type]
