"""A process that may be killed: it gives up memory, time and file sizes before it does its work."""

import math
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from .limits import Limits
from .reading import Line

Ending = Literal["done", "memory", "time", "crash"]

_MEMORY, _FAILED = 3, 4
"""Exit codes of a child."""

_FORKING = threading.Lock()
"""One fork at a time: filelock refuses one that begins while another is under way."""


def in_child(work: Callable[[], None], limits: Limits, rows: int, most: int | None = None) -> Ending:
    """Forks, bounds the child, lets it work, and says how that ended. `rows`: of the dataset; `most`: seconds
    of processor time, by default those of so many rows."""
    most = _most(rows, limits) if most is None else most
    with _FORKING:
        child = os.fork()
    if child == 0:
        code = _FAILED
        try:
            os.setsid()
            bound(limits, rows, most)
            work()
            code = 0
        except MemoryError:
            code = _MEMORY
        finally:
            os._exit(code)
    ends = time.monotonic() + limits.wall_per_cpu * most
    usual, patient = limits.usual_s(rows), True
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if patient and _used_s(child) > usual:  # the others first, from now on
            patient = False
            os.setpriority(os.PRIO_PROCESS, child, 19)
        if time.monotonic() > ends:
            _kill(child)
            os.waitpid(child, 0)
            return "time"
        time.sleep(0.01)
    if os.WIFSIGNALED(status):
        killed_by_clock = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        return "time" if killed_by_clock else "memory" if os.WTERMSIG(status) == signal.SIGABRT else "crash"
    return {0: "done", _MEMORY: "memory"}.get(os.WEXITSTATUS(status), "crash")  # type: ignore[return-value]


def _kill(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:  # it hangs before it has a group of its own
        os.kill(child, signal.SIGKILL)


def _used_s(child: int) -> float:
    """Seconds of processor time that a process has had; 0 where the system does not say."""
    try:
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bound(limits: Limits, rows: int, most: int) -> None:
    """Gives up, for this process and for good, what an upload does not need.

    Processor time is that of one short answer a row; `answer` asks for more once it has seen that there are
    more, or longer ones.
    """
    try:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:  # no Linux: the other limits have to do
        now = None
    if now is not None:
        _limit(resource.RLIMIT_AS, now + limits.memory_bytes)
    _limit(resource.RLIMIT_CPU, most)
    at_first(limits.cpu_of(rows))
    _limit(resource.RLIMIT_FSIZE, 2 * limits.decoded_bytes)
    _limit(resource.RLIMIT_NOFILE, 128)
    _limit(resource.RLIMIT_CORE, 0)


def _most(rows: int, limits: Limits) -> int:
    return limits.cpu_of(rows * limits.repeats, math.inf)


def cpu_for(lines: Sequence[Line], limits: Limits) -> int:
    """Seconds of processor time for these answers: by their number, and by the length of what is parsed."""
    chars = 0
    for line in lines:
        chars += len(line.raw_output or "") + len(line.first_output or "")
        calls = (*(line.tool_calls or ()), *(line.first_tool_calls or ()))
        chars += sum(len(call.arguments) for call in calls)
    return limits.cpu_of(len(lines), chars)


def _limit(what: int, amount: int) -> None:
    _, hard = resource.getrlimit(what)
    bounded = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
    resource.setrlimit(what, (bounded, bounded))


def at_first(seconds: int | None = None) -> None:
    """Processor time up to now: may be raised again, up to what `bound` left. None: all of that."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (hard if seconds is None else min(seconds, hard), hard))
