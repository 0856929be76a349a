"""A process that may be killed: it gives up memory, time and file sizes before it does its work."""

import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from .entry import Refused

_FAILED, _MEMORY = 3, 4
"""Exit codes of a child."""

_REASONS = {
    "memory": ("size", "reading it needs more memory than a run may take"),
    "time": ("score", "reading and scoring it took longer than a run may take"),
    "crash": ("format", "it could not be read to its end"),
}


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
    """What `work` returns, from a process of its own. Raises Refused where the process does not get there."""
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            code = _FAILED
            try:
                _bound(limits)
                answer.write(work())
                answer.flush()
                code = 0
            except MemoryError:
                code = _MEMORY
            finally:
                os._exit(code)
        os.setpgid(child, child)
        ending = "time"
        ends, status = time.monotonic() + limits.wall_s, None
        try:
            while status is None and time.monotonic() < ends:
                done, found = os.waitpid(child, os.WNOHANG)
                if done:
                    status = found
                else:
                    time.sleep(0.01)
        finally:
            if status is None:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
        if status is not None:
            ending = _ending(status)
        if ending != "done":
            raise Refused(*_REASONS[ending])
        answer.seek(0)
        return answer.read()


def _ending(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return {0: "done", _MEMORY: "memory"}.get(os.WEXITSTATUS(status), "crash")
    by = os.WTERMSIG(status)
    if by in (signal.SIGXCPU, signal.SIGKILL):
        return "time"
    return "memory" if by == signal.SIGABRT else "crash"


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
