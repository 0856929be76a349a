"""An earlier audit's report and files are what an audit of the same build gives again, and no others."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.audits import audit_files, gate
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.provenance.beside import earlier_check, form_check
from robustbench_tc.audits.report import AuditReport
from robustbench_tc.io import manifest, marker
from robustbench_tc.io.resolve import Yank, yanked_json

from . import builds
from .conftest import Written

Audited = tuple[AuditReport, dict[str, bytes]]


@pytest.fixture(scope="module")
def first(sound: Written) -> Audited:
    return sound.report, sound.files


def test_an_audit_after_an_audit_finds_the_same(folder: Path, first: Audited) -> None:
    gate.write(first[0], folder, first[1])
    again: dict[str, bytes] = {}
    report = gate.audit(folder, files=again)
    assert [one.id for one in report.blocking] == []
    assert builds.find(report, "audit.earlier").status == "passed" and again == first[1]
    gate.write(report, folder, again)
    third = gate.audit(folder)
    assert builds.find(third, "audit.earlier").status == "passed", "also where nobody keeps its files"


def changed(report: AuditReport, id: str, **what: Any) -> AuditReport:
    """The report with another finding of one check."""
    checks = [msgspec.structs.replace(one, **what) if one.id == id else one for one in report.checks]
    return msgspec.structs.replace(report, checks=tuple(checks))


FORGERIES: dict[str, Callable[[AuditReport], AuditReport]] = {
    "another count": lambda report: changed(report, "rows.digits_kept", applied=1_000_000),
    "another sentence": lambda report: changed(report, "rows.digits_kept", protects="All is well."),
    "a check left out": lambda report: msgspec.structs.replace(
        report, checks=tuple(one for one in report.checks if one.id != "rows.digits_kept")
    ),
    "a judge's better mean": lambda report: msgspec.structs.replace(
        report,
        paraphrase=tuple(msgspec.structs.replace(one, mean=5.0, std=0.25) for one in report.paraphrase),
    ),
    "no shortcut": lambda report: msgspec.structs.replace(report, shortcuts=()),
    "no case": lambda report: msgspec.structs.replace(report, evidence=report.evidence[1:]),
    "no redundant tool": lambda report: msgspec.structs.replace(report, redundant=None),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_report_is_red_however_it_is_sealed(folder: Path, name: str, first: Audited) -> None:
    forged = FORGERIES[name](first[0])
    gate.write(forged, folder, first[1])
    assert earlier_check(Folder(folder), *first).status == "failed"


@pytest.mark.parametrize("name", ["data_docs/index.html", "gx/great_expectations.yml", "more.txt"])
def test_a_forged_file_under_audit_is_red_though_the_report_names_it(
    folder: Path, name: str, first: Audited
) -> None:
    report, files = first
    forged = files | {name: files.get(name, b"") + b"Approved."}
    named = {audit_files.FOLDER + path: marker.sha256_of(data) for path, data in forged.items()}
    gate.write(msgspec.structs.replace(report, files=named), folder, forged)
    found = earlier_check(Folder(folder), *first)
    assert [one.where for one in found.failures] == [f"audit/{name}"]


def test_another_version_of_a_writer_is_said_and_left_out(folder: Path, first: Audited) -> None:
    for field in ("package_version", "expectations_version"):
        gate.write(msgspec.structs.replace(first[0], **{field: "0.0.1"}), folder)
        found = earlier_check(Folder(folder), *first)
        assert found.status == "not_run" and not found.blocks and "0.0.1 wrote it" in found.reason


# --- what lies beside a manifest ------------------------------------------------------------------------


WITHDRAWN = Yank(version="1.0.0", reason="Row 7 was wrong.", date="2026-01-31", use="1.0.1")


def formed(bundled: Path, tmp_path: Path, name: str, data: bytes) -> str:
    folder = builds.copy(bundled, tmp_path / "robustbench-tc")
    (folder / name).write_bytes(data)
    return form_check(Folder(folder)).status


def test_a_signature_and_withdrawn_versions_have_their_form(bundled: Path, tmp_path: Path) -> None:
    assert formed(bundled, tmp_path / "a", manifest.SIGNATURE, bytes(64)) == "passed"
    assert formed(bundled, tmp_path / "b", manifest.YANKED, yanked_json((WITHDRAWN,))) == "passed"


ODD_YANKS: dict[str, bytes] = {
    "empty": b"",
    "nothing": yanked_json(()),
    "rows": b'[{"messages": "all of the benchmark"}]',
    "another field": json.dumps([msgspec.to_builtins(WITHDRAWN) | {"note": "x"}], indent=1).encode() + b"\n",
    "no version": yanked_json((msgspec.structs.replace(WITHDRAWN, version="latest"),)),
    "no day": yanked_json((msgspec.structs.replace(WITHDRAWN, date="today"),)),
    "no reason": yanked_json((msgspec.structs.replace(WITHDRAWN, reason=" "),)),
    "lines": yanked_json((msgspec.structs.replace(WITHDRAWN, reason="a\nb"),)),
    "another text": yanked_json((WITHDRAWN,)).strip(),
    "too much": yanked_json((msgspec.structs.replace(WITHDRAWN, reason="x" * 2**16),)),
}


@pytest.mark.parametrize("name", ODD_YANKS)
def test_a_list_of_withdrawn_versions_of_another_form_is_red(
    name: str, bundled: Path, tmp_path: Path
) -> None:
    assert formed(bundled, tmp_path, manifest.YANKED, ODD_YANKS[name]) == "failed"


@pytest.mark.parametrize("size", [0, 63, 65, 10_000])
def test_a_signature_of_another_size_is_red(size: int, bundled: Path, tmp_path: Path) -> None:
    assert formed(bundled, tmp_path, manifest.SIGNATURE, bytes(size)) == "failed"
