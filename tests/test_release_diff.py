"""`rbtc diff`: which rows two versions disagree about, and which of it can move a score."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustbench_tc import schema
from robustbench_tc.release.diff import Diff, diff

from .conftest import Done
from .refusals import refuses
from .released import small_build

Edit = Callable[[list[dict[str, Any]]], None]


@pytest.fixture(scope="module")
def a(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_build(tmp_path_factory.mktemp("a") / "robustbench-tc")


def edited(a: Path, b: Path, config: str, edit: Edit) -> Path:
    """A copy of `a` in which the rows of one config went through `edit`."""
    shutil.copytree(a, b, dirs_exist_ok=True)
    path = next((b / config).glob("*.parquet"))
    table = pq.read_table(path)
    rows = table.to_pylist()
    edit(rows)
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)
    return b


def only(found: Diff) -> Any:
    """The one config that differs."""
    (config,) = [config for config in found.configs if not config.is_equal]
    return config


def test_a_version_equals_itself_whatever_its_files_look_like(a: Path, tmp_path: Path) -> None:
    found = diff(a, edited(a, tmp_path / "b", "CD_AB", lambda rows: rows.reverse()))
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
    found = diff(a, edited(a, tmp_path / "b", "CD_AB", lambda rows: rows[3].update({field: value})))
    config = only(found)
    (change,) = config.changed
    assert (config.config, change.fields, change.moves_scores) == ("CD_AB", (field,), moves)
    assert found.moves_scores is moves


def test_added_and_removed_rows_move_scores(a: Path, tmp_path: Path) -> None:
    gone: list[str] = []
    config = only(diff(a, edited(a, tmp_path / "b", "CD_AB", lambda rows: gone.append(rows.pop(0)["id"]))))
    assert config.removed == tuple(gone) and config.moves_scores
    config = only(diff(tmp_path / "b", a))
    assert config.added == tuple(gone) and config.moves_scores


def test_a_repeated_id_hides_no_row(a: Path, tmp_path: Path) -> None:
    config = only(diff(a, edited(a, tmp_path / "b", "CD_AB", lambda rows: rows.append(rows[0]))))
    assert config.after == config.before + 1 and len(config.added) == 1


def test_equal_rows_whose_clean_tools_changed_can_move_scores(a: Path, tmp_path: Path) -> None:
    changed: list[str] = []

    def edit(rows: list[dict[str, Any]]) -> None:
        tools = schema.loads(rows[0]["tools"])
        tools[0]["parameters"]["required"] = []
        rows[0]["tools"] = schema.dumps(tools)
        changed.append(rows[0]["clean_id"])

    found = diff(a, edited(a, tmp_path / "b", "clean", edit))
    by_name = {config.config: config for config in found.configs}
    assert len(by_name["clean"].changed) == 1 and not by_name["clean"].reanchored
    for code in ("realistic_typos", "CD_AB", "transient_timeout"):
        assert by_name[code].reanchored == (f"{changed[0]}::{code}",)
        assert not by_name[code].changed and by_name[code].moves_scores


def test_tables_differ_by_their_rows_and_move_nothing(a: Path, tmp_path: Path) -> None:
    def edit(rows: list[dict[str, Any]]) -> None:
        rows[0]["verdict"] = "partly"

    found = diff(a, edited(a, tmp_path / "b", "evidence", edit))
    config = only(found)
    assert len(config.added) == len(config.removed) == 1
    assert config.table and not found.moves_scores


def test_a_config_that_only_one_version_has_is_all_added(a: Path, tmp_path: Path) -> None:
    shutil.copytree(a, tmp_path / "b")
    shutil.rmtree(tmp_path / "b" / "CD_AB")
    config = only(diff(tmp_path / "b", a))
    assert config.before == 0 and len(config.added) == config.after > 0


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
    config = only(diff(tmp_path / "a", tmp_path / "b"))
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
    b = edited(a, tmp_path / "b", "CD_AB", lambda rows: rows[0].update(tools="[]"))

    def said(*arguments: object) -> str:
        done = rbtc("diff", *arguments)
        assert done.code == 0 and done.err == ""
        return done.out

    assert "hold the same rows" in said(a, a)
    assert "can move scores; 6 of 7 configs are equal" in said(a, b)
    found = json.loads(said(a, b, "--json"))
    assert found["moves_scores"] is True
    assert found["configs"][0]["changed"][0]["fields"] == ["tools"]
