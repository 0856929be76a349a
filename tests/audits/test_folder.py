"""An audited folder: which files are the shards of a split."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc.audits.folder import Folder

SPLITS = ("dev", "test", "train")


def test_a_split_has_its_own_shards_alone(tmp_path: Path) -> None:
    (tmp_path / "build_report.json").write_text("{}")
    (tmp_path / "CD").mkdir()
    for number, split in enumerate(SPLITS):
        rows = pa.table({"id": [f"{split}{n}" for n in range(number + 1)]})
        pq.write_table(rows, tmp_path / "CD" / f"{split}-00000-of-00001.parquet")
    folder = Folder(tmp_path)
    assert folder.splits("CD") == list(SPLITS)
    for number, split in enumerate(SPLITS):
        assert [path.name for path in folder.shards("CD", split)] == [f"{split}-00000-of-00001.parquet"]
        assert [row["id"] for row in folder.rows("CD", split)] == [f"{split}{n}" for n in range(number + 1)]
    assert folder.unreadable == []


def test_a_split_without_one_of_its_shards_is_noted(tmp_path: Path) -> None:
    (tmp_path / "build_report.json").write_text("{}")
    (tmp_path / "CD").mkdir()
    pq.write_table(pa.table({"id": ["a"]}), tmp_path / "CD" / "test-00000-of-00002.parquet")
    folder = Folder(tmp_path)
    assert folder.shards("CD", "test") == [] and list(folder.rows("CD")) == []
    assert "1 of 2 shards of split 'test'" in folder.unreadable[0].what
