"""Files and folders that are either wholly there or not: write beside, then rename.

What is there already is replaced only where it is provably ours: see `folders` for whole folders, `owned` for
single files.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import UserError
from . import folders, marker, owned, scratch
from .lock import locked
from .places import real
from .removal import some
from .unfinished import Unfinished, claim

_NAMELESS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)

__all__ = [
    "atomic_dir",
    "atomic_file",
    "check_dir",
    "check_file",
    "claim",
    "locked",
    "named",
    "new_or_empty",
    "remove_dir",
]


@contextmanager
def atomic_file(path: Path, *, replace: bool = False, own: bool = False) -> Iterator[Path]:
    """Yields a path beside `path` to write; it is synced and renamed into place if the block succeeds.

    A file that is there already is refused with a UserError. With `own` the file belongs to its folder: the
    folder's `rbtc.json`, if there is one, names it, and what is named there as it is may be replaced. With
    `replace` the caller knows that whatever is there is ours.
    """
    with named(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = owned.owner(path.parent) if own else None
        if folder is not None:
            folder.refuse_foreign(path.name)
        elif not replace:
            check_file(path)
        if not replace:
            scratch.sweep(path)
        with scratch.beside(path) as beside:
            yield beside
            with beside.open("rb") as file:
                os.fsync(file.fileno())
            if folder is not None:
                folder.refuse_foreign(path.name)
                folder.announce(path.name, marker.sha256(beside))
            if folder is not None or replace:
                beside.replace(path)
            else:
                _place(beside, path)


@contextmanager
def atomic_dir(
    path: Path,
    *,
    kind: str = "",
    force: bool = False,
    discard_changes: bool = False,
    hint: str = "--force replaces it if rbtc made it and nothing else is in it",
) -> Iterator[Path]:
    """Yields a new folder beside `path`; renamed into place if the block succeeds, removed if not.

    An existing `path` is refused with a UserError; with `force` it is swapped by two renames if it is a
    folder of ours of this `kind` that holds nothing else (`folders.check`). What killed runs left beside it
    is removed by the next one. Files that are written in the block are claimed first (`claim`): whatever else
    turns up in the folder is never deleted.
    """
    path = real(path)
    with named(path):
        replacing: dict[str, Any] = {"kind": kind, "force": force, "discard_changes": discard_changes}
        check_dir(path, **replacing, exists=hint)
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path):
            was_there = os.path.lexists(path)
            for left in Unfinished.left(path):
                left.recover(path, kind)
            if os.path.lexists(path) and not was_there:  # killed in the middle of a swap
                check_dir(path, **replacing, exists=hint)
            made = Unfinished.make(path)
            try:
                yield made.folder
                found = check_dir(path, **replacing, exists=hint)  # the work may have taken hours
                if found is not None:
                    path.rename(made.aside)
                _move(made, path)
                left_over = [] if found is None else folders.remove(made.aside, found)
            finally:
                made.discard()
        if left_over:
            raise UserError(
                f"{path} is written, but files came into the folder that it replaced: {some(left_over)}. "
                f"They are kept in {made.aside}"
            )


def check_dir(
    path: Path,
    *,
    kind: str,
    force: bool,
    discard_changes: bool = False,
    exists: str = "choose another name",
) -> folders.Contents | None:
    """What `atomic_dir` would remove at `path`, None where nothing is. UserError where it would refuse."""
    path = real(path)
    if not os.path.lexists(path):
        return None
    if not force:
        raise UserError(f"{path} exists: {exists}")
    return folders.check(path, kind, discard_changes=discard_changes)


def remove_dir(path: Path, *, kind: str, discard_changes: bool = False) -> None:
    """Removes a folder of ours of this `kind` that holds nothing else (`folders.check`); UserError else.

    It is renamed aside first: killed at any moment, `path` is whole or gone.
    """
    path = real(path)
    with locked(path):
        for left in Unfinished.left(path):
            left.recover(path, kind)
        found = folders.check(path, kind, discard_changes=discard_changes)
        gone = Unfinished.make(path)
        path.rename(gone.gone)
        stays = folders.remove(gone.gone, found)
        gone.discard()
    if stays:
        raise UserError(
            f"files came into {path} while it was removed: {some(stays)}. They are kept in {gone.gone}"
        )


def check_file(path: Path) -> None:
    """UserError where something is at `path`: a new file never takes the place of another."""
    if os.path.lexists(path):
        raise UserError(f"{path} exists and is not replaced: choose another name, or remove it")


def new_or_empty(path: Path) -> bool:
    """Whether a folder may be begun at `path`: nothing is there, or an empty folder that is not a link."""
    if not os.path.lexists(path):
        return True
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


@contextmanager
def named(path: Path) -> Iterator[None]:
    """A full disk, a broken one or a limit, met while `path` is written, gets its name: it has none.

    So does a name that is too long: it may be that of a file which is ours alone, beside `path`.
    """
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG or (error.filename is None and error.errno in _NAMELESS):
            error.filename = str(path)
        raise


def _move(made: Unfinished, path: Path) -> None:
    try:
        made.folder.rename(path)
    except OSError as error:
        if made.aside.is_dir():
            if not os.path.lexists(path):
                made.aside.rename(path)
            else:
                raise UserError(
                    f"{path} appeared while it was being replaced; the folder that was there is {made.aside}"
                ) from None
        error.filename = str(path)
        raise


def _place(beside: Path, path: Path) -> None:
    """Gives a finished file its name, which nobody may have taken meanwhile."""
    try:
        os.link(beside, path)
    except FileExistsError:
        raise UserError(f"{path} appeared while it was being written and is not replaced") from None
    except OSError:  # a file system without hard links: the name is taken first, and then filled
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        beside.replace(path)
