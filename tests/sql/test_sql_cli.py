"""`rbtc sql` as a user meets it: listing, formats, files, and one line for what is wrong."""

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from robustbench_tc.cli import sql as verb
from robustbench_tc.errors import UserError
from robustbench_tc.sql.query import marts

from ..eval.synthetic_runs import clean_ids, coin, pairs, write_run

runner = CliRunner(env={"COLUMNS": "200"})


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer(pretty_exceptions_enable=False)
    made.command()(verb.sql)
    return made


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("runs") / "a"
    return str(write_run(folder, coin(1), pairs(clean_ids({"bfcl_v3": 4}))))


def test_without_a_name_what_may_be_queried_is_listed(app: typer.Typer, tmp_path: Path, run: str) -> None:
    found = runner.invoke(app, [], catch_exceptions=False)
    assert found.exit_code == 0
    assert all(name in found.output for name in marts())
    listed = json.loads(runner.invoke(app, ["--format", "json"], catch_exceptions=False).output)
    assert list(listed["marts"]) == list(marts())
    mine = tmp_path / "mine.sql"
    for view, columns in listed["views"].items():
        assert all(f"{column} {kind}" in found.output for column, kind in columns.items())
        mine.write_text(f"select * from {view} limit 1")
        given = [str(mine), "--run", run, "--paper", "--format", "csv"]
        text = runner.invoke(app, given, catch_exceptions=False).output
        assert text.splitlines()[0].split(",") == list(columns)
    assert len(listed["views"]) >= 8


def test_a_view_that_does_not_exist_points_to_the_list(app: typer.Typer, tmp_path: Path) -> None:
    mine = tmp_path / "mine.sql"
    mine.write_text("select * from predictions")
    with pytest.raises(
        UserError, match=r"predictions does not exist.*\(`rbtc sql` lists what may be queried\)$"
    ):
        runner.invoke(app, [str(mine)], catch_exceptions=False)


def test_without_a_run_the_paper_answers_in_every_format(app: typer.Typer, tmp_path: Path) -> None:
    text = runner.invoke(app, ["table2", "--format", "csv"], catch_exceptions=False).output
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 21 and rows[0]["mode"] == "" and list(rows[0]) == list(marts()["table2"].columns)
    found = json.loads(runner.invoke(app, ["table2", "--format", "json"], catch_exceptions=False).output)
    assert [row["model"] for row in found] == [row["model"] for row in rows]
    out = tmp_path / "deep" / "table2.parquet"
    runner.invoke(app, ["table2", "--format", "parquet", "--out", str(out)], catch_exceptions=False)
    assert pq.read_table(out).column_names == list(rows[0])
    shown = runner.invoke(app, ["table2"], catch_exceptions=False).output
    assert "o4-mini" in shown and "21 rows" in shown and "dataset_version paper" in shown


def test_a_run_alone_and_with_the_paper_beside(app: typer.Typer, run: str) -> None:
    alone = json.loads(runner.invoke(app, ["table2", "--run", run, "--format", "json"]).output)
    assert [row["run"] for row in alone] == [run]
    both = json.loads(
        runner.invoke(app, ["table2", "--run", run + "/", "--paper", "--format", "json"]).output
    )
    assert len(both) == 22 and both[0] == alone[0]
    assert "delta_transition" in runner.invoke(app, ["table2", "--run", run]).output


def test_a_run_that_is_given_twice_is_refused(app: typer.Typer, run: str) -> None:
    caught = runner.invoke(app, ["table2", "--run", run, "--run", f"{run}/"]).exception
    assert isinstance(caught, UserError) and str(caught) == f"{run} is given twice"


def test_a_baseline_that_nobody_is_compared_with_is_said(app: typer.Typer, run: str) -> None:
    found = runner.invoke(app, ["gap_closure", "--run", run, "--format", "json"], catch_exceptions=False)
    assert json.loads(found.stdout) == [] and "--param baseline=MODEL" in found.stderr
    assert runner.invoke(app, ["gap_closure", "--format", "csv"], catch_exceptions=False).stderr == ""


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["table2", "--format", "xlsx"], "unknown format"),
        (["table2", "--format", "parquet"], "needs --out FILE"),
        (["gap_closure", "--param", "baseline"], "write it as name=value"),
        (["gap_closure", "--param", "base=x"], "did you mean baseline"),
        (["table2", "--run", "nowhere"], "has no scores.parquet"),
        (["table", "--paper"], "did you mean"),
    ],
)
def test_bad_input_is_one_line(app: typer.Typer, arguments: list[str], line: str) -> None:
    caught = runner.invoke(app, arguments).exception
    assert isinstance(caught, UserError) and line in str(caught) and "\n" not in str(caught)
