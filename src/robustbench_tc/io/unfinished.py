"""Folders that are being written, and what a killed run leaves of them.

`.NAME.ID.partial` is written beside `NAME` and renamed into its place. A folder that it replaces is
`.NAME.ID.old` meanwhile, one that is removed `.NAME.ID.gone`. The file `.NAME.ID.claims` names every file
that is written, before it is: after a SIGKILL exactly those are deleted by the next run, and a stranger's
file in or beside the folder is not.
"""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..errors import UserError
from . import folders
from .removal import remove_files

HEAD = "Files that an rbtc command was writing; its next run removes them with this list.\n"

_ID = r"[0-9a-f]{16}"


class Unfinished:
    """One such folder, `folder`. One that it replaces waits as `aside` to be deleted; one that is only
    removed is `gone`."""

    def __init__(self, claims: Path) -> None:
        self._claims = claims
        self.folder = claims.with_suffix(".partial")
        self.aside = claims.with_suffix(".old")
        self.gone = claims.with_suffix(".gone")

    @classmethod
    def make(cls, path: Path) -> "Unfinished":
        """A new one for `path`, beside it."""
        made = cls(path.parent / f".{path.name}.{secrets.token_hex(8)}.claims")
        try:
            with made._claims.open("x", encoding="utf-8") as file:
                file.write(HEAD)
            made.folder.mkdir()
        except OSError:
            made.forget()
            raise
        return made

    @classmethod
    def left(cls, path: Path) -> "Iterator[Unfinished]":
        """Those of `path` that killed runs left. Call it under the lock of `path`."""
        wanted = re.compile(re.escape(f".{path.name}.") + _ID + r"\.claims")
        for found in sorted(path.parent.iterdir()):
            if wanted.fullmatch(found.name) and _is_list(found):
                yield cls(found)

    def discard(self) -> list[str]:
        """Deletes what was claimed of the folder, and the list; what stays of the folder, if anything."""
        claimed = set(_lines(self._claims))
        stays = remove_files(self.folder, lambda name, found: name in claimed)
        self.forget()
        return stays

    def forget(self) -> None:
        """Deletes the list: the folder is in its place, or gone."""
        self._claims.unlink(missing_ok=True)

    def recover(self, path: Path, kind: str) -> None:
        """Undoes or completes what a killed run began, so that `path` is wholly there or not at all."""
        if _is_folder(self.aside) and not os.path.lexists(path):
            self.aside.rename(path)
        for old in (self.aside, self.gone):
            if _is_folder(old):
                with suppress(UserError):  # it holds what is not ours to delete
                    folders.remove(old, folders.check(old, kind))
        self.discard()


def claim(folder: Path, *names: str) -> None:
    """Says that the files `names` below `folder` are about to be written. Nothing where no list is kept."""
    for parent in (folder, *folder.parents):
        if parent.suffix == ".partial" and (claims := parent.with_suffix(".claims")).is_file():
            prefix = folder.relative_to(parent)
            with claims.open("a", encoding="utf-8", errors="surrogateescape") as file:
                file.writelines(f"{(prefix / name).as_posix()}\n" for name in names)
            return


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_list(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(HEAD)) == HEAD.encode()


def _lines(path: Path) -> list[str]:
    if not _is_list(path):
        return []
    # A torn last line names a file that was not begun.
    return path.read_text("utf-8", "surrogateescape")[len(HEAD) :].split("\n")[:-1]
