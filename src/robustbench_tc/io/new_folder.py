"""A new folder with files that are all there, or none of them."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..errors import UserError
from .files import atomic_dir, claim, named, new_or_empty
from .places import real


def check_new(path: Path) -> None:
    """UserError unless nothing is at `path`, or an empty folder that is not a link."""
    path = real(path)
    for parent in path.parents:
        if parent.exists() and not parent.is_dir():
            raise UserError(f"{parent} is not a folder: choose another name")
    if new_or_empty(path):
        return
    if path.is_symlink():
        raise UserError(f"{path} is a link: name the folder itself")
    if path.is_dir():
        raise UserError(f"{path} is not empty: name a new folder, or an empty one")
    raise UserError(f"{path} is not a folder: choose another name")


def write_new(path: Path, files: Mapping[str, bytes]) -> None:
    """Makes the folder `path` of these files, by their paths below it; an empty one is filled.

    What is there already is never replaced; where a file cannot be written, nothing stays.
    """
    path = real(path)
    check_new(path)
    if not os.path.lexists(path):
        with atomic_dir(path) as made:
            claim(made, *files)
            for name, data in files.items():
                _write(made / name, data, [])
        return
    # An empty folder may be the one that a shell stands in: it is filled, not replaced.
    written: list[Path] = []
    try:
        with named(path):
            for name, data in files.items():
                _write(path / name, data, written)
    except BaseException:
        _undo(path, written)
        raise


def _write(path: Path, data: bytes, written: list[Path]) -> None:
    """Writes a file that is not there yet; `written` says that it is ours as soon as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        written.append(path)
        file.write(data)


def _undo(path: Path, written: list[Path]) -> None:
    for file in written:
        file.unlink(missing_ok=True)
    for file in written:
        with suppress(OSError):  # it holds what came from elsewhere, or is gone already
            for folder in file.parents:
                if folder == path:
                    break
                folder.rmdir()
