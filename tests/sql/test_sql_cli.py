"""`rbtc sql` as a user meets it: listing, formats, files, and one line for what is wrong."""

import csv
import io
import json
import re
import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from robustbench_tc import schema
from robustbench_tc.eval import paper
from robustbench_tc.sql.query import EXAMPLES, Inputs, connect, marts

from ..conftest import ROOT, Rbtc
from ..eval.synthetic_runs import clean_ids, coin, pairs, write_run
from .test_sql_marts import release_of

pytestmark = pytest.mark.usefixtures("new_folder")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_run(tmp_path_factory.mktemp("runs"), coin(1), pairs(clean_ids({"bfcl_v3": 4}))))


def test_without_a_query_marts_and_views_are_listed(rbtc: Rbtc, tmp_path: Path, run: str) -> None:
    found = rbtc("sql")
    assert found.code == 0
    assert all(name in found.out for name in marts())
    listed = json.loads(rbtc("sql", "--json").out)
    assert list(listed["marts"]) == list(marts())
    assert all(mart.group in found.out for mart in marts().values())
    data = release_of(tmp_path / "data", pairs(clean_ids({"bfcl_v3": 4})))
    (mine := tmp_path / "mine.sql").write_text("select * from stg_release limit 1")
    for number, asked in enumerate((mine, "from stg_release limit 1")):
        out = tmp_path / f"{number}.csv"
        rbtc("sql", asked, "--run", run, "--paper", "--dataset", data, "--out", out)
        assert out.read_text().splitlines()[0].split(",") == list(listed["views"]["stg_release"])
    with connect(Inputs(runs=[run], paper=paper.CELLS, release=str(data))) as connection:
        for view, columns in listed["views"].items():
            assert all(f"{column} {kind}" in found.out for column, kind in columns.items())
            assert connection.sql(f"from {view} limit 1").columns == list(columns)
    assert list(listed["views"]["stg_release"]) == list(schema.PublishedSample.__struct_fields__)
    assert len(listed["views"]) >= 8


def test_a_select_joins_the_dataset_that_the_run_names(rbtc: Rbtc, tmp_path: Path) -> None:
    rows, data, run = pairs(clean_ids({"bfcl_v3": 3})), tmp_path / "data", tmp_path / "run"
    release_of(data, rows)
    write_run(run, coin(1), rows, record={"dataset": str(data)})
    for example in EXAMPLES:
        assert example in rbtc("sql").out
        assert json.loads(rbtc(*shlex.split(example.replace("RUN", str(run)))[1:], "--json").out)
    of_the_docs = re.search(r'rbtc sql "(select [^"]*)"', (ROOT / "docs/sql.md").read_text())
    assert of_the_docs and rbtc("sql", of_the_docs[1], "--run", run).out
    joined = "select id, mode, query from stg_predictions join stg_release using (id) where mode = 'prompt'"
    shown = rbtc("sql", joined, "--run", run).out
    assert shown.count("prompt") == len(rows) and f"{len(rows)} rows" in shown, "a constant column stays"
    (data / "build_report.json").write_text('{"fingerprint": "0"}')
    assert "is not what" in rbtc("sql", joined, "--run", run).refusal
    moved = data.rename(tmp_path / "moved")
    assert "give its location with --dataset" in rbtc("sql", joined, "--run", run).refusal
    found = rbtc("sql", joined, "--run", run, "--dataset", moved, "--json").out
    assert len(json.loads(found)) == len(rows)
    assert "stg_release is one dataset" in rbtc("sql", "from stg_release").refusal


def test_a_view_that_does_not_exist_points_to_the_list(rbtc: Rbtc, tmp_path: Path) -> None:
    mine = tmp_path / "mine.sql"
    mine.write_text("select * from predictions")
    said = rbtc("sql", str(mine)).err
    assert re.search(r"predictions does not exist.*\(`rbtc sql` lists what may be queried\)$", said)


def test_without_a_run_the_paper_answers_in_every_format(rbtc: Rbtc, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for ending in ("csv", "json", "parquet"):
        assert "21 rows in" in rbtc("sql", "table2", "--out", tmp_path / "deep" / f"table2.{ending}").out
    rows = list(csv.DictReader(io.StringIO((tmp_path / "deep" / "table2.csv").read_text())))
    assert len(rows) == 21 and rows[0]["mode"] == "" and list(rows[0]) == list(marts()["table2"].columns)
    found = json.loads(rbtc("sql", "table2", "--json").out)
    assert [row["model"] for row in found] == [row["model"] for row in rows]
    assert json.loads((tmp_path / "deep" / "table2.json").read_text()) == found
    assert pq.read_table(tmp_path / "deep" / "table2.parquet").column_names == list(rows[0])
    shown = rbtc("sql", "table2").out
    assert "o4-mini" in shown and "21 rows" in shown and shown.count("paper") >= 21


def test_a_run_alone_and_with_the_paper_beside(rbtc: Rbtc, run: str) -> None:
    alone = json.loads(rbtc("sql", "table2", "--run", run, "--json").out)
    assert [row["run"] for row in alone] == [run]
    both = json.loads(rbtc("sql", "table2", "--run", run + "/", "--paper", "--json").out)
    assert len(both) == 22 and both[0] == alone[0]
    assert "delta_transition" in rbtc("sql", "table2", "--run", run).out


def test_a_run_that_is_given_twice_is_refused(rbtc: Rbtc, run: str) -> None:
    assert rbtc("sql", "table2", "--run", run, "--run", f"{run}/").refusal == (
        f"rbtc: {run} is given twice\n"
    )


def test_a_baseline_that_nobody_is_compared_with_is_said(rbtc: Rbtc, run: str) -> None:
    found = rbtc("sql", "gap_closure", "--run", run)
    assert found.out.splitlines()[-1] == "0 rows" and "--param baseline=MODEL" in found.err
    assert rbtc("sql", "gap_closure").err == ""


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["gap_closure", "--param", "base=x"], "did you mean baseline"),
        (["table2", "--run", "nowhere"], "has no scores.parquet"),
        (["table", "--paper"], "did you mean"),
    ],
)
def test_bad_input_is_one_line(rbtc: Rbtc, arguments: list[str], line: str) -> None:
    assert line in rbtc("sql", *arguments).refusal


def test_a_parameter_is_name_and_value(rbtc: Rbtc) -> None:
    done = rbtc("sql", "gap_closure", "--param", "baseline")
    assert done.code == 2 and "--param: 'baseline': write it as name=value" in done.err
