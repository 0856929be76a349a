"""One process at a time: a lock file beside what is being written, which goes when the work is done.

The kernel drops the lock with its process, so a SIGKILL leaves a file that holds nobody up; its text says
whose it is, and the next run removes it.
"""

import errno
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
    from filelock import FileLock, Timeout  # here: it loads asyncio, and most commands take no lock

    lock = path.parent / f".{path.name}.lock"
    text, before = _look(lock)
    if text not in (None, b"", TEXT):
        raise UserError(f"{lock} is not a lock of rbtc: move it away")

    def sign(handle: int) -> None:
        # An empty file that was there before is somebody else's: it is locked, and not ours to remove.
        found = os.fstat(handle)
        if found.st_size or (found.st_ino, found.st_ctime_ns) == before:
            return
        try:
            os.write(handle, TEXT)
        except OSError:
            lock.unlink()
            raise

    # A file system without locks is an error: a file in their place would outlive a killed process.
    held = FileLock(lock, blocking=wait, poll_interval=0.01, fallback_to_soft=False, on_acquired=sign)
    try:
        holding = held.acquire()
    except Timeout:
        raise UserError(f"{path} is being written by another process: wait for it to finish") from None
    except OSError as error:
        error.filename = str(path)  # the lock's name says nothing to whoever named the path
        raise
    with holding:
        ours = is_lock(lock)
        try:
            yield
        finally:
            if ours:
                lock.unlink(missing_ok=True)


def is_lock(path: Path) -> bool:
    """Whether a file is a lock of ours, held or left behind."""
    return path.name.startswith(".") and path.name.endswith(".lock") and _look(path)[0] == TEXT


def is_held(path: Path) -> bool:
    """Whether a process holds the lock file `path`."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(path, blocking=False, fallback_to_soft=False):
            return False
    except Timeout:
        return True


def _look(path: Path) -> tuple[bytes | None, tuple[int, int] | None]:
    """A file's text (a little more than a lock's at most), and what tells it from its successor.

    The text is None for no file, and b"?" for what is not a plain file.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None, None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise
        return b"?", None  # a link, a socket, a file that must not be read
    try:
        found = os.fstat(handle)
        text = os.read(handle, len(TEXT) + 1) if stat.S_ISREG(found.st_mode) else b"?"
        return text, (found.st_ino, found.st_ctime_ns)
    finally:
        os.close(handle)
