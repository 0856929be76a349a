"""What many tests start from, made once a machine: it lies in pytest's cache, which `make clean` removes.

The name of each hashes what makes it: a change in eval/stats makes no dataset again.
"""

import shutil
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow
from filelock import FileLock

from robustbench_tc import api
from robustbench_tc.builders.build import BuildSpec, build
from robustbench_tc.builders.live.build import LiveSpec, build as build_worlds
from robustbench_tc.dataset_cards import live, render

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "robustbench_tc"

EVERYTHING = tuple(sorted(PACKAGE.iterdir()))
"""Whose code and data make an audited release, or a run that is scored."""

_ROOMS = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
_BEFORE = [name.strip() for room in _ROOMS[0]["layers"] for name in room.split(":")]
BUILDERS = tuple(
    path
    for name in ("data", "dataset_cards", *_BEFORE[_BEFORE.index("builders") :])
    for path in (PACKAGE.joinpath(*name.split(".")), PACKAGE.joinpath(*name.split(".")).with_suffix(".py"))
)
"""Whose code and data make a dataset: the builders, the rooms before them, the cards, and package data."""

KEPT = 3
"""Of each name: for the branches that one goes back and forth between."""


def once(folder: Path, name: str, rooms: tuple[Path, ...], make: Callable[[Path], object]) -> Path:
    """What `make` writes into a new folder, unless it did before. Whoever wants to change it takes a copy."""
    place, partial = folder / f"{name}-{_key(rooms)}", folder / f"{name}.partial"
    with FileLock(folder / f"{name}.lock"):
        if not place.is_dir():
            shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
            make(partial)
            partial.rename(place)
            for old in sorted(folder.glob(f"{name}-*/"), key=lambda path: path.stat().st_mtime)[:-KEPT]:
                shutil.rmtree(old)
    return place


def build_benchmark(folder: Path, **options: Any) -> None:
    """Without the scorers' word on each golden answer: they take all of the published ones."""
    build(BuildSpec(**options), folder / "robustbench-tc", card=render.benchmark_card)


def build_live(folder: Path, **options: Any) -> None:
    build_worlds(LiveSpec(**options), folder / "robustbench-tc-live", card=live.live_card)


def release_benchmark(folder: Path, build: Path) -> None:
    """Behind the real gate; on trial, since the starter samples are never published."""
    out = folder / "robustbench-tc"
    api.release(build, out, version="1.0.0", created_at="2026-11-20T12:00:00Z", trial=True)


def contents(*places: Path) -> dict[str, str]:
    """The hash of every file in these folders, by its path."""
    found = [path for place in places for path in (place, *sorted(place.rglob("*")))]
    files = (path for path in found if path.is_file() and path.suffix != ".pyc")
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in files}


@cache
def _key(rooms: tuple[Path, ...]) -> str:
    """Of the files of these rooms, the packages that are installed, and the Python."""
    packages = sorted(path.name for path in Path(pyarrow.__file__).parents[1].glob("*.dist-info"))
    code = contents(*rooms, Path(__file__))
    return sha256(repr((sys.version, packages, code)).encode()).hexdigest()[:20]
