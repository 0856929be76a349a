"""Worlds by name: the bundled ones, BFCL's, and files of a user's own."""

import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ..errors import UserError, unknown
from . import bfcl_functions
from .base import Task, ToolClass, World
from .handle import WorldType, load_file

BUNDLED = ("orders", "calendar")
"""Worlds of this package, each a file beside this one that has WORLD and TASKS."""

BFCL = "bfcl"
"""BFCL's eight classes: programs of upstream's, in an environment of their own."""

BFCL_VERSION = "2026.3.23"
"""Of bfcl-eval, as in bfcl_requirements.txt: states and results are this version's."""

BFCL_PYTHON = Path(".venv-live") / "bin" / "python"
"""What `make env-live` makes in a checkout."""

_WHICH = """
from importlib.metadata import PackageNotFoundError, version
try:
    import mpmath
    print(version("bfcl-eval"))
except (ImportError, PackageNotFoundError) as error:
    print(error)
"""


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
    python = named[0]
    found = _said_by(str(python), _WHICH)
    if found != BFCL_VERSION:
        said = f"has bfcl-eval {found[:40]}" if found[:1].isdigit() else f"lacks it: {found[:80]}"
        raise UserError(f"BFCL's world needs {needed}; {python} {said}: run `make env-live`")
    return str(python)


def bfcl_data(python: str) -> Path:
    """Where that Python's bfcl-eval has its data files: the same bytes as those of the sources."""
    return Path(_said_by(python, "import bfcl_eval; print(bfcl_eval.__path__[0])")) / "data"


def _said_by(python: str, code: str) -> str:
    """What a few lines of code print in another Python. Raises UserError."""
    asked = [python, "-I", "-c", code]
    try:
        return subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UserError(f"{python} does not run ({reason}): run `make env-live`, or name another") from None


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
    for tool in made.tools():
        if tool["name"] not in taken:
            # Its words behind the first, which is a verb; of one word, that.
            words = re.findall("[A-Z]?[a-z0-9]+|[A-Z]+", tool["name"]) or [tool["name"]]
            noun = " ".join(words[1:] or words).lower().removesuffix("s")
            derived.setdefault(noun, []).append(tool["name"])
    return (*made.classes, *(ToolClass(noun, (), tuple(tools)) for noun, tools in derived.items()))


@cache
def looks_first(world: WorldType) -> Mapping[str, tuple[str, ...]]:
    """Tool → reads that a service could sensibly ask for before it."""
    if world.python is not None:
        return bfcl_functions.LOOKS_FIRST
    of_file: Mapping[str, tuple[str, ...]] = load_file(world.file).WORLD.looks_first
    return of_file
