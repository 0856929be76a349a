"""Files and folders that are either wholly there or not: write beside, then rename."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import UserError


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yields a path beside `path` to write; it is synced and renamed into place if the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def atomic_dir(path: Path, *, force: bool = False, mend: str = "--force replaces it") -> Iterator[Path]:
    """Yields a new folder beside `path`; renamed into place if the block succeeds, removed if not.

    An existing `path` is refused with a UserError unless `force`; then it is swapped by two renames. Folders
    that a killed run left beside it are removed by the next one.
    """
    path = path.absolute()
    if path.exists() and not force:
        raise UserError(f"{path} exists: {mend}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path):
        for stale in path.parent.glob(f".{path.name}.*.partial"):
            shutil.rmtree(stale, ignore_errors=True)
        old = path.parent / f".{path.name}.old"
        if old.exists():  # a run was killed between the two renames
            if path.exists():
                shutil.rmtree(old)
            else:
                old.rename(path)
        beside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
        beside.chmod(0o777 & ~_umask())
        try:
            yield beside
            if path.exists():
                if not force:
                    raise UserError(f"{path} appeared while it was being built: {mend}")
                path.rename(old)
            beside.rename(path)
            shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds `.NAME.lock` beside `path` while the block runs; a second process is refused, a dead one is not.

    The kernel drops the lock with its process, so a SIGKILL leaves nothing to clean up.
    """
    import fcntl

    lock = path.parent / f".{path.name}.lock"
    while True:
        with lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UserError(
                    f"{path} is being written by another process: wait for it to finish"
                ) from None
            try:
                ours = os.path.samestat(os.fstat(file.fileno()), lock.stat())
            except FileNotFoundError:
                ours = False
            if not ours:  # its last holder removed it between our opening and locking it
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
