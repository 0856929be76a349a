"""The README as a user follows it: each command and snippet as written, one after the other, in a new folder.

What the outside world would hold is on loopback: the model (a reference agent) and the Hub; upstream files
are mounted. Only the model's port is another one. `make` targets are planned, not made: `.ci/run` makes them.
"""

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from benchmarks import samples

from robustbench_tc.eval import inputs
from tests.agent_server import serving

from .commands import shell
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


@pytest.fixture
def followed(tmp_path: Path, shared: Path, hub: Hub) -> Callable[..., str]:
    """Runs a command in the folder."""
    sources = str(shared / "sources")
    around = hub.environment(WRITER, tmp_path / "home") | {"RBTC_SOURCES": sources, "OPENAI_API_KEY": ""}
    return partial(shell, tmp_path, around=around)


def test_it_is_read_in_a_minute() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 112


def test_every_command_and_snippet_does_what_it_says(followed: Callable[..., str], tmp_path: Path) -> None:
    ran, model = [], MODEL
    with ExitStack() as stack:
        for language, text in blocks():
            if language == "python":
                followed(f"python -c {shlex.quote(text)}")
                ran.append(text)
            for command in commands(text) if language == "sh" else ():
                if MODEL in command:
                    rows = inputs.load_samples(str(tmp_path / "robustbench-tc")).rows
                    model = stack.enter_context(serving("name-biased", rows))
                if command.startswith("make "):
                    plan = ["make", "-n", *command.split()[1:]]
                    subprocess.run(plan, cwd=ROOT, check=True, capture_output=True)
                elif not command.startswith(tuple(NOT_RUN)):
                    code = next((code for option, code in EXITS.items() if option in command), 0)
                    followed(command.replace(MODEL, model), code)
                    ran.append(command)
    assert len(ran) >= 15
    assert (tmp_path / "report" / "report.html").is_file()
    dataset = str(tmp_path / "robustbench-tc")
    assert {size: samples.requests(dataset, size) for size in samples.SIZES} == {
        size: asked for size, (asked, _) in table().items()
    }


def test_the_first_result_is_the_one_that_is_shown(followed: Callable[..., str]) -> None:
    (shown,) = (text for language, text in blocks() if not language and "95 % interval" in text)
    printed = followed("rbtc quickstart --out out")
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
