"""`rbtc …` in a process of its own: lines of a page in a shell, commands that a test interrupts or kills."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from .conftest import ROOT

RBTC = "from robustbench_tc.cli import main; main()"
LIMIT_S = 120.0
"""How long anything here may take on a busy machine; nothing is measured by it."""


def shell(folder: Path, command: str, code: int = 0, around: Mapping[str, str] = os.environ) -> str:
    """What a line of a page printed, run in a folder with this `rbtc`; it has to end with a code."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    env = {**around, "PATH": path, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == code, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


class Command:
    """A command in a session of its own, its output in a file."""

    def __init__(self, said: Path, *words: object, code: str = RBTC) -> None:
        self._said = said
        with said.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                # Whoever runs the tests in the background may have left the signal ignored.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )

    def until(self, reached: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
        deadline = time.monotonic() + limit_s
        while not reached():
            assert self.process.poll() is None, f"it ended before: {self._said.read_text()}"
            assert time.monotonic() < deadline, f"it never got there: {self._said.read_text()}"
            time.sleep(0.005)

    def interrupt(self) -> str:
        """Ctrl-C; what the command said after it, its last line."""
        os.killpg(self.process.pid, signal.SIGINT)
        code = self.process.wait(LIMIT_S)
        said = self._said.read_text()
        assert code == 130 and "Traceback" not in said, said
        with pytest.raises(ProcessLookupError):  # no process of the group was left behind
            for _ in range(500):
                os.killpg(self.process.pid, 0)
                time.sleep(0.02)
        return said.splitlines()[-1]

    def kill(self) -> None:
        self.process.kill()
        assert self.process.wait() < 0

    def end(self, limit_s: float = LIMIT_S) -> str:
        """What it said, once it ended well."""
        assert self.process.wait(limit_s) == 0, self._said.read_text()
        return self._said.read_text()


@contextmanager
def running(said: Path, *words: object, code: str = RBTC) -> Iterator[Command]:
    command = Command(said, *words, code=code)
    try:
        yield command
    finally:
        if command.process.poll() is None:
            os.killpg(command.process.pid, signal.SIGKILL)
            command.process.wait()


def journaled(run: Path) -> int:
    """The answers on disk."""
    journal = run / "journal.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0
