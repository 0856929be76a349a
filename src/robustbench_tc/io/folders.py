"""The guard: a folder is replaced or removed only if it is ours, whole, and holds nothing else.

Ours is a folder whose marker (`marker`) is of a kind and version that this package writes and as it was
written, and in which every file is named by the marker. It is replaced by renaming it aside; then exactly the
files that were looked at are deleted, one by one, if they still are what they were.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..errors import UserError
from . import lock, marker, scratch, store
from .marker import NotOurs
from .places import refuse_protected
from .removal import remove_files, some

LISTED = 1_000
"""Files of strangers after which nobody looks for more."""

Identity = tuple[int, int, int, int]
"""Device, inode, size, time of the last change, which nobody can set back."""


class Contents(NamedTuple):
    """A folder of ours as it was found."""

    files: dict[str, Identity]
    """Every file in it."""
    changed: list[str]
    """Those that are not as we wrote them."""


def check(path: Path, kind: str, *, discard_changes: bool = False) -> Contents:
    """What may be removed of the folder `path`, which is there: all that is in it.

    UserError where the folder is not one of ours of this `kind`, holds a file that its marker does not name,
    or one that was changed since (unless `discard_changes`), and for places that are never touched. An empty
    folder is anybody's.
    """
    refuse_protected(path)
    if not path.is_dir():
        raise UserError(f"{path} is not a folder: choose another name")
    if not any(path.iterdir()):
        return Contents({}, [])
    found = _contents(path, kind)
    if found.changed and not discard_changes:
        raise UserError(
            f"{path} was changed since rbtc wrote it: {some(found.changed)}. It is left as it is; "
            "--discard-changes replaces it all the same"
        )
    return found


def is_more_than(path: Path, *names: str) -> bool:
    """Whether `path` holds anything beside the files `names`, locks and unfinished files of ours."""
    folders = _parents(names)

    def belongs(one: str, found: os.stat_result) -> bool:
        if stat.S_ISDIR(found.st_mode):
            return one in folders
        return stat.S_ISREG(found.st_mode) and (one in names or _is_passing(path / one))

    return not all(belongs(one, found) for one, found in _walk(path))


def remove(path: Path, found: Contents) -> list[str]:
    """Deletes of `path` the files that `check` found there, as long as they are what they were then.

    What is left of it is returned: files that came meanwhile, or were changed; [] when nothing is.
    """
    last = (marker.BUILD, marker.OWN, marker.AUDIT)  # so that a killed removal can be completed

    def same(name: str, now: os.stat_result) -> bool:
        return found.files.get(name) == identity(now)

    stays = remove_files(path, lambda name, now: name not in last and same(name, now))
    return stays if any(name not in last for name in stays) else remove_files(path, same)


def identity(found: os.stat_result) -> Identity:
    """Device, inode, size and change time: another value where a file was replaced or written to."""
    return found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns


def _contents(path: Path, kind: str) -> Contents:
    name, main = _marker(path, kind)
    named = {name: None, **dict.fromkeys(main.files), **dict.fromkeys(main.before)}
    markers = [main]
    if name == marker.BUILD and (audit := _audit(path)) is not None:
        named |= {marker.AUDIT: None, marker.PAGE: None, **dict.fromkeys(audit.files)}
        markers.append(audit)
    folders = _parents(named)
    files: dict[str, Identity] = {}
    strangers: list[str] = []
    _refuse_locked(path)
    for one, found in _walk(path):
        if stat.S_ISDIR(found.st_mode):
            _refuse_locked(path / one)
            if one not in folders:
                strangers.append(f"{one}/")
        elif stat.S_ISREG(found.st_mode) and (one in named or _is_passing(path / one)):
            files[one] = identity(found)
        else:
            strangers.append(one)
        if len(strangers) >= LISTED:
            break
    if strangers:
        raise UserError(
            f"{path} holds what rbtc did not write there: {some(sorted(strangers))}. Nothing was changed: "
            "move it away, or choose another name"
        )
    sealed = {name, marker.AUDIT} if len(markers) > 1 else {name}
    changed = [
        one
        for one in sorted(files)
        if one in named and one not in sealed and not _is_as_written(path / one, one, markers)
    ]
    return Contents(files, changed)


def _refuse_locked(folder: Path) -> None:
    """UserError for a folder whose files this user may not delete: found out before anything is renamed."""
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(
            f"{folder} may not be written to, so nothing in it can be replaced. Nothing was changed: choose "
            "another name, or change its rights"
        )


def _marker(path: Path, kind: str) -> tuple[str, marker.Marker]:
    """The folder's own marker. UserError where there is none of this kind."""
    for name in (marker.BUILD, marker.OWN):
        try:
            found = marker.read(path / name)
            marker.check_form(found, name)
        except (FileNotFoundError, NotADirectoryError):  # then the other one
            continue
        except NotOurs as error:
            raise UserError(
                f"not a folder that rbtc may replace: {path}: {name}: {error}. Choose another name, or "
                "remove the folder yourself"
            ) from None
        if found.kind != kind:
            raise UserError(f"{path} holds {found.kind}, not {kind}: choose another name")
        return name, found
    raise UserError(
        f"not a folder that rbtc wrote: {path}: it has neither {marker.BUILD} nor {marker.OWN}. Nothing was "
        "changed: choose another name"
    )


def _audit(path: Path) -> marker.Marker | None:
    try:
        return marker.read(path / marker.AUDIT)
    except (FileNotFoundError, NotOurs):  # a stranger's file is then not named by anything
        return None


def _parents(names: Iterable[str]) -> set[str]:
    return {parent.as_posix() for name in names for parent in PurePosixPath(name).parents}


def _walk(path: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Everything below `path` with what it is; no link is followed, no other file system entered."""
    here = path.lstat().st_dev
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(path / folder) as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}" if folder else entry.name
                found = entry.stat(follow_symlinks=False)
                if found.st_dev != here:
                    raise UserError(f"{path / name} is on another file system: nothing was changed")
                yield name, found
                if stat.S_ISDIR(found.st_mode):
                    waiting.append(name)


def _is_passing(path: Path) -> bool:
    """Whether a file is a lock or an unfinished file of ours. UserError while a process is at work there."""
    if lock.is_lock(path):
        held = lock.is_held(path)
    elif scratch.is_ours(path.name):
        held = scratch.is_written(path)
    else:
        return False
    if held:
        raise UserError(f"{path.parent} is being written by another process: wait for it to finish")
    return True


def _is_as_written(path: Path, name: str, markers: list[marker.Marker]) -> bool:
    if name == marker.PAGE:
        return marker.is_whole_page(path)
    for one in markers:
        if name in one.files or name in one.before:
            grown = one.grows.get(name)
            return one.accepts(name, marker.sha256(path, grown)) and (
                grown is None or store.is_continued(path, grown)
            )
    return False
