"""An endpoint asked again: the same agent matches, another does not, and fresh rows are asked too."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from robustbench_tc.cli.leaderboard import app
from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs
from robustbench_tc.eval.agent_server import serving
from robustbench_tc.eval.leaderboard import matched
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.store import Store

from .made import run_folder
from .test_rebuild import listed


def test_an_endpoint_is_asked_again(bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matched, "ROWS", 60)
    asked = Asked.of(inputs.load(str(bundled)))
    store = Store(tmp_path / "results")
    one = listed(store, asked, run_folder(tmp_path / "run", "name-biased", asked, model="x"), "Alpha-3B")
    work = tmp_path / "work"
    command = ["verify", one, "--dataset", str(bundled), "--store", str(store.folder)]
    command += ["--work", str(work), "--model", "x"]
    plan = matched._plan(work, one)
    assert matched._plan(work, one) == plan
    with serving("silent", asked.rows) as url:
        found = CliRunner().invoke(app, [*command, "--base-url", url]).exception
    assert isinstance(found, UserError) and "does not match" in str(found), found
    assert store.verifications()[0] == {}
    shutil.rmtree(work / "again")  # the fresh rows stay: to build them costs the most
    rows = [*asked.rows, *inputs.load(str(work / "fresh")).rows]
    with serving("name-biased", rows) as url:
        done = CliRunner().invoke(app, [*command, "--base-url", url])
    assert done.exit_code == 0, (done.output, done.exception)
    said = " ".join(done.output.split())
    assert "another verdict in 0 of 60, a share of 0.000 to 0.050" in said and "not the model" in said
    made = store.verifications()[0][one]
    assert made.kind == "endpoint-matched" and made.matched is not None and made.matched.seed == plan.seed
    ids = matched.drawn(asked.rows, 7)
    assert len(set(ids)) == 60 and ids == matched.drawn(asked.rows, 7) != matched.drawn(asked.rows, 8)
    both = CliRunner().invoke(app, ["verify", one]).exception
    assert isinstance(both, UserError) and "--run, or an endpoint" in str(both)
