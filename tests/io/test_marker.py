"""The marker of a build names every other file of it, and shows whether anybody has changed it."""

import hashlib
import json
from pathlib import Path

import pytest

from robustbench_tc.api.building import build_release
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.builders.report import BuildReport


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("marker") / "robustbench-tc"
    build_release(BuildSpec(profile="bundled"), out)
    return out


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
