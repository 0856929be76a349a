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

import numpy as np
import pytest
from benchmarks import samples

from robustbench_tc.eval import inputs
from tests.agent_server import serving

from .conftest import ROOT
from .hub import WRITER, Hub

README = ROOT / "README.md"

MODEL = "http://localhost:8000/v1"
"""Where the README's model is: here it is on a port that is free."""

NOT_RUN = {
    "uvx --from robustbench-tc": "tests/test_package.py runs the quickstart of the installed wheel",
    "source .venv/bin/activate": "the tests' own environment is the one",
}
"""Beginnings of the commands that are not run here, with the reason."""

EXITS = {"--save-baseline": 1, "--against": 3, "rbtc probe": 1}
"""What stands in the commands that do not end with 0; the reference agent knows no question but its rows."""


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


def test_it_is_read_in_a_minute() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 112


def test_every_command_and_snippet_does_what_it_says(shell: Shell) -> None:
    ran = []
    with ExitStack() as stack:
        for language, text in blocks():
            if language == "python":
                shell.run([sys.executable, "-c", text])
                ran.append(text)
            for command in commands(text) if language == "sh" else ():
                if MODEL in command:
                    rows = inputs.load_samples(str(shell.folder / "robustbench-tc")).rows
                    shell.model = stack.enter_context(serving("name-biased", rows))
                if command.startswith("make "):
                    plan = ["make", "-n", *command.split()[1:]]
                    subprocess.run(plan, cwd=ROOT, check=True, capture_output=True)
                elif not command.startswith(tuple(NOT_RUN)):
                    code = next((code for option, code in EXITS.items() if option in command), 0)
                    shell.run(command, code)
                    ran.append(command)
    assert len(ran) >= 15
    assert (shell.folder / "report" / "report.html").is_file()
    dataset = str(shell.folder / "robustbench-tc")
    assert {size: samples.requests(dataset, size) for size in samples.SIZES} == {
        size: asked for size, (asked, _) in table().items()
    }


def test_the_first_result_is_the_one_that_is_shown(shell: Shell) -> None:
    (shown,) = (text for language, text in blocks() if not language and "95 % interval" in text)
    printed = shell.run("rbtc quickstart --out out")
    assert "the world is wrong; the user was told: done" in printed

    assert len(printed.splitlines()) <= 25, "a screenful"
    assert shown.strip() in printed


def table() -> dict[int, tuple[int, int]]:
    """The table of samples: by their number the requests and the smallest drop in points."""
    lines = re.findall(r"^\| (?:all )?(\d+) \| ([\d,]+) \| (\d+) points \|$", README.read_text("utf-8"), re.M)
    return {int(size): (int(asked.replace(",", "")), int(drop)) for size, asked, drop in lines}


def test_the_smallest_drop_of_the_table_is_seen_four_times_out_of_five() -> None:
    assert table().keys() == set(samples.SIZES)
    for size, (_, points) in table().items():
        random = np.random.default_rng(size)
        for share, least, most in ((1.0, 0.65, 1.0), (0.6, 0.0, 0.65)):
            seen = [samples.is_seen(size, share * points / 100, random) for _ in range(60)]
            assert least <= np.mean(seen) <= most, (size, share)


def test_what_is_not_run_is_there() -> None:
    everything = [command for language, text in blocks() if language == "sh" for command in commands(text)]
    for beginning in NOT_RUN:
        assert any(command.startswith(beginning) for command in everything), beginning
    for option in EXITS:
        assert any(option in command for command in everything), option
    assert shutil.which("bash")
