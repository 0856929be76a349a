"""Files that are either wholly there or not: write beside, then rename. Whole folders are in `folders`.

What is written beside a place has a name of ours, `.NAME.ID.rbtc-partial`, and one process at a time holds
`.NAME.rbtc-lock`. A killed process leaves both; the kernel has dropped its locks, and the next one tidies up.
"""

import errno
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import UserError

LOCK, PARTIAL, OLD = ".rbtc-lock", ".rbtc-partial", ".rbtc-old"
"""How names end that only this package gives: a lock, what is being written, the folder that it replaces."""

_OURS = re.compile(rf"\.(?P<name>.+?)(?:{LOCK}|\.[0-9a-f]{{16}}(?:{PARTIAL}|{OLD}))", re.DOTALL)
_NAMELESS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


@contextmanager
def atomic_file(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yields a path beside `path` to write; it is synced and renamed into place if the block succeeds.

    A file that is there already is refused with a UserError, unless the caller knows that it may be replaced.
    """
    with named(path):
        if not replace:
            check_file(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not replace:
            sweep(path)
        made = beside(path, PARTIAL)
        with made.open("xb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield made
                with made.open("rb") as written:
                    os.fsync(written.fileno())
                if replace:
                    made.replace(path)
                else:
                    _place(made, path)
            finally:
                made.unlink(missing_ok=True)


def _place(made: Path, path: Path) -> None:
    """Gives a finished file its name, which nobody may have taken meanwhile."""
    try:
        os.link(made, path)
    except FileExistsError:
        raise UserError(f"{path} appeared while it was being written and is not replaced") from None
    except OSError:  # a file system without hard links: the name is taken first, and then filled
        path.open("xb").close()
        made.replace(path)


def check_file(path: Path) -> None:
    """UserError where something is at `path`: a new file never takes the place of another."""
    if os.path.lexists(path):
        raise UserError(f"{path} exists and is not replaced: choose another name, or remove it")


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """One process at a time: a second one is refused with a UserError while the block runs, or waits."""
    from filelock import FileLock, Timeout  # here: it loads asyncio, and most commands take no lock

    lock = path.parent / f".{path.name}{LOCK}"
    with named(path):
        try:
            # A file system without locks is an error: a file in their place would outlive a killed process.
            held = FileLock(lock, blocking=wait, poll_interval=0.01, fallback_to_soft=False).acquire()
        except Timeout:
            raise UserError(f"{path} is being written by another process: wait for it to finish") from None
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
    """A new name of ours beside `path`."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}{ending}")


def leftovers(path: Path) -> list[Path]:
    """What killed processes left beside `path`, and what others write there at this moment."""
    return [
        found
        for found in sorted(path.parent.iterdir())
        if (match := _OURS.fullmatch(found.name)) and match["name"] == path.name and found.suffix != LOCK
    ]


def sweep(path: Path) -> None:
    """Deletes what killed processes left of earlier tries to write the file `path`."""
    for left in leftovers(path):
        with suppress(OSError):  # gone meanwhile
            if not is_held(left):
                left.unlink()


def is_ours(name: str) -> bool:
    """Whether only this package gives such a name: a lock, or what is not finished."""
    return _OURS.fullmatch(name) is not None


def is_held(path: Path) -> bool:
    """Whether a process holds the lock file, or writes the unfinished file `path`."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False
