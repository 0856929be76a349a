"""One process at a time: a lock file beside what is being written, which goes when the work is done.

The kernel drops the lock with its process, so a SIGKILL leaves a file that holds nobody up; its text says
whose it is, and the next run removes it.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import UserError

TEXT = b"held by a running rbtc command\n"


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Holds `.NAME.lock` beside `path` while the block runs; a second process is refused, or waits.

    A file of that name that is not a lock of ours is left alone, with a UserError.
    """
    lock = path.parent / f".{path.name}.lock"
    while True:
        handle, ours = _open(lock)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except OSError:
                raise UserError(
                    f"{path} is being written by another process: wait for it to finish"
                ) from None
            try:
                same = os.path.samestat(os.fstat(handle), lock.lstat())
            except FileNotFoundError:
                same = False
            if not same:  # its last holder removed it between our opening and locking it
                continue
            try:
                yield
            finally:
                if ours:
                    lock.unlink(missing_ok=True)
            return
        finally:
            os.close(handle)


def is_lock(path: Path) -> bool:
    """Whether a file is a lock of ours, held or left behind."""
    if not (path.name.startswith(".") and path.name.endswith(".lock")):
        return False
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_size == len(TEXT) and path.read_bytes() == TEXT


def is_held(path: Path) -> bool:
    """Whether a process holds the lock file `path`."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _open(lock: Path) -> tuple[int, bool]:
    """A handle of the lock file, and whether it is ours to remove. Raises UserError for somebody else's."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(lock, flags | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        pass
    else:
        try:
            os.write(handle, TEXT)
        except OSError:
            lock.unlink()
            os.close(handle)
            raise
        return handle, True
    try:
        handle = os.open(lock, flags)
    except FileNotFoundError:  # gone meanwhile
        return _open(lock)
    except OSError:
        raise _foreign(lock) from None
    text = os.read(handle, len(TEXT) + 1) if stat.S_ISREG(os.fstat(handle).st_mode) else b"?"
    if text not in (b"", TEXT):
        os.close(handle)
        raise _foreign(lock)
    # An empty one was made a moment ago by another process, or by somebody else: it is not ours to remove.
    return handle, text == TEXT


def _foreign(lock: Path) -> UserError:
    return UserError(f"{lock} is not a lock of rbtc: move it away")
