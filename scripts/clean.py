"""`make clean`: removes what make made in this folder, and nothing else.

Outputs go through the guard of every command (`io.folders`): one that was changed, or that holds another
file, stays. An environment is removed as a whole if make stamped it and nothing else lies at its top; a cache
if its tool tagged it.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

OUTPUTS = {
    "out/robustbench-tc": "robustbench-tc",
    "out/run": "run",
    "out/robustbench-tc-live": "robustbench-tc-live",
    "out/live-run": "run",
}
"""Made by `make quickstart`, with their kinds."""

ENVIRONMENTS = (
    "",
    "-3.11",
    "-3.12",
    "-3.13",
    "-train",
    "-trl",
    "-serve",
    "-inspect",
    "-lm-eval",
    "-verifiers",
    "-docs",
    "-lock",
    "-leaderboard",
    "-scale",
    "-live",
    "-langgraph",
    "-openai-agents",
    "-pydantic-ai",
)
STAMPS = {".core", ".dev", ".done"}
OF_AN_ENVIRONMENT = {"bin", "etc", "include", "lib", "lib64", "man", "share", "pyvenv.cfg", ".gitignore"}

CACHES = (".pytest_cache", ".mypy_cache", ".ruff_cache", ".node-doors")
TAG = "CACHEDIR.TAG"


def main() -> None:
    """Prints what stays and why; exit code 1 if anything does."""
    stays = [*outputs(), *distributions(), *environments(), *caches()]
    for line in stays:
        print(f"kept: {line}", file=sys.stderr)  # noqa: T201 - a script
    sys.exit(bool(stays))


def outputs() -> Iterator[str]:
    """Removes what the quickstart left."""
    there = {path: kind for path, kind in OUTPUTS.items() if Path(path).exists() or Path(path).is_symlink()}
    if there:
        try:
            from robustbench_tc.errors import UserError
            from robustbench_tc.io.folders import remove_dir
        except ImportError:
            yield f"{', '.join(there)}: without the package nobody can tell whose files these are"
            return
        for path, kind in there.items():
            try:
                remove_dir(Path(path), kind=kind)
            except UserError as error:
                yield str(error)
    with suppress(OSError):  # not empty, or not there
        Path("out").rmdir()


def distributions() -> Iterator[str]:
    """Removes built packages of this project."""
    folder = Path("dist")
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.is_symlink() and path.match("robustbench_tc-*"):
            path.unlink()
        else:
            yield f"{path}: not a package of this project"
    with suppress(OSError):  # something else is in it
        folder.rmdir()


def environments() -> Iterator[str]:
    """Removes the environments that make installed."""
    for ending in ENVIRONMENTS:
        folder = Path(f".venv{ending}")
        if not folder.is_dir() and not folder.is_symlink():
            continue
        names = set() if folder.is_symlink() else {path.name for path in folder.iterdir()}
        other = names - OF_AN_ENVIRONMENT - STAMPS
        if not names & STAMPS or "pyvenv.cfg" not in names:
            yield f"{folder}: make did not make it"
        elif other:
            yield f"{folder}: it holds {', '.join(sorted(other)[:5])}"
        else:
            shutil.rmtree(folder)


def caches() -> Iterator[str]:
    """Removes caches that say of themselves that they are."""
    for name in CACHES:
        folder = Path(name)
        if folder.is_dir() and not folder.is_symlink() and (folder / TAG).is_file():
            shutil.rmtree(folder)
        elif folder.exists() or folder.is_symlink():
            yield f"{folder}: it has no {TAG}"


if __name__ == "__main__":
    main()
