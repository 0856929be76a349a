"""Worlds by name: the bundled ones, BFCL's, and files of a user's own."""

import subprocess
from pathlib import Path

from ..errors import UserError, unknown
from .base import Task
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
    python = Path(given).expanduser().absolute() if given else _made()
    if python is None:
        raise UserError(
            f"BFCL's world needs a Python with {needed}: run `make env-live`, or name one with --world-python"
        )
    try:
        asked = [str(python), "-I", "-c", _WHICH]
        found = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UserError(f"{python} does not run ({reason}): run `make env-live`, or name another") from None
    if found != BFCL_VERSION:
        said = f"has bfcl-eval {found[:40]}" if found[:1].isdigit() else f"lacks it: {found[:80]}"
        raise UserError(f"BFCL's world needs {needed}; {python} {said}: run `make env-live`")
    return str(python)


def bfcl_data(python: str) -> Path:
    """Where that Python's bfcl-eval has its data files: the same bytes as those of the sources."""
    asked = [python, "-I", "-c", "import bfcl_eval; print(bfcl_eval.__path__[0])"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        raise UserError(f"{python} cannot import bfcl_eval ({error}): run `make env-live`") from None
    return Path(found) / "data"


def _made() -> Path | None:
    """The environment of `make env-live`, in this folder or in the checkout that this package lies in."""
    places = (Path.cwd(), Path(__file__).resolve().parents[3])
    return next((place / BFCL_PYTHON for place in places if (place / BFCL_PYTHON).is_file()), None)


def tasks(world: WorldType) -> tuple[Task, ...]:
    """The tasks that a world's file brings; BFCL's are rows of its source instead."""
    return tuple(getattr(load_file(world.file), "TASKS", ()))
