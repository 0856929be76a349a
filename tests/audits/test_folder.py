"""An audited folder: which files are the shards of a split."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustbench_tc.audits.folder import Folder, empty_folders, walk
from robustbench_tc.audits.hygiene import files

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


def test_no_link_of_a_folder_is_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "inner").mkdir(parents=True)
    (elsewhere / "secret.txt").write_text("A stranger's.")
    build = tmp_path / "build"
    (build / "CD" / "old").mkdir(parents=True)
    (build / "CD" / "rows.txt").write_text("Ours.")
    (build / "away").symlink_to(elsewhere)
    (build / "gone").symlink_to(elsewhere / "nothing")
    there = walk(build)
    assert list(there.items()) == [
        ("CD", "folder"),
        ("CD/old", "folder"),
        ("CD/rows.txt", "file"),
        ("away", "link"),
        ("gone", "link"),
    ]
    assert empty_folders(there) == ["CD/old"]


@pytest.mark.parametrize(("size", "read"), [(129 * 2**20, True), (2**28 + 1, False)])
def test_a_file_of_up_to_256_mib_is_looked_through(size: int, read: bool, tmp_path: Path) -> None:
    """The files are holes: they take no room on the disk."""
    path = tmp_path / "notes.txt"
    path.write_text("First.\n")
    with path.open("r+b") as file:
        file.truncate(size)
    if read:
        assert next(files._of_file(path)).text == "First."
    else:
        with pytest.raises(ValueError, match="more than 268435456 bytes"):
            next(files._of_file(path))
