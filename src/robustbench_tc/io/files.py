"""Single files that are either wholly there or not: written beside, then renamed. Folders are in `folders`.

What is written beside a place has a name of ours, `.NAME.rbtc-partial`, and one process at a time holds
`.NAME.rbtc-lock`. A killed process leaves both; the kernel has dropped its locks, the next one takes over.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from ..errors import UserError

T = TypeVar("T")

Kind = Literal["file", "folder", "link", "special"]
"""special: a pipe, a socket, a device. Opening one may wait for ever."""

_KINDS: dict[int, Kind] = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}

LOCK, PARTIAL, OLD = ".rbtc-lock", ".rbtc-partial", ".rbtc-old"
"""How names end that only this package gives: a lock, what is being written, the folder that it replaces."""

_NAMELESS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


def decoded(data: bytes, kind: type[T], where: object) -> T:
    """The JSON of a file that others may have written. UserError that says `where` it is."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where} cannot be read: {error}") from None


def walk(root: Path) -> Iterator[tuple[str, Kind]]:
    """Every entry under `root` by its path (with `/`, bytes that are not UTF-8 escaped), none opened, no link
    followed. A folder that cannot be listed is `special` in the end."""
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    form = stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)
                    kind = _KINDS.get(form, "special")
                    if kind == "folder":
                        waiting.append(path)
                    yield path, kind
        except OSError:
            yield folder, "special"


@contextmanager
def atomic_file(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yields a path beside `path` to write; it is synced and renamed into place if the block succeeds.

    A file that is there already is refused with a UserError, unless the caller knows that it may be replaced;
    so is a file that another process writes at this moment.
    """
    with named(path):
        if not replace:
            check_file(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        made = beside(path, PARTIAL)
        with made.open("ab") as held:
            if not _lock(held.fileno()):
                raise _busy(path)
            try:
                held.truncate(0)
                yield made
                os.fsync(held.fileno())
                if not replace:  # again: the work may have taken hours
                    check_file(path)
                made.replace(path)
            except BaseException:  # an interrupt too: half a file is none
                made.unlink(missing_ok=True)
                raise


def check_file(path: Path) -> None:
    """UserError where something is at `path`: a new file never takes the place of another."""
    if os.path.lexists(path):
        raise UserError(f"{path} exists and is not replaced: choose another name, or remove it")


def check_marked(path: Path, mark: str) -> None:
    """UserError where something else is at `path` than a file that begins with the mark of one command."""
    if not path.is_file() or path.is_symlink():
        check_file(path)
        return
    with path.open("rb") as file:
        if mark.encode() not in file.read(200):
            raise UserError(f"{path} is not a file of `{mark}`, so it is not replaced: choose another name")


def save_marked(path: Path, data: bytes, mark: str) -> None:
    """A file of the command's, in place of an earlier one. Raises UserError for another file."""
    check_marked(path, mark)
    with atomic_file(path, replace=True) as beside:
        beside.write_bytes(data)


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """One process at a time: a second one is refused with a UserError while the block runs, or waits."""
    from filelock import FileLock, Timeout  # here: it loads asyncio, and most commands take no lock

    lock = beside(path, LOCK)
    with named(path):
        try:
            # A file system without locks is an error: a file in their place would outlive a killed process.
            held = FileLock(lock, blocking=wait, poll_interval=0.01, fallback_to_soft=False).acquire()
        except Timeout:
            raise _busy(path) from None
    with held:
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """An error of the disk while `path` is written names it, not a file of ours beside it, or none at all."""
    try:
        yield
    except OSError as error:
        ours = error.filename is not None and is_ours(Path(os.fsdecode(error.filename)).name)
        if ours or (error.filename is None and error.errno in _NAMELESS):
            error.filename, error.filename2 = str(path), None
        raise


def beside(path: Path, ending: str) -> Path:
    """The name of ours beside `path`."""
    return path.with_name(f".{path.name}{ending}")


def is_ours(name: str) -> bool:
    """Whether only this package gives such a name: a lock, or what is not finished."""
    return name.startswith(".") and name.endswith((LOCK, PARTIAL, OLD))


def is_held(path: Path) -> bool:
    """Whether a process holds the lock file, or writes the unfinished file `path`."""
    with path.open("rb") as file:
        return not _lock(file.fileno())


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _busy(path: Path) -> UserError:
    return UserError(f"{path} is being written by another process: wait for it to finish")
