"""The marts: documentation, the paper's table, agreement with the Python statistics, refusals."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustbench_tc import schema
from robustbench_tc.builders.plain import published
from robustbench_tc.eval import paper
from robustbench_tc.eval.stats import runs
from robustbench_tc.sql import query as module
from robustbench_tc.sql.query import Inputs, connect, marts, query

from ..eval.synthetic_runs import clean_ids, coin, pairs, write_run
from ..refusals import refuses
from .live_runs import live_run, live_scores

CELLS = paper.CELLS
SQL = Path(module.__file__).parent
VIEWS = ("stg_", "int_", "no_", "macro_")
SHELL = ("setup.sql", "with_runs.sql")


def rows(name: str, inputs: Inputs) -> list[dict[str, Any]]:
    return query(name, inputs).to_pylist()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_run(tmp_path_factory.mktemp("runs") / "a", coin(1)))


# --- files --------------------------------------------------------------------------------------------


def test_every_mart_is_documented_and_every_documented_mart_exists() -> None:
    files = {p.stem for p in SQL.glob("*.sql") if not p.name.startswith(VIEWS) and p.name not in SHELL}
    assert files == set(marts())


@pytest.mark.parametrize("name", sorted(marts()))
def test_documented_columns_are_those_produced(name: str, run: str, tmp_path: Path) -> None:
    mart = marts()[name]
    if mart.needs == "cells":
        assert query(name, Inputs(paper=CELLS)).column_names == list(mart.columns)
    given = str(live_run(tmp_path / "live", live_scores(1))) if mart.needs == "live" else run
    assert query(name, Inputs(runs=[given])).column_names == list(mart.columns)
    assert mart.description and all(mart.columns.values())


def test_every_file_is_lower_case_and_ends_in_its_final_cte() -> None:
    for path in SQL.glob("*.sql"):
        code = re.sub(r"--.*|'(?:[^']|'')*'", "", path.read_text())
        assert not re.search(r"\b(SELECT|FROM|WITH|WHERE|GROUP|JOIN|CASE)\b", code), path.name
        if path.name not in SHELL and not path.name.startswith(("no_", "macro_")):
            assert re.search(r"\bfinal as \(", code) and re.search(
                r"\bfrom final\b[\w\s.:,()]*;\s*$", code
            ), path


def test_no_json_is_typed_by_guessing(run: str) -> None:
    for path in SQL.glob("*.sql"):
        text = path.read_text()
        assert "_auto" not in text and "json_transform" not in text and "json_structure" not in text, (
            path.name
        )
        if "read_json" in text or "read_csv" in text:
            assert "columns = {" in text, path.name
    with connect(Inputs(runs=[run])) as connection:
        kinds = {name: kind for name, kind, *_ in connection.execute("describe stg_predictions").fetchall()}
    assert {kinds[name] for name in ("calls", "first_tool_calls", "raw_output")} == {"VARCHAR"}


def test_the_stand_ins_have_the_columns_of_what_they_stand_for(run: str, tmp_path: Path) -> None:
    def columns(view: str, inputs: Inputs) -> list[tuple[str, str]]:
        with connect(inputs) as connection:
            return [(name, kind) for name, kind, *_ in connection.execute(f"describe {view}").fetchall()]

    live = str(live_run(tmp_path / "live", live_scores(1)))
    release = str(release_of(tmp_path / "release", pairs(clean_ids())))
    real = Inputs(runs=[run, live], release=release, paper=CELLS)
    for view in ("stg_runs", "stg_predictions", "stg_paper_cells", "stg_release", "stg_live"):
        assert columns(view, Inputs()) == columns(view, real), view


def expanded(path: Path) -> str:
    """A shell file with its `.read` lines replaced by what they read."""
    lines = []
    for line in path.read_text().splitlines():
        found = re.fullmatch(r"\.read sql/(\w+\.sql)", line)
        lines.append(expanded(SQL / found.group(1)) if found else line)
    return "\n".join(lines)


def test_the_shell_files_serve_every_mart_without_any_python(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SQL.resolve().parent)
    with duckdb.connect() as connection:
        connection.execute(expanded(SQL / "setup.sql"))
        for name, mart in marts().items():
            if mart.needs == "cells":
                found = connection.sql((SQL / f"{name}.sql").read_text())
                assert found.columns == list(mart.columns)
                assert found.fetchall()
        connection.execute("set variable runs = ?", [[run]])
        connection.execute(expanded(SQL / "with_runs.sql"))
        for name, mart in marts().items():
            found = connection.sql((SQL / f"{name}.sql").read_text())
            assert found.columns == list(mart.columns)
        assert {row[0] for row in connection.sql("select distinct dataset from int_cells").fetchall()} == {
            "ffffffff"
        }


# --- the paper ----------------------------------------------------------------------------------------


def test_the_paper_stands_beside_a_run_and_is_never_its_baseline(run: str) -> None:
    both = Inputs(runs=[run], paper=CELLS)
    assert {row["dataset"] for row in rows("table2", both)} == {"ffffffff", "paper"}
    assert {row["dataset"] for row in rows("gap_closure", both)} == {"paper"}
    assert rows("gap_closure", Inputs(runs=[run])) == []


# --- runs ---------------------------------------------------------------------------------------------


def test_a_row_without_an_answer_is_a_gap(tmp_path: Path) -> None:
    made = coin(1)
    hole = ("apibank__level1_20", "TD")
    folder = str(write_run(tmp_path / "a", lambda c, t: None if (c, t) == hole else made(c, t)))
    [row] = rows("table2", Inputs(runs=[folder]))
    assert (row["perturbed"], row["delta_reward"], row["retention"]) == (None, None, None)
    assert row["delta_action"] is not None
    assert row["gaps"] == "1 rows have no verdict"
    [allowed] = rows("table2", Inputs(runs=[folder], allow_missing=True))
    assert allowed["perturbed"] is not None and allowed["gaps"] == row["gaps"]
    coverage = {r["type_code"]: r for r in rows("coverage", Inputs(runs=[folder]))}
    assert (coverage["TD"]["verdicts"], coverage["TD"]["request_errors"]) == (147, 1)


def test_a_type_that_was_never_asked_is_a_gap(tmp_path: Path) -> None:
    some = [pair for pair in pairs(clean_ids()) if pair[1] not in ("CD", "TD")]
    folder = str(write_run(tmp_path / "a", coin(1), some, record={"expected": len(some) + 7}))
    [row] = rows("table2", Inputs(runs=[folder]))
    assert (row["perturbed"], row["delta_reward"]) == (None, None)
    assert row["gaps"] == "2 types have no rows; 7 predictions were never made"


def release_of(folder: Path, wanted: list[tuple[str, str]]) -> Path:
    """A release folder with these rows, and a table of another kind beside them."""
    for code in {code for _, code in wanted}:
        samples = [
            schema.Sample(
                id=f"{clean_id}::{code}",
                clean_id=clean_id,
                type_code=code,
                source=clean_id.split("__")[0],
                category="level1",
                messages=(schema.Message("user", "first"), schema.Message("user", f"asked of {clean_id}")),
                tools=(),
                golden_answers=(),
                output_format="react",
            )
            for clean_id, found in wanted
            if found == code
        ]
        (folder / code).mkdir(parents=True)
        pq.write_table(
            schema.arrow_table(map(published, samples), schema.PublishedSample),
            folder / code / "test-00000-of-00001.parquet",
        )
    (folder / "known_issues").mkdir()
    issues = pa.table({"number": [1], "source": ["x"], "clean_id": ["x__1"]})
    pq.write_table(issues, folder / "known_issues" / "test-00000-of-00001.parquet")
    return folder


def test_a_release_names_the_rows_that_a_run_lacks(tmp_path: Path, run: str) -> None:
    wanted = [*pairs(clean_ids()), ("bfcl_v3__level1_99", "CD"), ("bfcl_v3__level1_99", "clean")]
    release = str(release_of(tmp_path / "release", wanted))
    [row] = rows("table2", Inputs(runs=[run], release=release))
    assert (row["clean"], row["perturbed"], row["gaps"]) == (None, None, "2 rows have no verdict")
    coverage = {r["type_code"]: r for r in rows("coverage", Inputs(runs=[run], release=release))}
    assert (coverage["CD"]["expected"], coverage["CD"]["verdicts"]) == (149, 148)
    hardest = rows("hardest", Inputs(runs=[run], release=release, parameters={"top": "3"}))
    assert len(hardest) == 3
    assert hardest[0]["last_user_turn"] == f"asked of {hardest[0]['clean_id']}"


def test_the_verified_subset_is_the_python_one(tmp_path: Path) -> None:
    unstated = {clean_id for clean_id in clean_ids() if clean_id.endswith("_3")}

    def flags(clean_id: str, code: str) -> list[str]:
        return ["gold_not_stated"] if clean_id in unstated else ["several_steps"]

    folder = str(write_run(tmp_path / "run", coin(5), flags=flags))
    [outcomes] = runs.align([runs.read_run(folder)], subset="verified")
    assert set(outcomes.clean_ids) == set(clean_ids()) - unstated
    ours = {code: found.tally for code, found in outcomes.counts().items()}
    asked = Inputs(runs=[folder], subset="verified")
    assert {r["type_code"]: (r["correct"], r["n"]) for r in rows("accuracy", asked)} == ours
    everything = {r["type_code"]: r["n"] for r in rows("accuracy", Inputs(runs=[folder]))}
    assert everything["clean"] == 199 and ours["clean"][1] == 199 - len(unstated)


def test_a_release_and_a_subset_leave_no_row_missing(tmp_path: Path, run: str) -> None:
    release = str(release_of(tmp_path / "release", pairs(clean_ids())))
    [row] = rows("table2", Inputs(runs=[run], release=release, subset="paper"))
    assert row["gaps"] is None and row["perturbed"] is not None
    coverage = {
        r["type_code"]: r for r in rows("coverage", Inputs(runs=[run], release=release, subset="paper"))
    }
    assert (coverage["CD"]["expected"], coverage["CD"]["verdicts"]) == (102, 102)


def test_recovery_tells_the_five_ways_apart(tmp_path: Path) -> None:
    replies = {
        0: ("[f(a=1)]", '[{"name":"f","parameters":{}}]', True, "retried_right"),
        1: ("[f(a=2)]", '[{"name":"f","parameters":{}}]', False, "retried_wrong"),
        2: ("[g(a=1)]", '[{"name":"g","parameters":{}}]', False, "other_tool"),
        3: ("Done! The meeting has been booked.", "[]", False, "claimed_success"),
        4: ("I could not book it, the tool failed.", "[]", False, "gave_up"),
        5: ("", "[]", False, "gave_up"),
        6: ("Which day?", "[]", False, "no_first_call"),
    }
    ids = [f"bfcl_v3__level1_{i}" for i in replies]

    def reply(clean_id: str) -> tuple[str, str, bool, str]:
        return replies[int(clean_id.rsplit("_", 1)[1])]

    folder = write_run(
        tmp_path / "a",
        lambda c, t: reply(c)[2],
        [(c, "transient_timeout") for c in ids],
        raw_output=lambda c, t: reply(c)[0],
        calls=lambda c, t: reply(c)[1],
        first_output=lambda c, t: "[f(a=1)]",
        injected=lambda c, t: reply(c)[3] != "no_first_call",
    )
    [row] = rows("recovery", Inputs(runs=[str(folder)]))
    assert (row["n"], row["injected"]) == (7, 6)
    for outcome in ("retried_right", "retried_wrong", "other_tool", "claimed_success", "no_first_call"):
        assert row[outcome] == 1, outcome
    assert row["gave_up"] == 2


def test_costs_add_up_and_wrong_calls_are_marked(run: str) -> None:
    inputs = Inputs(runs=[run])
    assert all(r["wrong_call"] for r in rows("error_modes", inputs))
    costs = rows("costs", inputs)
    assert sum(r["prompt_tokens"] for r in costs) == 400 * len(pairs(clean_ids()))
    for r in costs:
        assert r["completion_tokens_per_correct"] == pytest.approx(40 * r["n"] / r["correct"])


# --- refusals and doors -------------------------------------------------------------------------------


def test_wrong_questions_are_refused_in_one_line(tmp_path: Path, run: str) -> None:
    another = str(release_of(tmp_path / "another", pairs(clean_ids({"own": 2}))))
    cases: list[tuple[str, Inputs, str]] = [
        ("tabel2", Inputs(paper=CELLS), "did you mean table2"),
        ("flips", Inputs(paper=CELLS), "name a run with --run"),
        ("table2", Inputs(runs=[str(tmp_path)]), "has no scores.parquet"),
        ("table2", Inputs(runs=[run], release=str(tmp_path)), "has no clean"),
        ("table2", Inputs(runs=[run], release=another), f"{another} has no sample of {run}"),
        ("hardest", Inputs(runs=[run], parameters={"topp": "3"}), "did you mean top"),
        ("table2", Inputs(runs=[run], parameters={"top": "3"}), "takes no parameters"),
        ("hardest", Inputs(runs=[run], parameters={"top": "many"}), "Could not convert"),
        (str(tmp_path / "mine.sql"), Inputs(paper=CELLS), "no SQL file"),
        ("table2", Inputs(runs=[f"{tmp_path}/a*"]), "takes * in a path as a pattern"),
        (str(SQL / "table2.sql"), Inputs(paper=CELLS, parameters={"x = 1; --": "1"}), "lower-case letters"),
    ]
    for name, inputs, line in cases:
        refuses(re.escape(line), query, name, inputs)


def test_doubled_predictions_are_refused(tmp_path: Path) -> None:
    some = pairs(clean_ids({"bfcl_v3": 3}))
    inputs = Inputs(runs=[str(write_run(tmp_path / "a", coin(1), [*some, some[5]]))])
    refuses(r"more than once, the first '.*' repeat 0 2 times", query, "table2", inputs)


def test_a_damaged_run_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", coin(1), pairs(clean_ids({"bfcl_v3": 3})))
    whole = (folder / "scores.parquet").read_bytes()
    (folder / "scores.parquet").write_bytes(whole[: len(whole) // 2])
    refuses("cannot be read", query, "table2", Inputs(runs=[str(folder)]))


def test_a_file_of_your_own_sees_the_same_views(tmp_path: Path, run: str) -> None:
    mine = tmp_path / "mine.sql"
    mine.write_text("select count(*) as n from int_pairs where component = 'reward';")
    assert rows(str(mine), Inputs(runs=[run])) == [{"n": 888}]
    mine.write_text("-- nothing")
    refuses("gives no rows", query, str(mine), Inputs(paper=CELLS))


def test_remote_folders_are_passed_on_and_not_looked_for_here() -> None:
    remote = "hf://datasets/somebody/runs@main/qwen3-8b-fc"
    assert module._folder(remote + "/", "scores.parquet", "the hint") == remote
    refuses("the hint", module._folder, "hf-datasets/somebody", "scores.parquet", "the hint")


def test_requests_at_the_same_time_do_not_disturb_each_other(run: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: query("table2", Inputs(runs=[run])), range(8)))
    assert all(table.equals(found[0]) for table in found)
