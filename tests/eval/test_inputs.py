"""The rows to evaluate, from each of the three places, and the selection among them."""

import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustbench_tc import schema, taxonomy
from robustbench_tc.api.building import build_release
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.eval import inputs, record, row_files, verdicts
from robustbench_tc.eval.data import Selection
from robustbench_tc.io import parquet

from ..hub import WRITER, Hub
from ..known import INJECTED_ERRORS
from ..refusals import refuses
from . import answered, small


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return small.write(tmp_path / "release", small.rows())


# --- a release folder -----------------------------------------------------------------------------------


def test_a_release_folder_is_read_whole(release: Path) -> None:
    found = inputs.load_samples(str(release))
    assert [schema.dumps(row) for row in found.rows] == [schema.dumps(row) for row in small.rows()]
    assert (found.name, found.version, found.left_out) == (str(release), None, {})
    assert {row.type_code for row in found.anchors().values()} == {"clean"}
    assert all(anchor.id.startswith(i.split("::")[0]) for i, anchor in found.anchors().items())


def test_the_fingerprint_sees_content_and_not_order(release: Path) -> None:
    rows = small.rows()
    found = inputs.load_samples(str(release)).fingerprint()
    assert inputs.Dataset(name="x", rows=tuple(reversed(rows))).fingerprint() == found
    assert inputs.Dataset(name="x", rows=tuple(rows[:-1])).fingerprint() != found


def test_selections_narrow_and_keep_the_order(release: Path) -> None:
    data = inputs.load_samples(str(release))
    found = data.select(Selection(types=("clean", "CD"), sources=("apibank", "rotbench")))
    assert [row.id for row in found] == [
        row.id
        for row in data.rows
        if row.type_code in ("clean", "CD") and row.source in ("apibank", "rotbench")
    ]
    assert len(data.select(Selection(ids=("bfcl_v3__made_1",)))) > 10
    assert len(data.select(Selection(ids=("bfcl_v3__made_1::clean",)))) == 1


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(types=("CD_A",)), "unknown type in this dataset 'CD_A': did you mean CD_AB"),
        (Selection(sources=("bfcl",)), "unknown source 'bfcl': did you mean bfcl_v3"),
        (Selection(ids=("bfcl_v3__made_2::clean",)), "unknown row id .* did you mean bfcl_v3__made_1"),
        (Selection(types=("CD",), sources=("tooleyes",)), "no row of .* fits the selection"),
    ],
)
def test_a_wrong_selection_is_one_line(release: Path, selection: Selection, said: str) -> None:
    refuses(said, inputs.load_samples(str(release)).select, selection)


def test_what_is_no_dataset_of_ours_is_one_line(release: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    foreign = tmp_path / "foreign"
    (foreign / "clean").mkdir(parents=True)
    pq.write_table(pa.table({"text": ["a"]}), foreign / "clean" / "test-00000-of-00001.parquet")
    broken = small.write(tmp_path / "broken", small.clean_rows())
    path = broken / "clean" / "test-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:200])
    unanchored = small.write(tmp_path / "unanchored", [*small.clean_rows()[1:], *small.rows("CD_AB")[5:]])
    for name, revision, said in [
        (str(tmp_path / "nowhere"), None, "no dataset at"),
        (str(tmp_path / "empty"), None, "is not a RobustBench-TC dataset"),
        (str(foreign), None, "is not a dataset of this benchmark: it has no column id"),
        (str(broken), None, "is not a readable Parquet file"),
        (str(unanchored), None, "has no clean row to compare with"),
        (str(release), "v1", "--revision v1: .* is an unreleased build"),
        ("nobody/nothing", None, "nobody/nothing"),
    ]:
        refuses(said, inputs.load_samples, name, revision=revision)


def test_a_dataset_of_the_hub_is_evaluated_at_its_revision(release: Path, tmp_path: Path) -> None:
    upload = (
        "import sys; from huggingface_hub import HfApi; api = HfApi(); name = 'acme/robustbench-tc'; "
        "api.create_repo(name, repo_type='dataset'); "
        "api.upload_folder(repo_id=name, repo_type='dataset', folder_path=sys.argv[1]); "
        "api.create_tag(name, tag='v9.9.9', repo_type='dataset')"
    )
    ask = (
        "from robustbench_tc.eval import inputs; "
        "found = inputs.load_samples('acme/robustbench-tc', revision='v9.9.9'); "
        "print(found.fingerprint(), found.version, found.revision, flush=True); "
        "inputs.load_samples('acme/robustbench-tc', revision='v8')"
    )
    with Hub() as hub:
        environment = hub.environment(WRITER, tmp_path / "hf")
        python = [sys.executable, "-c"]
        subprocess.run([*python, upload, release], env=environment, check=True, capture_output=True)
        commit = hub.tags("datasets/acme/robustbench-tc")["v9.9.9"]
        asked = subprocess.run([*python, ask], env=environment, capture_output=True)
    assert asked.stdout.decode().split() == [
        inputs.load_samples(str(release)).fingerprint(),
        "None",
        commit,
    ]
    assert b"acme/robustbench-tc on the Hub has no revision 'v8'" in asked.stderr


# --- the paper's layout ---------------------------------------------------------------------------------


def example(**changes: Any) -> dict[str, Any]:
    row = {
        "id": "bfcl_v3__BFCL_v3_multiple__multiple_901",
        "benchmark": "bfcl_v3",
        "category": "multiple",
        "perturbation": {"type": "clean", "mdp_category": None},
        "conversation": [{"role": "user", "content": "How deep is the lake at Cape Example?"}],
        "tools": [
            {
                "name": "lake.depth",
                "description": "Depth.",
                "parameters": {
                    "type": "dict",
                    "properties": {"name": {"type": "string"}, "unit": {"type": "string"}},
                    "required": ["name"],
                },
            }
        ],
        "golden_answers": [{"name": "lake.depth", "parameters": {"name": "Cape Example", "unit": "m"}}],
        "eval_config": {},
        "source": {},
    }
    return row | changes


def write_lines(path: Path, *records: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_the_papers_example_file_is_read(shared: Path) -> None:
    found = inputs.load_samples(str(shared / "spec" / "paper" / "release_layout_example.jsonl"))
    clean, cd_nt = found.rows
    assert found.left_out == {"multi-turn row": 1}
    assert clean.id == "bfcl_v3__BFCL_v3_multiple__multiple_900::clean"
    assert clean.tools[0].parameters["type"] == "object"
    # The schema requires `name` only: flattening has lost that `unit` may be left out.
    assert clean.golden_answers[0][0].parameters == {
        "name": ["lighthouse at Cape Example"],
        "unit": ["metres", schema.OMIT],
    }
    assert (cd_nt.id, cd_nt.component) == ("apibank__level1_900::CD_NT", "reward")
    assert cd_nt.tools[0].parameters["properties"] == {"content": {"type": "string", "description": "Text."}}
    assert cd_nt.golden_answers[0][0].parameters == {"content": ["call Ana"]}
    assert found.anchors()[cd_nt.id] == cd_nt


def test_a_folder_of_the_papers_layout_is_read_by_type_and_its_losses_counted(tmp_path: Path) -> None:
    folder = tmp_path / "release" / "api_eval"
    think = {"name": "**Think", "description": "** Recall.", "parameters": {}}
    write_lines(
        folder / "clean.jsonl",
        example(),
        example(id="bfcl_v3__x__multi_turn_base_1", category="multi_turn_base"),
        example(
            id="apibank__level1_5",
            benchmark="apibank",
            conversation=[
                {"role": "system", "content": "Tools: …"},
                {"role": "user", "content": "<user>Hi</user>"},
            ],
            tools=json.dumps([json.dumps({"name": "Now", "parameters": None}), think]),
            golden_answers=json.dumps([json.dumps({"name": "Now", "parameters": "{}"})]),
        ),
        example(
            id="rotbench__Turn 1: Where?",
            benchmark="rotbench",
            conversation=[{"role": "user", "content": "Where?\nBegin!\n"}],
            tools=[
                {"name": "find", "parameters": {"town": "string"}},
                {"name": "ask_to_user", "parameters": {}},
            ],
            golden_answers=[
                {"name": "find", "parameters": {"town": "None"}},
                {"name": "ask_to_user", "parameters": {"question": "Which?"}},
            ],
        ),
    )
    write_lines(
        folder / "transient_timeout.jsonl",
        example(perturbation=json.dumps({"type": "transient_timeout", "mdp_category": "transition"})),
    )
    wrong = {"name": "lake.depth", "description": "", "parameters": {"pond": {"type": "string"}}}
    write_lines(
        folder / "same_name_C.jsonl",
        example(
            perturbation={"type": "same_name", "variant": "C"},
            tools=[wrong, *example()["tools"]],
        ),
    )
    write_lines(folder / "extras.jsonl", example())
    found = inputs.load_samples(str(tmp_path / "release"))
    assert found.left_out == {
        "row of extras.jsonl, named after no type": 1,
        "multi-turn row": 1,
        "pseudo-tool **Think": 1,
    }
    rows = {row.id: row for row in found.rows}
    assert [row.type_code for row in found.rows] == ["clean"] * 3 + ["same_name_C", "transient_timeout"]
    apibank = rows["apibank__level1_5::clean"]
    assert [m.role for m in apibank.messages] == ["user"]
    assert [t.name for t in apibank.tools] == ["Now"]
    rotbench = rows["rotbench__Turn 1: Where?::clean"]
    assert rotbench.messages[0].content == "Where?"
    assert [answer[0].parameters for answer in rotbench.golden_answers] == [
        {"town": [schema.ANY]},
        {"question": [schema.ANY]},
    ]
    assert next(row for row in found.rows if row.type_code == "same_name_C").gold_tool_index == 1
    timeout = next(row for row in found.rows if row.type_code == "transient_timeout")
    assert timeout.injected_error == INJECTED_ERRORS["transient_timeout"]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"id": None}, "line 1: no id"),
        ({"benchmark": "other"}, "unknown benchmark 'other'"),
        ({"golden_answers": []}, "no golden answer"),
        ({"tools": [{"description": "nameless"}]}, "not a row of the paper's layout"),
        ({"conversation": "not JSON"}, "not a row of the paper's layout"),
    ],
)
def test_a_broken_row_of_the_papers_layout_is_one_line(
    tmp_path: Path, record: dict[str, Any], said: str
) -> None:
    write_lines(tmp_path / "clean.jsonl", example(**record))
    refuses(said, inputs.load_samples, str(tmp_path))


def test_a_type_that_nobody_knows_is_taken_from_the_files_name(tmp_path: Path) -> None:
    write_lines(tmp_path / "clean.jsonl", example(perturbation={"type": "CD_XL"}, id="apibank__level1_1"))
    assert inputs.load_samples(str(tmp_path)).rows[0].type_code == "clean"


# --- Rows where they lie: the same as in memory, a few row groups at a time


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter samples, in shards and row groups that they fill several of."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "BATCH_ROWS", 10)
        patch.setattr(parquet, "SHARD_ROWS", 30)
        folder = tmp_path_factory.mktemp("built") / "robustbench-tc"
        build_release(BuildSpec(profile="bundled"), folder)
    return folder


def test_a_hash_needs_no_decoding(sharded: Path) -> None:
    for code in (taxonomy.CLEAN, *taxonomy.codes()):
        for row in parquet.read_rows(parquet.shards(sharded / code)):
            assert schema.written_hash(row) == schema.content_hash(schema.record(row, schema.Sample))


@pytest.mark.parametrize("num_proc", [1, 2])
def test_they_are_the_rows_of_the_dataset(sharded: Path, num_proc: int) -> None:
    dataset, files = inputs.load_samples(str(sharded)), row_files.RowFiles(sharded, num_proc)
    assert all(files.hash_of(one) == digest for one, digest in dataset.hashes.items())
    assert files.hash_of("nobody") is None and files.fingerprint() == dataset.fingerprint()
    ids = [row.id for row in dataset.rows]
    for asked in (ids[:1], ids[70:80], ids[-3:] + ids[200:203], ids[::97]):
        taken = files.take(asked)
        assert set(taken["id"].to_pylist()) <= set(dataset.take(asked)["id"].to_pylist())
        found = {row["id"]: schema.record(row, schema.Sample) for row in taken.to_pylist()}
        assert found == {row.id: row for row in dataset.rows if row.id in found}
        assert {*asked, *(f"{row.clean_id}::clean" for row in found.values())} <= set(found)
        assert len(taken) == len(found)


def test_few_row_groups_are_in_memory(sharded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = row_files.RowFiles(sharded)
    reading = Mock(wraps=files._read)
    monkeypatch.setattr(files, "_group", lru_cache(row_files.GROUPS)(reading))

    def shards(code: str) -> list[Path]:
        return parquet.shards(sharded / code)

    ids = [row["id"] for code in ("CD", "TD") for row in parquet.read_rows(shards(code), ["id"])]
    for start in range(0, len(ids), 5):
        files.take(ids[start : start + 5])
    groups = {code: sum(pq.read_metadata(f).num_row_groups for f in shards(code)) for code in ("CD", "clean")}
    assert groups["clean"] > row_files.GROUPS
    assert reading.call_count <= 2 * groups["CD"] + 2 * groups["clean"], (
        "in order, each is read once for each type"
    )


def test_scores_are_those_from_memory(sharded: Path, tmp_path: Path) -> None:
    folder = answered.run(tmp_path / "run", sharded)
    rows = verdicts.rows_of(folder)
    assert isinstance(rows, row_files.RowFiles)
    verdicts.score_file(folder, rows)
    from_files, flagged = folder.scores_path.read_bytes(), folder.record.flagged
    verdicts.score_file(folder, verdicts.dataset_of(folder))
    assert folder.scores_path.read_bytes() == from_files and folder.record.flagged == flagged


def test_other_texts_are_another_dataset(sharded: Path, tmp_path: Path) -> None:
    folder = answered.run(tmp_path / "run", sharded)
    [first, *_] = parquet.shards(sharded / "CD")
    before = first.read_bytes()
    table = pq.read_table(first)
    try:
        tools = [str(text).replace("the", "teh") for text in table["tools"].to_pylist()]
        place = table.schema.get_field_index("tools")
        pq.write_table(table.set_column(place, table.schema.field("tools"), [tools]), first)
        refuses("is another dataset", verdicts.rows_of, folder)
        refuses("is another dataset", verdicts.dataset_of, folder)
        first.write_bytes(before[:1000])
        refuses("is not a readable Parquet file", verdicts.rows_of, folder)
    finally:
        first.write_bytes(before)
    assert isinstance(verdicts.rows_of(record.open_run(folder.path)), row_files.RowFiles)


def test_rows_that_do_not_fit_together_are_no_row_files(sharded: Path, tmp_path: Path) -> None:
    for name in ("CD", "clean"):
        (tmp_path / name).mkdir()
    for file in parquet.shards(sharded / "CD"):
        (tmp_path / "CD" / file.name).write_bytes(file.read_bytes())
    only = tmp_path / "clean" / "test-00000-of-00001.parquet"
    pq.write_table(pq.read_table(parquet.shards(sharded / "clean")[0]), only)
    refuses("has no clean row", row_files.RowFiles, tmp_path)
    pq.write_table(pq.read_table(sharded / "CD"), only)
    refuses("is of another type", row_files.RowFiles, tmp_path)
