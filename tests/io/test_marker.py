"""The marker of a build names every other file of it, and shows whether anybody has changed it."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_tc.api.building import build_release
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.builders.report import BuildReport
from robustbench_tc.io import marker


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


@given(st.data())
def test_a_marker_with_one_changed_byte_is_not_sealed(bundled: Path, data: st.DataObject) -> None:
    text = (bundled / "build_report.json").read_bytes()
    own = json.loads(text)["own_sha256"]
    assert marker.is_sealed(text, own)
    at = data.draw(st.integers(0, len(text) - 1))
    changed = bytearray(text)
    changed[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte != text[at]))
    assert not marker.is_sealed(bytes(changed), own)
