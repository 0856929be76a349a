"""Ctrl-C, as a person presses it: a real SIGINT to the whole group of processes.

A long command says in one line what was kept, exits with 130, leaves nothing half written and no process
behind; run again it goes on.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ..commands import RBTC, journaled, running
from ..conftest import Done
from ..eval import small
from ..loopback import LoopbackServer
from ..trees import tree


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.write(tmp_path_factory.mktemp("release") / "robustbench-tc", small.rows())


def test_eval_keeps_every_answer_and_goes_on(
    release: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    run = tmp_path / "run"
    words = (
        "eval", release, "--model", "tiny", "--out", run, "--no-probe", "--no-early-stop", "--no-share",
        "--base-url",
    )  # fmt: skip
    with LoopbackServer(lambda body: "no call", delay_s=0.2) as server:
        with running(tmp_path / "said", *words, server.url, "--no-score", "--concurrency", 2) as command:
            command.until(lambda: journaled(run) >= 3)
            last = command.interrupt()
        asked = server.count
    found = re.fullmatch(r"rbtc: interrupted: (\d+) of (\d+) rows have their answers in (.+); (.+)", last)
    assert found and found[3] == str(run) and found[4] == "run the same command again to resume", last
    kept = journaled(run)
    assert 1 <= int(found[1]) <= kept < int(found[2]) and asked <= kept + 2
    assert pq.read_table(run / "predictions.parquet").num_rows == kept == int(found[1])
    with LoopbackServer(lambda body: "no call") as server:
        assert rbtc(*words, server.url).code == 0
        assert server.count == int(found[2]) - kept, "what was answered is not asked again"


def test_build_leaves_nothing_half_written(tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    place = tmp_path / "place"
    place.mkdir()
    words: tuple[object, ...] = ("build", "--profile", "bundled", "--out", place / "built", "--num-proc", 2)
    words = (*words, "--store", tmp_path / "store.jsonl")
    with running(tmp_path / "said", *words) as command:
        command.until(lambda: any(place.glob(".built*.rbtc-partial/clean/*")))
        last = command.interrupt()
    assert last.startswith(f"rbtc: interrupted: nothing was written to {place / 'built'}; ")
    assert last.endswith("; run the same command again")
    assert list(place.iterdir()) == []
    assert rbtc(*words, "--types", "clean").code == 0


AT_WORK = """
import importlib, sys, time
module, name, *sys.argv[1:] = sys.argv[1:]
def work(*_, **__):
    print("AT WORK", flush=True)
    time.sleep(600)
setattr(importlib.import_module("robustbench_tc." + module), name, work)
from robustbench_tc.cli import main
main()
"""
"""The command line as it is, but for one function, which never comes to its end."""


def test_the_others_say_it_too(release: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for place, words, kept in (
        (
            "cli._launch launch",
            "list types",
            "files are written whole or not at all; run the same command again",
        ),
        ("sql.query query", f"sql accuracy --run {out}", "run the same command again"),
        ("audits.gate audit", f"audit {release}", f"nothing was written to {release}"),
        ("release.freeze release", f"release {release} --version 1.0.0 --out {out}", f"written to {out}"),
    ):
        said = tmp_path / "said"
        with running(said, *place.split(), *words.split(), code=AT_WORK) as command:
            command.until(lambda: "AT WORK\n" in said.read_text())  # noqa: B023 (asked at once)
            last = command.interrupt()
        assert last.startswith("rbtc: interrupted: ") and kept in last, last


AT_A_QUERY = """
from robustbench_tc.sql import query
def work(*_, **__):
    with query.connect(query.Inputs()) as connection:
        print("AT WORK", flush=True)
        connection.execute("select sum(a.range * b.range % 7) from range(30000) a, range(30000) b")
query.query = work
from robustbench_tc.cli import main
main()
"""


def test_a_query_of_duckdb_is_interrupted(tmp_path: Path) -> None:
    """DuckDB makes a RuntimeError of a Ctrl-C that comes while it is at a query."""
    said = tmp_path / "said"
    with running(said, "sql", "accuracy", "--run", tmp_path, code=AT_A_QUERY) as command:
        command.until(lambda: "AT WORK\n" in said.read_text())
        time.sleep(0.5)  # DuckDB does not hear of an interrupt in the first moments of a query
        assert command.interrupt().startswith("rbtc: interrupted: ")


# --- Commands whose standard streams are closed, as some schedulers start them ------------------------


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
