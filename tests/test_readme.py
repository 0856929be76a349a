"""The README as a user follows it: each command and snippet as written, one after the other, in a new folder.

What the outside world would hold is on loopback: the model (a reference agent) and the Hub; upstream files
are mounted. Only the model's port is another one. `make` targets are planned, not made: `.ci/run` makes them.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from robustbench_tc.eval import inputs
from robustbench_tc.eval.agent_server import serving

from .conftest import ROOT
from .hub import WRITER, Hub

README = ROOT / "README.md"

MODEL = "http://localhost:8000/v1"
"""Where the README's model is: here it is on a port that is free."""

NOT_RUN = {
    "source .venv/bin/activate": "the tests' own environment is the one",
    "uv tool install .": "tests/test_package.py installs the wheel",
    "rbtc leaderboard serve": "serves until it is stopped; tests/eval/leaderboard/test_space.py",
}
"""Beginnings of the commands that are not run here, with the reason."""

REFUSED = {
    "rbtc leaderboard submit ": "the README's run holds 20 samples, a submission every row",
    "rbtc gate runs/desk": "the agent of the example loses more than it may",
}
"""Beginnings of the commands that end with 1, with the reason."""


def blocks() -> Iterator[tuple[str, str]]:
    """(language, text) of every fenced block."""
    yield from re.findall(r"^```(\w*)\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def commands(text: str) -> Iterator[str]:
    """The lines of a shell block without their comments."""
    yield from (line.partition(" #")[0].strip() for line in text.splitlines() if line.strip())


class Shell:
    """A folder in which one command follows the other."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment, self.model = folder, environment, MODEL

    def run(self, words: str | Sequence[str], code: int = 0) -> str:
        """What it printed. Fails the test where the exit code is another."""
        if isinstance(words, str):
            words = ["bash", "-c", words.replace(MODEL, self.model)]
        done = subprocess.run(
            list(words), cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == code, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout


@pytest.fixture
def shell(tmp_path: Path, shared: Path, hub: Hub) -> Shell:
    environment = hub.environment(WRITER, tmp_path / "home") | {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "PYTHONPATH": str(ROOT / "src"),
        "RBTC_SOURCES": str(shared / "sources"),
        "OPENAI_API_KEY": "",
    }
    (tmp_path / "work").mkdir()
    return Shell(tmp_path / "work", environment)


def test_every_command_and_snippet_does_what_it_says(shell: Shell) -> None:
    ran = []
    with ExitStack() as stack:
        for language, text in blocks():
            if MODEL in text and shell.model == MODEL:
                rows = inputs.load(str(shell.folder / "robustbench-tc")).rows
                shell.model = stack.enter_context(serving("name-biased", rows))
            if language == "python":
                shell.run([sys.executable, "-c", text.replace(MODEL, shell.model)])
                ran.append(text)
            for command in commands(text) if language == "sh" else ():
                if command.startswith("make "):
                    plan = ["make", "-n", *command.split()[1:]]
                    subprocess.run(plan, cwd=ROOT, check=True, capture_output=True)
                elif not command.startswith(tuple(NOT_RUN)):
                    shell.run(command, int(command.startswith(tuple(REFUSED))))
                    ran.append(command)
    assert len(ran) >= 15
    assert (shell.folder / "report" / "report.html").is_file()


def test_the_first_result_is_the_one_that_is_shown(shell: Shell) -> None:
    (shown,) = (text for language, text in blocks() if not language and "95 % interval" in text)
    printed = shell.run("rbtc quickstart --out out")
    assert "the world is wrong; the user was told: claims" in printed

    assert len(printed.splitlines()) <= 25, "a screenful"
    assert shown.strip() in printed


def test_what_is_not_run_is_there() -> None:
    everything = [command for language, text in blocks() if language == "sh" for command in commands(text)]
    for beginning in (*NOT_RUN, *REFUSED):
        assert any(command.startswith(beginning) for command in everything), beginning
    assert shutil.which("bash")
