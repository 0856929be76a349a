"""A build that cannot be made again: what the gate says of it."""

import json
import shutil
from pathlib import Path

import pytest

from robustbench_tc.audits import provenance
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.provenance import Rebuild, rebuilt
from robustbench_tc.audits.report import Failure
from robustbench_tc.errors import UserError
from robustbench_tc.io import marker


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("a" * 159 + "bc"), "ValueError: " + "a" * 159 + "b"),
        (UserError("a" * 159 + "bc"), "a" * 159 + "bc"),
    ],
    ids=["an error of the code, cut to 160 characters", "a line for the user, whole"],
)
def test_why_the_build_cannot_be_made_again_is_the_checks_reason(
    error: Exception, said: str, training: Path
) -> None:
    def make(build: Path, out: Path) -> None:
        raise error

    found = provenance.audit(Folder(training), Rebuild(make, "its file")).checks
    reasons = {check.reason for check in found if check.id in rebuilt.CHECKS}
    assert reasons == {f"the build cannot be made again: {said}"}


def differences(folder: Path, training: Path) -> list[Failure]:
    """What is said of a folder where building again gives the training build."""

    def make(build: Path, out: Path) -> None:
        shutil.copytree(training, out, dirs_exist_ok=True)

    checks = provenance.audit(Folder(folder), Rebuild(make, "its file")).checks
    return [one for check in checks if check.id in rebuilt.CHECKS for one in check.failures]


def test_a_table_with_damaged_pages_is_named_and_the_others_are_compared(
    toolrl: Path, training: Path
) -> None:
    (shard,) = (toolrl / "full").glob("train-*.parquet")
    whole = shard.read_bytes()
    shard.write_bytes(whole[:4] + b"\xff" * 60 + whole[64:])
    said = {one.where: one.what for one in differences(toolrl, training)}
    assert said["full/train"].startswith("it cannot be read: ")


def test_a_field_too_few_and_one_too_many_of_the_report_are_named(toolrl: Path, training: Path) -> None:
    report = json.loads((toolrl / marker.BUILD).read_text("utf-8"))
    del report["drawn"]
    (toolrl / marker.BUILD).write_bytes(marker.sealed(report | {"more": 1, "own_sha256": ""}))
    said = {one.where: one.what for one in differences(toolrl, training)}
    assert said[f"{marker.BUILD}: drawn"] == "it is missing"
    assert said[f"{marker.BUILD}: more"] == "the builder writes no such field"
