"""A new folder is there with all its files, or it is not there."""

from pathlib import Path

import pytest

from robustbench_tc.io.folders import write_new

from ..refusals import refuses
from ..trees import tree, write

FILES = {"a.txt": b"1\n", "b/c/d.txt": b"2\n", "b/e.txt": b"3\n"}
CANNOT_BE = {**FILES, "b/e.txt/f.txt": b"4\n"}
"""The last one would lie below a file."""


@pytest.mark.parametrize("place", ["new", "deep/er/new", "empty"])
def test_it_writes_all_files_and_nothing_else(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    write_new(tmp_path / place, FILES)
    found = {name: data for name, (kind, data) in tree(tmp_path / place).items() if kind == "file"}
    assert found == FILES
    assert not list((tmp_path / place).parent.glob(".*"))


@pytest.mark.parametrize("place", ["new", "empty"])
def test_where_a_file_cannot_be_written_nothing_stays(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(OSError):
        write_new(tmp_path / place, CANNOT_BE)
    assert tree(tmp_path) == {"empty": ("folder", b"")}


def test_an_empty_folder_stays_the_same_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = tmp_path.stat().st_ino
    write_new(Path(), FILES)
    assert tmp_path.stat().st_ino == before and Path("a.txt").read_bytes() == b"1\n"


def test_what_is_there_is_refused_and_kept(tmp_path: Path) -> None:
    write(tmp_path, {"full/mine.txt": "x", "file": "x"})
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    (tmp_path / "loose").symlink_to("nowhere")
    before = tree(tmp_path)
    for name, said in (
        ("full", "is not empty"),
        ("file", "is not a folder"),
        ("file/new", "file is not a folder"),
        ("link", "is a link"),
        ("loose", "is a link"),
    ):
        refuses(said, write_new, tmp_path / name, FILES)
    assert tree(tmp_path) == before
