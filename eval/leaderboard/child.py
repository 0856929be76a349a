"""A process that may be killed: it gives up memory, time and file sizes before it does its work.

It is a fork, so that the datasets need not be loaded again. Of a process whose threads may hold a lock, an
app for one, it may hang: there let a command check the run.
"""

import multiprocessing
import os
import resource
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

import msgspec

from .entry import Refused

_FAILED, _MEMORY, _REFUSED = 3, 4, 5
"""Exit codes of a child."""

_SPACE = ("size", "reading it needs more memory than a run may take")
_TIME = ("score", "reading and scoring it took longer than a run may take")
_CRASH = ("format", "it could not be read to its end")
_REASONS = {_MEMORY: _SPACE, -signal.SIGABRT: _SPACE, -signal.SIGXCPU: _TIME, -signal.SIGKILL: _TIME}


class Limits(NamedTuple):
    """What one run may cost. 3,977 rows take about 1 s, the default live dataset about 6 s; the longest
    replies that are read at all take a minute."""

    memory: int = 3 << 30
    """Address space, beyond what the process has when it begins."""
    cpu_s: int = 300
    wall_s: float = 900
    file: int = 1 << 30
    """Of a file that it writes."""


def in_child(work: Callable[[Path], bytes], limits: Limits = Limits()) -> bytes:
    """What `work` returns, from a process of its own; it gets a folder that is gone afterwards. Raises
    Refused where `work` raises that, or does not get to its end."""
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch, "answer")
        child = multiprocessing.get_context("fork").Process(target=_work, args=(work, limits, answer))
        child.start()
        try:
            child.join(limits.wall_s)
        finally:
            child.kill()
            child.join()
        if child.exitcode not in (0, _REFUSED):
            raise Refused(*_REASONS.get(child.exitcode or 0, _CRASH))
        text = answer.read_bytes()
    if child.exitcode == _REFUSED:
        raise Refused(*msgspec.json.decode(text, type=tuple[str, str, tuple[str, ...]]))
    return text


def _work(work: Callable[[Path], bytes], limits: Limits, answer: Path) -> NoReturn:
    code = _FAILED
    try:
        _bound(limits)
        answer.write_bytes(work(answer.parent))
        code = 0
    except Refused as refused:
        answer.write_bytes(msgspec.json.encode((refused.step, str(refused), refused.details)))
        code = _REFUSED
    except MemoryError:
        code = _MEMORY
    finally:
        os._exit(code)  # without a word of what a hostile file made of it


def _bound(limits: Limits) -> None:
    """Gives up, for this process and for good, what a run does not need."""
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
