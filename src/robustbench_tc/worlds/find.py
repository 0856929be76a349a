"""Worlds by name: the bundled ones, BFCL's, and files of a user's own."""

import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ..errors import UserError, unknown
from . import bfcl_functions
from .base import Forbidden, Task, ToolClass, World
from .handle import WorldType, load_file

BUNDLED = ("orders", "calendar")
"""Worlds of this package, each a file beside this one that has WORLD and TASKS."""

BFCL = "bfcl"
"""BFCL's eight classes: programs of upstream's, in an environment of their own."""

BFCL_VERSION = "2026.3.23"
"""Of bfcl-eval, as in bfcl_requirements.txt: states and results are this version's."""

BFCL_PYTHON = Path(".venv-live") / "bin" / "python"
"""What `make env-live` makes in a checkout."""


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
    return WorldType(name, file, bfcl_python(python) if name == BFCL else None)


def bfcl_python(given: str | None = None) -> str:
    """The Python that has BFCL's classes: `given` (--world-python), else that of .venv-live in this folder or
    in the checkout. Raises UserError where there is none, and for one with another version of them."""
    needed = f"bfcl-eval=={BFCL_VERSION} and mpmath"
    # In this folder, or in the checkout that this package lies in.
    made = [place / BFCL_PYTHON for place in (Path.cwd(), Path(__file__).resolve().parents[3])]
    named = [Path(given).expanduser().absolute()] if given else [one for one in made if one.is_file()]
    if not named:
        raise UserError(
            f"BFCL's world needs a Python with {needed}: run `make env-live`, or name one with --world-python"
        )
    python = str(named[0])
    which = "import mpmath; from importlib.metadata import version; print(version('bfcl-eval'))"
    asked = [python, "-I", "-c", which]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        why = (
            getattr(error, "strerror", None)
            or str(getattr(error, "stderr", None) or error).strip().split("\n")[-1]
        )
        raise UserError(
            f"{python} does not run BFCL's world ({why[:80]}): run `make env-live`, or name another Python"
        ) from None
    if (found := done.stdout.strip()) != BFCL_VERSION:
        raise UserError(
            f"BFCL's world needs {needed}; {python} has bfcl-eval {found[:40]}: run `make env-live`"
        )
    return python


def tasks(world: WorldType) -> tuple[Task, ...]:
    """The tasks that a world's file brings; BFCL's are rows of its source instead."""
    return tuple(getattr(load_file(world.file), "TASKS", ()))


@cache
def classes(world: WorldType) -> tuple[ToolClass, ...]:
    """What people call the work of a world's tools: every tool stands in exactly one class. Of two classes
    whose words stand in a sentence the earlier one is meant."""
    if world.python is not None:
        return bfcl_functions.CLASSES
    made: type[World] = load_file(world.file).WORLD
    taken = {tool for one in made.classes for tool in one.tools}
    derived: dict[str, list[str]] = {}
    for tool in (name for name in made.methods if name not in taken):
        # Its words behind the first, which is a verb; of one word, that.
        words = re.findall("[A-Z]?[a-z0-9]+|[A-Z]+", tool) or [tool]
        derived.setdefault(" ".join(words[1:] or words).lower().removesuffix("s"), []).append(tool)
    return (*made.classes, *(ToolClass(noun, (), tuple(tools)) for noun, tools in derived.items()))


@cache
def looks_first(world: WorldType) -> Mapping[str, tuple[str, ...]]:
    """Tool → reads that a service could sensibly ask for before it."""
    if world.python is not None:
        return bfcl_functions.LOOKS_FIRST
    made: type[World] = load_file(world.file).WORLD
    return made.looks_first


def forbidden(world: WorldType) -> Forbidden | None:
    """The tool that must not be called, where a world has one; BFCL's has none."""
    if world.python is not None:
        return None
    made: type[World] = load_file(world.file).WORLD
    return made.forbidden
