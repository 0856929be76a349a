"""Worlds by name: the bundled ones, BFCL's, and files of a user's own."""

from pathlib import Path

from ..errors import UserError, unknown
from .base import Task
from .handle import WorldType, load_file

BUNDLED = ("orders", "calendar")
"""Worlds of this package, each a file beside this one that has WORLD and TASKS."""

BFCL = "bfcl"
"""BFCL's eight classes: programs of upstream's, in an environment of their own."""


def find(name: str, *, python: str | None = None) -> WorldType:
    """The world of that name, or in that file. `python`: for BFCL's, whose package another Python has.

    Raises UserError with near misses.
    """
    if name.endswith(".py"):
        path = Path(name).absolute()
        if not path.is_file():
            raise UserError(
                f"{name} is not a file: a world is a bundled name or a Python file (docs/worlds.md)"
            )
        return WorldType(path.stem, path)
    if name not in (*BUNDLED, BFCL):
        raise unknown("world", name, (*BUNDLED, BFCL))
    file = Path(__file__).with_name("bfcl_classes.py" if name == BFCL else f"{name}.py")
    return WorldType(name, file, python if name == BFCL else None)


def tasks(world: WorldType) -> tuple[Task, ...]:
    """The tasks that a world's file brings; BFCL's are rows of its source instead."""
    return tuple(getattr(load_file(world.file), "TASKS", ()))
