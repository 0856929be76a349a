"""A process that may be killed: it gives up memory, time and file sizes before it does its work.

It is a fork, so that what is loaded need not be loaded again. Of a process whose threads may hold a lock, an
app for one, it may hang: there let a command do the work.
"""

import multiprocessing
import os
import resource
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

_FAILED, _MEMORY = 3, 4
"""Exit codes of a child."""

Ending = Literal["memory", "time", "crash"]
_ENDINGS: dict[int, Ending] = {
    _MEMORY: "memory",
    -signal.SIGABRT: "memory",
    -signal.SIGXCPU: "time",
    -signal.SIGKILL: "time",
}


class Exceeded(Exception):
    """A child did not get to its end."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending)
        self.ending = ending


class Limits(NamedTuple):
    """What a child may take."""

    memory: int
    """Address space, beyond what the process has when it begins."""
    cpu_s: int
    wall_s: float
    file: int
    """Of a file that it writes."""


def in_child(work: Callable[[Path], bytes], limits: Limits) -> bytes:
    """What `work` returns, from a process of its own; it gets a folder that is gone afterwards. Raises
    Exceeded where it raises, or does not get to its end."""
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch, "answer")
        child = multiprocessing.get_context("fork").Process(target=_work, args=(work, limits, answer))
        child.start()
        try:
            child.join(limits.wall_s)
        finally:
            child.kill()
            child.join()
        if child.exitcode:
            raise Exceeded(_ENDINGS.get(child.exitcode, "crash"))
        return answer.read_bytes()


def _work(work: Callable[[Path], bytes], limits: Limits, answer: Path) -> NoReturn:
    code = _FAILED
    try:
        os.environ.clear()  # tokens, for one
        _bound(limits)
        answer.write_bytes(work(answer.parent))
        code = 0
    except MemoryError:
        code = _MEMORY
    finally:
        os._exit(code)  # without a word of what a hostile file made of it


def _bound(limits: Limits) -> None:
    """Gives up, for this process and for good, what the work does not need."""
    wanted = {
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_FSIZE: limits.file,
        resource.RLIMIT_NOFILE: 128,
        resource.RLIMIT_CORE: 0,
    }
    statm = Path("/proc/self/statm")
    if statm.is_file():  # no Linux: the other limits have to do
        pages = int(statm.read_text().split()[0])
        wanted[resource.RLIMIT_AS] = pages * resource.getpagesize() + limits.memory
    for what, amount in wanted.items():
        hard = resource.getrlimit(what)[1]
        bounded = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(what, (bounded, bounded))
