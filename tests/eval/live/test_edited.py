"""Edited datasets, and live things given to other commands: one line, and nothing is begun."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.api import score_live
from robustbench_tc.eval.live import inputs
from robustbench_tc.eval.live.evaluate import run_live
from robustbench_tc.live import At, Fault, LiveRow, Turn
from robustbench_tc.schema import Message
from robustbench_tc.sql.query import Inputs, marts, query
from robustbench_tc.worlds.handle import load_file

from ...conftest import Done
from ...refusals import refuses
from . import purses

WORLD = str(purses.FILE)

TASK: dict[str, tuple[dict[str, Any], str]] = {
    "state is a text": ({"initial_state": "x"}, "opens no world"),
    "state is null": ({"initial_state": None}, "opens no world"),
    "no turns": ({"turns": ()}, "no turns"),
    "no gold": ({"golden_calls": ()}, "golden_calls for 0"),
    "silent user": ({"turns": (Turn(()),), "golden_calls": ((),)}, "needs messages of the user"),
    "another speaker": (
        {"turns": (Turn((Message("assistant", "Hi"),)),), "golden_calls": ((),)},
        "needs messages of the user",
    ),
    "unknown tool added": (
        {"turns": (Turn((Message("user", "Hi"),), ("nope\n",)),), "golden_calls": ((),)},
        r"adds tools that the row has not: \['nope\\n'\]",
    ),
}

FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "no such tool": ({"fault": Fault(At(tool="nope"), "silent_no_op")}, "stands at a tool"),
    "another kind": ({"fault": Fault(At(write=1), "stale_read")}, "not of type live_silent_no_op"),
    "never": ({"fault": Fault(At(write=1), "silent_no_op", repeat=-5)}, "repeats -5 times"),
    "names no tool": ({"fault": Fault(At(write=1), "silent_no_op", tool="nope")}, "names a tool"),
    "another registry": ({"tools": ()}, "differs from its clean row"),
    "another id": ({"id": "../../x"}, "its id is not"),
}


def _pair() -> tuple[LiveRow, LiveRow]:
    clean = next(row for row in purses.rows() if row.clean)
    return clean, purses.faulted(clean, Fault(At(write=1), "silent_no_op"))


def test_a_pair_as_it_is_built_is_taken(tmp_path: Path) -> None:
    assert inputs.load(str(purses.write(tmp_path / "data", _pair()))).rows == _pair()


@pytest.mark.parametrize("edit", TASK)
def test_a_task_that_cannot_be_played_is_refused(tmp_path: Path, edit: str) -> None:
    changes, why = TASK[edit]
    rows = [msgspec.structs.replace(row, **changes) for row in _pair()]
    refuses(why, inputs.load, str(purses.write(tmp_path / "data", rows)))


@pytest.mark.parametrize("edit", FAULTS)
def test_a_faulted_row_that_does_not_fit_its_task_is_refused(tmp_path: Path, edit: str) -> None:
    changes, why = FAULTS[edit]
    clean, faulted = _pair()
    rows = [clean, msgspec.structs.replace(faulted, **changes)]
    refuses(why, inputs.load, str(purses.write(tmp_path / "data", rows)))


def test_commands_of_the_benchmark_name_those_for_live_runs(
    tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    data = purses.write(tmp_path / "data", _pair())
    run_live(data, agent="oracle", worlds=[WORLD], out=tmp_path / "run")
    assert rbtc("live", "score", tmp_path / "run", "--world", WORLD).code == 0
    out = tmp_path / "out"
    run = tmp_path / "run"
    for words in (
        ("summary", run),
        ("score", run),
        ("report", run, "--out", out),
        ("compare", run, run),
        ("failures", run),
        ("validate", run),
        ("audit", "predictions", run, "--dataset", data),
        ("audit", "predictions", run / "scores.parquet", "--dataset", data),
        ("audit", "predictions", run / "episodes.parquet", "--dataset", data),
    ):
        assert "rbtc live summary" in rbtc(*words).refusal
    assert "rbtc audit" in rbtc("validate", data).refusal
    assert (
        "rbtc live run"
        in rbtc("eval", data, "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--out", out).refusal
    )
    assert not out.exists()


def test_every_mart_without_rows_for_a_live_run_says_which_have_them(tmp_path: Path) -> None:
    data = purses.write(tmp_path / "data", _pair())
    run_live(data, agent="oracle", worlds=[WORLD], out=tmp_path / "run")
    score_live(tmp_path / "run", worlds=[WORLD])
    inputs_of = Inputs(runs=[str(tmp_path / "run")])
    for name, mart in marts().items():
        if mart.needs == "live":
            query(name, inputs_of)
            continue
        refuses(r"live runs: .*; live_recovery, live_side_effects have them", query, name, inputs_of)


def test_a_world_that_exits_when_it_is_imported_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "bye.py"
    file.write_text("raise SystemExit('bye')\n")
    refuses("cannot be imported: SystemExit: bye", load_file, file)
