"""Rows where they lie: the same as in memory, a few row groups at a time."""

import json
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustbench_tc import schema, taxonomy
from robustbench_tc.api.building import build_release
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.eval import inputs, predictions, record, row_files, verdicts
from robustbench_tc.eval.row_files import RowFiles
from robustbench_tc.io import parquet
from robustbench_tc.schema import Sample

from ..refusals import refuses
from . import answered


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter samples, in shards and row groups that they fill several of."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "BATCH_ROWS", 10)
        patch.setattr(parquet, "SHARD_ROWS", 30)
        folder = tmp_path_factory.mktemp("built") / "robustbench-tc"
        build_release(BuildSpec(profile="bundled"), folder)
    return folder


def test_a_hash_needs_no_decoding(release: Path) -> None:
    for code in (taxonomy.CLEAN, *taxonomy.codes()):
        for row in parquet.read_rows(parquet.shards(release / code)):
            assert schema.written_hash(row) == schema.content_hash(schema.record(row, Sample))


@pytest.mark.parametrize("num_proc", [1, 2])
def test_they_are_the_rows_of_the_dataset(release: Path, num_proc: int) -> None:
    dataset, files = inputs.load(str(release)), RowFiles(release, num_proc)
    assert all(files.hash_of(one) == digest for one, digest in dataset.hashes().items())
    assert files.hash_of("nobody") is None and files.fingerprint() == dataset.fingerprint()
    ids = [row.id for row in dataset.rows]
    for asked in (ids[:1], ids[70:80], ids[-3:] + ids[200:203], ids[::97]):
        taken = files.take(asked)
        assert taken.to_pylist() == dataset.take(asked).to_pylist()
        found = {row["id"]: schema.record(row, Sample) for row in taken.to_pylist()}
        wanted = {row.id: row for row in dataset.rows if row.id in found}
        assert found == wanted and set(asked) <= set(found)
        clean = {f"{row.clean_id}::clean" for row in found.values()}
        assert clean <= set(found) and len(taken) == len(found)


def test_few_row_groups_are_in_memory(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = RowFiles(release)
    read: list[int] = []

    def noted(number: int) -> pa.Table:
        read.append(number)
        return files._read(number)

    monkeypatch.setattr(files, "_group", lru_cache(row_files.GROUPS)(noted))

    def shards(code: str) -> list[Path]:
        return parquet.shards(release / code)

    ids = [row["id"] for code in ("CD", "TD") for row in parquet.read_rows(shards(code), ["id"])]
    for start in range(0, len(ids), 5):
        files.take(ids[start : start + 5])
    groups = {code: sum(pq.read_metadata(f).num_row_groups for f in shards(code)) for code in ("CD", "clean")}
    assert groups["clean"] > row_files.GROUPS
    assert len(read) <= 2 * groups["CD"] + 2 * groups["clean"], "in order, each is read once for each type"


def test_scores_are_those_from_memory(release: Path, tmp_path: Path) -> None:
    folder = answered.run(tmp_path / "run", release)
    rows = verdicts.rows_of(folder)
    assert isinstance(rows, RowFiles)
    verdicts.score_file(folder, rows)
    from_files, flagged = folder.scores_path.read_bytes(), folder.record.flagged
    verdicts.score_file(folder, verdicts.dataset_of(folder))
    assert folder.scores_path.read_bytes() == from_files and folder.record.flagged == flagged
    verdicts.score_run(folder, inputs.load(str(release)), predictions.read(folder.predictions_path))
    assert folder.scores_path.read_bytes() == from_files


def spaced(text: str) -> str:
    return json.dumps(json.loads(text))


def misspelt(text: str) -> str:
    return text.replace("the", "teh")


def test_files_written_in_another_way_are_read_in_memory(release: Path, tmp_path: Path) -> None:
    """JSON with spaces is the same dataset; another text is another one."""
    folder = answered.run(tmp_path / "run", release)
    [first, *_] = parquet.shards(release / "CD")
    before = first.read_bytes()
    table = pq.read_table(first)
    try:
        for spelling, refused in ((spaced, False), (misspelt, True)):
            tools = [spelling(str(text)) for text in table["tools"].to_pylist()]
            place = table.schema.get_field_index("tools")
            pq.write_table(table.set_column(place, table.schema.field("tools"), [tools]), first)
            if refused:
                refuses("is another dataset", verdicts.rows_of, folder)
            else:
                assert isinstance(verdicts.rows_of(folder), inputs.Dataset)
    finally:
        first.write_bytes(before)
    assert isinstance(verdicts.rows_of(record.open_run(folder.path)), RowFiles)


def test_rows_that_do_not_fit_together_are_no_row_files(release: Path, tmp_path: Path) -> None:
    for name in ("CD", "clean"):
        (tmp_path / name).mkdir()
    for file in parquet.shards(release / "CD"):
        (tmp_path / "CD" / file.name).write_bytes(file.read_bytes())
    only = tmp_path / "clean" / "test-00000-of-00001.parquet"
    pq.write_table(pq.read_table(parquet.shards(release / "clean")[0]), only)
    with pytest.raises(LookupError):
        RowFiles(tmp_path)  # some clean rows are missing
    pq.write_table(pq.read_table(release / "CD"), only)
    with pytest.raises(ValueError, match="of another type"):
        RowFiles(tmp_path)
