"""Commands whose standard streams are closed, as some schedulers start them."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ..eval import small
from ..trees import tree

RBTC = "from robustbench_tc.cli import main; main()"


def closed(numbers: Iterable[int], *words: object) -> "subprocess.CompletedProcess[str]":
    def close() -> None:
        for number in numbers:
            os.close(number)

    command = [sys.executable, "-c", RBTC, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=close, timeout=300)


@pytest.mark.parametrize("numbers", [(1,), (0, 1, 2)])
def test_a_closed_stream_is_an_empty_one(numbers: tuple[int, ...], tmp_path: Path) -> None:
    release = small.write(tmp_path / "release", small.rows())
    run = tmp_path / "run"
    done = closed(numbers, "eval", release, "--agent", "never-calls", "--out", run)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and (run / "scores.parquet").is_file()
    wrong = closed(numbers, "eval", release, "--agent", "nobody", "--out", tmp_path / "other")
    assert wrong.returncode == 1 and "Traceback" not in wrong.stderr
    assert wrong.stdout == "" and wrong.stderr.count("\n") == (2 not in numbers)


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-c", RBTC, "list", "types"], stdout=theirs, stderr=subprocess.PIPE, text=True
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (1, "")


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    """What is printed would go into it."""
    words = ("build", "--profile", "bundled", "--types", "clean", "--num-proc", 2, "--out")
    for name, numbers in (("usual", ()), ("closed", (0, 1, 2))):
        (tmp_path / name).mkdir()
        done = closed(numbers, *words, tmp_path / name / "built")
        assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "usual" / "built") == tree(tmp_path / "closed" / "built")


def test_a_person_who_cannot_be_heard_leaves_the_game(tmp_path: Path, rbtc: Callable[..., object]) -> None:
    rbtc("build", "live", "--worlds", "orders", "--out", tmp_path / "live")
    done = closed((0,), "show", tmp_path / "live", "orders_1", "--play")
    assert done.returncode == 0 and "there is no verdict" in done.stdout, done.stderr
