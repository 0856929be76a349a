"""A model's server while a block runs: started by its line, waited for, stopped whole.

The line runs below a guard, which is this module as a program. The guard ends everything that the line
started once its own standard input is closed: also where the process that holds the other end was killed.
"""

import fcntl
import os
import select
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path

from robustbench_tc.errors import UserError
from robustbench_tc.llm.endpoint import parse_address

GRACE_S = 20.0
"""How long a server may take to end by itself."""

SHOWN = 300
"""Characters of a server's line in a message."""


@contextmanager
def served(line: str, base_url: str, log: Path, patience_s: float) -> Iterator[None]:
    """Starts a server, and yields when it answers at `base_url`. What it says is added to `log`.

    One server runs for a log at a time: what an earlier process started is waited for until it has ended.
    Raises UserError where it ends, does not answer in time, or somebody else answers there.
    """
    url, command = parse_address(base_url).url, [sys.executable, "-m", __name__, *shlex.split(line)]
    with log.open("ab", buffering=0) as said:
        fcntl.flock(said, fcntl.LOCK_EX)  # held by all that the line starts, as their standard output
        if _answers(url):
            raise UserError(f"a server answers at {url} already: stop it, or give base_url without serve")
        said.write(f"$ {line}\n".encode())
        guard = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=said, stderr=said, start_new_session=True
        )
    try:
        end = time.monotonic() + patience_s
        while not _answers(url):
            if guard.poll() is not None or time.monotonic() > end:
                why = "the server ended" if guard.returncode else f"no answer at {url} in {patience_s:g} s"
                raise UserError(f"{why}: {_last(log)} (full log: {log})")
            time.sleep(0.2)
        yield
    finally:
        guard.communicate()  # closes its input


def _answers(url: str) -> bool:
    """Whether a server is there and well: a refusal, as of a missing key, is an answer too."""
    try:
        urllib.request.urlopen(f"{url}/models", timeout=5).close()
    except urllib.error.HTTPError as error:
        return error.code < 500
    except (OSError, HTTPException):
        return False
    return True


def _last(log: Path) -> str:
    """The last two lines that say something."""
    lines = log.read_bytes()[-10_000:].decode("utf-8", "replace").split("\n")
    return "; ".join([line.strip()[:SHOWN] for line in lines if line.strip()][-2:])


def guard(words: Sequence[str]) -> None:
    """Runs a command until it ends or standard input does; whatever it started ends with it."""
    command = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    while command.poll() is None and not select.select([sys.stdin], [], [], 0.2)[0]:
        pass
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        os.write(1, f"exit code {command.wait(GRACE_S)}\n".encode())
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    guard(sys.argv[1:])
