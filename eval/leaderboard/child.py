"""A process that may be killed: it gives up memory, time and file sizes before it does its work."""

import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

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


def in_child(work: Callable[[], bytes], limits: Limits = Limits()) -> bytes:
    """What `work` returns, from a process of its own. Raises Refused where it raises that, or does not get to
    its end."""
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            _work(work, limits, answer)
        os.setpgid(child, child)
        done = status = 0
        ends = time.monotonic() + limits.wall_s
        try:
            while not done and time.monotonic() < ends:
                time.sleep(0.005)
                done, status = os.waitpid(child, os.WNOHANG)
        finally:
            if not done:
                os.killpg(child, signal.SIGKILL)
                _, status = os.waitpid(child, 0)
        answer.seek(0)
        said, code = answer.read(), os.waitstatus_to_exitcode(status)
    if code == _REFUSED:
        raise Refused(*msgspec.json.decode(said, type=tuple[str, str, tuple[str, ...]]))
    if code != 0:
        raise Refused(*_REASONS.get(code, _CRASH))
    return said


def _work(work: Callable[[], bytes], limits: Limits, answer: IO[bytes]) -> NoReturn:
    code = _FAILED
    try:
        _bound(limits)
        answer.write(work())
        code = 0
    except Refused as refused:
        answer.write(msgspec.json.encode((refused.step, str(refused), refused.details)))
        code = _REFUSED
    except MemoryError:
        code = _MEMORY
    finally:
        answer.flush()
        os._exit(code)


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
        wanted[resource.RLIMIT_AS] = (
            int(statm.read_text().split()[0]) * resource.getpagesize() + limits.memory
        )
    for what, amount in wanted.items():
        hard = resource.getrlimit(what)[1]
        bounded = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(what, (bounded, bounded))
