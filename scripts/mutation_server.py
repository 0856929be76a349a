"""Runs pytest in one copy of the checkout again and again, each time in a fork of a process that has imported
what is slow to import: most mutants die within a second, and starting pytest takes longer than that.

It reads lines of JSON, [seconds, seconds of computing, arguments of pytest], and answers each with an exit
code, 124 where the tests did not end in time. What a run started ends with it.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

PRELOADED = (
    *("pytest", "hypothesis", "numpy", "pyarrow.parquet", "msgspec"),
    *("pandas", "great_expectations", "great_expectations.expectations", "datasets"),
)
"""Imported before the fork: nothing of the product, which may be the mutant. The second line takes 6 s."""

LOG = "mutation.log"
TIMED_OUT = 124


def run(arguments: list[str], timeout_s: float, computing_s: int) -> int:
    """The exit code of pytest in a fork, in a process group of its own."""
    child = os.fork()
    if child == 0:
        _child(arguments, computing_s)
    deadline = time.monotonic() + timeout_s
    pause = 0.01
    try:
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                return TIMED_OUT if code == -signal.SIGXCPU else code
            if time.monotonic() > deadline:
                return TIMED_OUT
            time.sleep(pause)
            pause = min(0.2, pause * 1.5)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended by itself
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # it was waited for above
            os.waitpid(child, 0)


def _child(arguments: list[str], computing_s: int) -> None:
    """Never returns."""
    code = 3
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (computing_s, resource.RLIM_INFINITY))
        log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.argv = ["pytest", *arguments]
        sys.path[0] = str(Path.cwd())

        import pytest

        code = int(pytest.main(arguments))
        sys.stdout.flush()
    finally:
        os._exit(code)


def main() -> None:
    """Until the end of the input, or SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # as the product sets it before it imports the package
    for name in PRELOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        timeout_s, computing_s, arguments = json.loads(line)
        sys.stdout.write(f"{run(arguments, timeout_s, computing_s)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
