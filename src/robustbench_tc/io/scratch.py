"""Unfinished files, under names that prove whose they are.

A file is written under another name beside its place. A killed run leaves it; whoever finds it must know that
it is ours before deleting it. The name holds a hash over the final name and the process, which nothing else
writes, and the process holds a lock on the file for as long as it lives.
"""

import fcntl
import hashlib
import itertools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NAME = re.compile(r"\.(?P<name>.+)\.(?P<process>\d+-\d+)-(?P<proof>[0-9a-f]{12})\.partial", re.DOTALL)
_numbers = itertools.count(1)


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A new empty file beside `path` to write it to. It is gone after the block unless it was renamed."""
    made, handle = _make(path)
    try:
        yield made
    finally:
        os.close(handle)
        made.unlink(missing_ok=True)


def is_ours(name: str) -> bool:
    """Whether a file of this name was made by `beside`."""
    match = _NAME.fullmatch(name)
    return match is not None and match["proof"] == _proof(match["name"], match["process"])


def sweep(path: Path) -> None:
    """Deletes what killed processes left of earlier tries to write `path`."""
    for left in list(path.parent.iterdir()):
        match = _NAME.fullmatch(left.name)
        if match is None or match["name"] != path.name or not is_ours(left.name):
            continue
        with suppress(OSError), left.open("rb") as file:  # gone meanwhile, or in use
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while a process writes it
            left.unlink(missing_ok=True)


def is_written(path: Path) -> bool:
    """Whether a process is writing the unfinished file `path`."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _make(path: Path) -> tuple[Path, int]:
    while True:
        process = f"{os.getpid()}-{next(_numbers)}"
        made = path.with_name(f".{path.name}.{process}-{_proof(path.name, process)}.partial")
        try:
            handle = os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        except FileExistsError:  # of an earlier process with our number
            continue
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:  # a sweep of another process may have come first
            return made, handle
        os.close(handle)


def _proof(name: str, process: str) -> str:
    text = f"robustbench-tc\0{name}\0{process}"
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:12]
