"""The verbs of `rbtc leaderboard`: what they print, and one line for what is wrong."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from robustbench_tc.eval.leaderboard import entry, space

from ...conftest import Done
from ...trees import tree, write
from .conftest import RunOf

Rbtc = Callable[..., Done]


@pytest.fixture
def results(rbtc: Rbtc, release: Path, tmp_path: Path) -> Path:
    """A results repository in a folder."""
    folder = tmp_path / "results"
    done = rbtc("leaderboard", "init", folder, release)
    assert done.code == 0 and "status.yaml" in done.out, done
    return folder


def test_a_run_goes_from_a_folder_to_a_page(
    rbtc: Rbtc, results: Path, local_run_of: RunOf, tmp_path: Path
) -> None:
    run = local_run_of("name-biased")
    send = ("leaderboard", "submit", run, "--to", results, "--model", "acme/Alpha-3B", "--price", "0.1,0.4")
    dry = rbtc(*send, "--dry-run")
    assert dry.code == 0 and dry.out.endswith("nothing was sent\n"), dry
    assert "price_out: 0.4" in dry.out and "| perturbed |" in dry.out and "checking here" in dry.err
    assert "secret.example" in (run / "run.json").read_text() and "secret.example" not in dry.out
    assert not (results / "runs").exists()

    told = json.loads(rbtc(*send, "--json").out)
    name = told["entry"]["run"]
    whole = tree(results)
    for left in ("run.json", "submission.yaml"):  # as a submission leaves it that is killed
        (results / "runs" / name / left).unlink()
    assert (told["again"], json.loads(rbtc(*send, "--json").out)["again"]) == (False, True)
    assert tree(results) == whole
    assert {f"runs/{name}/{one}" for one in ("run.json", "predictions.parquet", "submission.yaml")} == {
        *told["files"]
    }

    checked = rbtc("leaderboard", "check", results)
    assert checked.code == 0 and checked.out == f"new: {name}\nentries: 1\n"
    report = json.loads(rbtc("leaderboard", "check", results, "--rescore", "--json").out)
    assert [entry["run"] for entry in report["new"]] == [name] and report["problems"] == []

    built = rbtc("leaderboard", "build", results, "--out", tmp_path / "site")
    assert built.code == 0 and str(tmp_path / "site" / "index.html") in built.out
    assert "acme/Alpha-3B" in (tmp_path / "site" / "index.html").read_text()

    vouch = ("leaderboard", "verify", results, name, "--repeated", run, "--account", "ann", "--json")
    assert json.loads(rbtc(*vouch).out)["tier"] == "reproduced"
    assert entry.parse_status((results / "status.yaml").read_bytes(), "").tiers[name].by == "ann"


@pytest.mark.parametrize("layout", ["ours", "paper"])
def test_predictions_in_one_file_are_a_run(
    layout: str, rbtc: Rbtc, results: Path, local_run_of: RunOf, tmp_path: Path
) -> None:
    run, lines = local_run_of("name-biased"), tmp_path / "lines.jsonl"
    assert rbtc("export", run, "--layout", layout, "--out", lines).code == 0
    send = ("leaderboard", "submit", "--to", results, "--model", "acme/Alpha-3B", "--dry-run", "--json")
    whole, imported = (json.loads(rbtc(*send, one).out)["entry"]["core"] for one in (run, lines))
    assert imported["counts"] == whole["counts"] and imported["metrics"] == whole["metrics"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("init {results} {release}", "is a results repository already"),
        ("init {new} {release} --live", "requires an argument"),
        ("submit {run} --to {new}", "has no status.yaml; is it a results repository?"),
        ("submit {results} --to {results}", "is not a run folder"),
        ("submit {broken} --to {results}", "run.json"),
        ("submit {run} --to {results} --weights ajar", 'Invalid value "ajar" for --weights'),
        ("submit {run} --to {results} --price 3", "write IN,OUT"),
        ("submit {run} --to {results} --org ../..", "is not accepted: "),
        ("submit {run} --to {results} --dataset {new}", "no dataset at"),
        ("submit {broken}/run.json --to {results} --model a/b", "not a row of the paper's layout"),
        ("check {new}", "has no status.yaml"),
        ("check {results} --pr 3", "is a folder, and has no pull requests"),
        ("build {new}", "has no status.yaml"),
        ("build {results} --out {mine}", "not a folder that rbtc wrote"),
        ("verify {results} a/b/20261120-000000000000 --repeated {run}", "has no entry of"),
        ("verify {results} a/b/20261120-000000000000", "name the repeated run with --repeated"),
        ("verify {results} x --repeated {run} --base-url http://127.0.0.1:9", "or an endpoint"),
    ],
)
def test_what_is_wrong_is_one_line(
    words: str, line: str, rbtc: Rbtc, results: Path, release: Path, local_run_of: RunOf, tmp_path: Path
) -> None:
    broken, mine = tmp_path / "broken", tmp_path / "mine"
    shutil.copytree(local_run_of("name-biased"), broken)
    write(tmp_path, {"broken/run.json": '{"settings": []}', "mine/thesis.txt": "years"})
    named = {"results": results, "release": release, "new": tmp_path / "new", "broken": broken, "mine": mine}
    done = rbtc("leaderboard", *words.format(run=local_run_of("name-biased"), **named).split())
    last = done.err.splitlines()[-1]
    assert done.code in (1, 2) and done.out == "" and "Traceback" not in done.err
    assert last.startswith("rbtc: ") and line in last, done.err
    assert not (tmp_path / "new").exists() and [*mine.iterdir()] == [mine / "thesis.txt"]


def test_a_space_has_every_room_that_its_commands_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space, "requirements", lambda: [])
    monkeypatch.setattr("importlib.metadata.version", lambda name: "6.0.0")
    space.space(tmp_path / "space", results="acme/results", title="A board")
    board = tmp_path / "space/robustbench_tc/eval/leaderboard"
    names = ", ".join(sorted({path.stem for path in board.glob("[a-z]*.py")} - {"app"}))
    code = (
        f"from robustbench_tc.eval.leaderboard import {names}; import robustbench_tc.cli.verbs; print(verify)"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "space")}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert str(board) in done.stdout, done.stderr
