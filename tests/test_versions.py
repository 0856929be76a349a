"""Two versions: which rows they disagree about, what of it moves scores, how far a number has to move."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from robustbench_tc import schema
from robustbench_tc.errors import UserError
from robustbench_tc.io import manifest
from robustbench_tc.release.diff import Diff, diff
from robustbench_tc.release.versions import STEPS, check_step, next_version

from .conftest import Done
from .refusals import refuses
from .released import released, small_build

Edit = Callable[[pa.Table], pa.Table]


@pytest.mark.parametrize(
    ("previous", "step", "enough"),
    [
        ("1.2.3", "none", "1.2.4"),
        ("1.2.3", "patch", "1.2.4"),
        ("1.2.3", "minor", "1.3.0"),
        ("1.2.3", "major", "2.0.0"),
        ("0.3.1", "minor", "0.4.0"),
        ("0.3.1", "major", "0.4.0"),
        ("1.1.0-rc.1", "patch", "1.1.0"),
        ("1.1.0-rc.1", "minor", "1.1.0"),
        ("1.1.0-rc.1", "major", "2.0.0"),
        ("2.0.0-rc.1", "major", "2.0.0"),
        ("1.0.1-rc.1", "minor", "1.1.0"),
    ],
)
def test_the_lowest_version_that_may_follow(previous: str, step: Any, enough: str) -> None:
    assert next_version(previous, step) == enough


plain = st.builds(lambda *n: ".".join(map(str, n)), *[st.integers(0, 99)] * 3)
ending = st.sampled_from(["", "-rc.1", "-alpha", "-0.3.7", "-x-y-z.1"])
versions = st.builds(str.__add__, plain, ending)


@given(versions, versions, st.sampled_from(STEPS))
def test_a_version_is_enough_exactly_from_the_lowest_on(given_: str, before: str, step: Any) -> None:
    import semver

    previous = manifest.Manifest(
        kind="toolrl-dr",
        version=before,
        created_at="",
        package_version="",
        licence="",
        data_sha256="",
        files={},
    )
    ours, theirs = semver.Version.parse(given_), semver.Version.parse(before)
    enough = ours > theirs and ours.finalize_version() >= semver.Version.parse(next_version(before, step))
    try:
        check_step(given_, previous, step)
    except UserError as refused:
        assert not enough and next_version(before, step) in str(refused)
    else:
        assert enough


@given(st.text(alphabet="0123456789.-+abcv\n١", max_size=12))
def test_a_version_that_is_taken_is_a_tag_that_git_takes(text: str) -> None:
    try:
        found = manifest.check_version(text)
    except UserError:
        return
    assert found.isascii() and ".." not in found and not found.endswith((".", ".lock")) and "+" not in found


# --- what the data say --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def a(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_build(tmp_path_factory.mktemp("a") / "robustbench-tc")


@pytest.fixture(scope="module")
def v1(a: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("v1") / "robustbench-tc"
    released(a, folder)
    return folder


def edited(a: Path, b: Path, config: str, edit: Edit) -> Path:
    shutil.copytree(a, b)
    path = next((b / config).glob("*.parquet"))
    pq.write_table(edit(pq.read_table(path)), path)
    return b


def of_rows(edit: Callable[[list[dict[str, Any]]], object]) -> Edit:
    """An edit of rows as plain values."""

    def edit_table(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        edit(rows)
        return pa.Table.from_pylist(rows, table.schema)

    return edit_table


def put(column: str, value: Any, at: int = 0) -> Edit:
    """One row, the first, gets another value."""
    return of_rows(lambda rows: rows[at].update({column: value}))


EDITS: dict[str, tuple[str, Edit, str]] = {
    "nothing": ("CD_AB", lambda table: table, "none"),
    "flags": ("CD_AB", put("flags", ["new"]), "patch"),
    "evidence": ("evidence", put("verdict", "partly"), "patch"),
    "words of the taxonomy": ("taxonomy", put("what_is_modified", "other words"), "patch"),
    "new column": ("CD_AB", lambda t: t.append_column("note", pa.array(["x"] * t.num_rows)), "patch"),
    "text": ("CD_AB", put("tools", "[]"), "minor"),
    "row": ("CD_AB", lambda table: table.slice(1), "minor"),
    "column gone": ("CD_AB", lambda table: table.drop(["flags"]), "major"),
    "column of another type": (
        "CD_AB",
        lambda t: t.set_column(t.schema.get_field_index("seed"), "seed", t["seed"].cast(pa.string())),
        "major",
    ),
    "type redefined": ("taxonomy", put("component", "reward"), "major"),
    "type redefined that neither has rows of": ("taxonomy", put("component", "reward", at=-1), "patch"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_change_has_its_step(name: str, a: Path, tmp_path: Path) -> None:
    config, edit, step = EDITS[name]
    found = diff(a, edited(a, tmp_path / "b", config, edit))
    assert found.step == step and found.plain()["step"] == step


def test_a_config_that_is_gone_is_major_and_a_new_one_minor(a: Path, tmp_path: Path) -> None:
    shutil.copytree(a, tmp_path / "b")
    shutil.rmtree(tmp_path / "b" / "CD_AB")
    assert diff(a, tmp_path / "b").step == "major"
    found = diff(tmp_path / "b", a)
    config = only(found)
    assert found.step == "minor" and config.before == 0 and len(config.added) == config.after > 0


def test_the_command_names_the_step_and_the_version(
    a: Path, v1: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    b = edited(a, tmp_path / "b", "CD_AB", put("tools", "[]"))
    assert (
        rbtc("data", "diff", v1, b).out.splitlines()[-1]
        == "minor step: B follows A as version 1.1.0 or higher"
    )
    assert rbtc("data", "diff", a, b).out.splitlines()[-1] == "minor step"
    gone = edited(a, tmp_path / "c", "CD_AB", EDITS["column gone"][1])
    assert "CD_AB changes its meaning: column flags" in rbtc("data", "diff", v1, gone).out
    assert "major: CD_AB" in rbtc("data", "diff", v1, gone).out.splitlines()
    plain = json.loads(rbtc("data", "diff", v1, gone, "--json").out)
    assert plain["step"] == "major" and plain["next_version"] == "2.0.0"


# --- `rbtc data diff`: which rows two versions disagree about, and which of it can move a score


def only(found: Diff) -> Any:
    """The one config that differs."""
    (config,) = [config for config in found.configs if not config.is_equal]
    return config


def test_a_version_equals_itself_whatever_its_files_look_like(a: Path, tmp_path: Path) -> None:
    found = diff(a, edited(a, tmp_path / "b", "CD_AB", of_rows(lambda rows: rows.reverse())))
    assert found.is_equal and not found.moves_scores
    assert {config.config for config in found.configs} == {
        *("clean", "realistic_typos", "CD_AB", "transient_timeout"),
        *("taxonomy", "evidence", "known_issues"),
    }


@pytest.mark.parametrize(
    ("field", "value", "moves"),
    [
        ("messages", [{"role": "user", "content": "another"}], True),
        ("tools", "[]", True),
        ("golden_answers", "[]", True),
        ("gold_tool_index", 7, True),
        ("output_format", "python_calls!", True),
        ("injected_error", "HTTP 418", True),
        ("flags", ["new"], False),
        ("changes", "[]", False),
        ("generator", "other@v1", False),
        ("category", "other", False),
        ("seed", 99, False),
    ],
)
def test_a_changed_column_is_named_and_judged(
    field: str, value: object, moves: bool, a: Path, tmp_path: Path
) -> None:
    found = diff(a, edited(a, tmp_path / "b", "CD_AB", put(field, value, at=3)))
    config = only(found)
    (change,) = config.changed
    assert found.asked_again == (field in ("messages", "tools", "output_format", "injected_error"))
    assert (config.config, change.fields, change.moves_scores) == ("CD_AB", (field,), moves)
    assert found.moves_scores is moves


def test_added_and_removed_rows_move_scores(a: Path, tmp_path: Path) -> None:
    gone: list[str] = []
    config = only(
        diff(a, edited(a, tmp_path / "b", "CD_AB", of_rows(lambda rows: gone.append(rows.pop(0)["id"]))))
    )
    assert config.removed == tuple(gone) and config.moves_scores and config.asked_again == 0
    config = only(diff(tmp_path / "b", a))
    assert config.added == tuple(gone) and config.moves_scores and config.asked_again == 1


def test_a_repeated_id_hides_no_row(a: Path, tmp_path: Path) -> None:
    config = only(diff(a, edited(a, tmp_path / "b", "CD_AB", of_rows(lambda rows: rows.append(rows[0])))))
    assert config.after == config.before + 1 and len(config.added) == 1


def test_equal_rows_whose_clean_tools_changed_can_move_scores(a: Path, tmp_path: Path) -> None:
    changed: list[str] = []

    def edit(rows: list[dict[str, Any]]) -> None:
        tools = schema.loads(rows[0]["tools"])
        tools[0]["parameters"]["required"] = []
        rows[0]["tools"] = schema.dumps(tools)
        changed.append(rows[0]["clean_id"])

    found = diff(a, edited(a, tmp_path / "b", "clean", of_rows(edit)))
    by_name = {config.config: config for config in found.configs}
    assert len(by_name["clean"].changed) == 1 and not by_name["clean"].reanchored
    for code in ("realistic_typos", "CD_AB", "transient_timeout"):
        assert by_name[code].reanchored == (f"{changed[0]}::{code}",)
        assert not by_name[code].changed and by_name[code].moves_scores


def test_tables_differ_by_their_rows_and_move_nothing(a: Path, tmp_path: Path) -> None:
    found = diff(a, edited(a, tmp_path / "b", "evidence", put("verdict", "partly")))
    config = only(found)
    assert len(config.added) == len(config.removed) == 1
    assert config.table and not found.moves_scores


def test_another_seed_moves_the_seeded_types_only(a: Path, tmp_path: Path) -> None:
    found = diff(a, small_build(tmp_path / "b", seed=1))
    assert {config.config for config in found.configs if config.moves_scores} == {"CD_AB"}
    seeds = [config for config in found.configs if config.config == "realistic_typos"]
    assert {change.fields for change in seeds[0].changed} == {("seed",)}


def test_training_rows_are_compared_by_what_a_model_is_trained_on(tmp_path: Path) -> None:
    def write(folder: Path, rows: list[dict[str, Any]]) -> None:
        path = folder / "full" / "train-00000-of-00001.parquet"
        path.parent.mkdir(parents=True)
        plain = [{**row, "extra_info": schema.dumps(row["extra_info"])} for row in rows]
        pq.write_table(pa.Table.from_pylist(plain), path)

    def row(index: int, text: str = "hello", **extra: Any) -> dict[str, Any]:
        return {
            "prompt": [{"role": "user", "content": text}],
            "reward_model": {"style": "rule", "ground_truth": "x"},
            "extra_info": {"clean_id": f"rlla__train_{index}", "copy": 0, "type_code": "CD", **extra},
        }

    write(tmp_path / "a", [row(0), row(1), row(2), row(3)])
    write(tmp_path / "b", [row(0), row(1, "bye"), row(2, generator="x"), row(3, offers=["t"])])
    config = only(found := diff(tmp_path / "a", tmp_path / "b"))
    assert config.asked_again is None and found.rows == 0
    judged = {change.id: change.moves_scores for change in config.changed}
    assert judged == {
        "train/rlla__train_1/0": True,
        "train/rlla__train_2/0": False,
        "train/rlla__train_3/0": True,
    }


def test_a_folder_without_data_is_one_line(a: Path, tmp_path: Path) -> None:
    refuses("holds no <config>/<split>", diff, a, tmp_path)
    (tmp_path / "clean").mkdir()
    (tmp_path / "clean" / "test-00000-of-00001.parquet").write_text("no parquet")
    refuses("not a readable Parquet file", diff, a, tmp_path)


def test_the_command_prints_a_table_or_json(a: Path, tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    b = edited(a, tmp_path / "b", "CD_AB", put("tools", "[]"))

    def said(*arguments: object) -> str:
        done = rbtc("data", "diff", *arguments)
        assert done.code == 0 and done.err == ""
        return done.out

    assert "hold the same rows" in said(a, a)
    assert "can move scores; 6 of 7 configs are equal" in said(a, b)
    assert "minor: CD_AB\n" in said(a, b)
    again = f"a run has to ask 1 of {diff(a, b).rows} rows again (rbtc eval --reuse carries the others over)"
    assert again in said(a, b)
    found = json.loads(said(a, b, "--json"))
    assert found["moves_scores"] is True
    assert found["configs"][0]["changed"][0]["fields"] == ["tools"]
