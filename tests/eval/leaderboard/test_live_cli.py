"""Live runs on the command line of the leaderboard."""

from collections.abc import Callable
from pathlib import Path

import pytest

from robustbench_tc import schema
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.desk import Desk
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.live_data import LiveAsked
from robustbench_tc.eval.leaderboard.store import Store

from ...conftest import Done
from . import desks

Rbtc = Callable[..., Done]


def test_a_live_run_is_checked_listed_repeated_and_made_again(
    rbtc: Rbtc,
    asked: Asked,
    live_asked: LiveAsked,
    live_run: Path,
    live_release: Path,
    release: Path,
    tmp_path: Path,
) -> None:
    done = rbtc("leaderboard", "submit-check", live_run, "--json")
    assert done.code == 0, done.err
    found = schema.loads(done.out)
    assert found["submission"]["kind"] == "live" and found["live"]["episodes"] == len(live_asked.data.rows)
    done = rbtc("leaderboard", "submit-check", live_run, "--live-dataset", live_release)
    assert done.code == 0 and "Replayed without the model" in done.out and "silent_no_op" in done.out
    store = tmp_path / "results"
    desk = Desk(Store(store), desks.InProcess(asked, Limits(), live_asked), Limits())
    one = desks.listed(desk, live_run)
    here = ("--store", store)
    done = rbtc(
        "leaderboard", "verify", one, "--base-url", "http://x/v1", *here, "--live-dataset", live_release
    )
    assert done.code != 0 and "no endpoint can be matched to a live run" in done.err
    done = rbtc("leaderboard", "verify", one, "--run", live_run, *here, "--dataset", release)
    assert done.code != 0 and "is a live run: it is verified by playing it again" in done.err
    done = rbtc("leaderboard", "verify", one, "--run", live_run, *here, "--live-dataset", live_release)
    assert done.code == 0 and "faulted episodes, success" in done.out, done.err
    done = rbtc("leaderboard", "rebuild", "--dataset", release, "--live-dataset", live_release, *here)
    assert done.code == 0 and "1 submissions are the same" in done.out, done.out + done.err
    done = rbtc("leaderboard", "hide", one, "--reason", "a test", *here)
    assert done.code == 0, done.err


def test_a_wrong_live_dataset_is_one_line(rbtc: Rbtc, live_run: Path, release: Path, tmp_path: Path) -> None:
    for words in (
        ("rebuild", "--dataset", release, "--live-dataset", release, "--store", tmp_path / "results"),
        ("submit-check", live_run, "--live-dataset", tmp_path / "nothing"),
        ("submit-check", live_run, "--live-dataset", release),
    ):
        done = rbtc("leaderboard", *words)
        assert done.code != 0 and "Traceback" not in done.err and done.err.strip(), words


def test_a_live_dataset_stands_beside_another(
    rbtc: Rbtc, live_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = rbtc("leaderboard", "serve", "--live-dataset", live_release)
    assert done.code != 0 and "--live-dataset stands beside a --dataset" in done.err
