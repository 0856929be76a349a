"""The server behind a stdio door ends with its client, however the door ends."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .test_hostile import started

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
stays = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", stays])
with open("pids.part", "w") as file: file.write(f"{os.getpid()} {child.pid}")
os.rename("pids.part", "pids")
time.sleep(600)
"""
POLITE = "import sys, os\nopen('pids', 'w').write(str(os.getpid()))\nfor line in sys.stdin: pass"


def pids(folder: Path) -> list[int]:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(FileNotFoundError):  # not written yet
            if found := (folder / "pids").read_text().split():
                return list(map(int, found))
        time.sleep(0.05)
    raise AssertionError("the server did not start")


def alive(pid: int) -> bool:
    """Whether a process runs; a dead one that nobody has asked about yet is none."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def as_clients_do(process: subprocess.Popen[bytes]) -> None:
    """The official clients: the end of input, SIGTERM after two seconds, SIGKILL two seconds later."""
    assert process.stdin is not None
    process.stdin.close()
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(subprocess.TimeoutExpired):  # the next signal is harder
            process.wait(2)
            return
        process.send_signal(sign)


@pytest.mark.parametrize("server", [STUBBORN, POLITE], ids=["stubborn", "polite"])
@pytest.mark.parametrize(
    ("end", "code"), [("clients", 0), ("SIGINT", 130), ("SIGTERM", 0), ("SIGKILL", -signal.SIGKILL)]
)
def test_nothing_is_left_two_seconds_after_the_client(
    tmp_path: Path, server: str, end: str, code: int
) -> None:
    process = started(tmp_path, server)
    found = pids(tmp_path)
    begun = time.monotonic()
    if end == "clients":
        as_clients_do(process)  # the door ends before it is told to
    else:
        process.send_signal(getattr(signal, end))
    while any(map(alive, found)) and time.monotonic() < begun + 30:
        time.sleep(0.02)
    took = time.monotonic() - begun
    assert process.wait(30) == code
    for pid in filter(alive, found):
        os.kill(pid, signal.SIGKILL)
    assert took < 2.0
