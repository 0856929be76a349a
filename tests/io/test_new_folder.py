"""New folders are whole or not there, and the marker of a build names every other file of it."""

import hashlib
import json
from pathlib import Path

import pytest

from robustbench_tc.api.building import build_release
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.builders.report import BuildReport
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


# --- The marker of a build names every other file of it, and shows whether anybody has changed it


def test_a_builds_marker_names_every_other_file(bundled: Path) -> None:
    report = json.loads((bundled / "build_report.json").read_text())
    assert (report["kind"], report["report_version"]) == ("robustbench-tc", 2)
    there = {path.relative_to(bundled).as_posix(): path for path in bundled.rglob("*") if path.is_file()}
    del there["build_report.json"]
    assert report["files"] == {n: hashlib.sha256(p.read_bytes()).hexdigest() for n, p in there.items()}
    assert {"README.md", "build_report.md", "clean/test-00000-of-00001.parquet"} <= set(there)


def test_the_returned_report_is_the_written_one(tmp_path: Path) -> None:
    report = build_release(BuildSpec(profile="bundled", codes=("CD",)), tmp_path / "out")
    assert isinstance(report, BuildReport)
    assert report.json() == (tmp_path / "out" / "build_report.json").read_bytes()
