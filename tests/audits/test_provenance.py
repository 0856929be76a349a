"""Provenance: the closed list, the checksums, the rebuild, and what the audit says of them."""

import json
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from robustbench_tc.api.building import build_release
from robustbench_tc.audits import gate, provenance
from robustbench_tc.audits.again import rebuild_of
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.page import render
from robustbench_tc.audits.provenance import Rebuild, rebuilt
from robustbench_tc.audits.provenance.files import files_checks, named
from robustbench_tc.audits.provenance.shipped import Pinned, found_digests
from robustbench_tc.audits.report import AuditReport, Check, visible
from robustbench_tc.builders.sources import needed_files
from robustbench_tc.errors import UserError
from robustbench_tc.io import manifest, marker

from ..conftest import Done
from ..refusals import refuses
from . import builds
from .planted.build import Forged


@cache
def _kept() -> "TemporaryDirectory[str]":
    """Where rebuilds are kept while these tests run."""
    return TemporaryDirectory(prefix="rbtc-rebuilds-")


def checks(folder: Path, rebuild: Rebuild | None = None) -> dict[str, Check]:
    """Of the provenance; without `rebuild`, the same build is made again once."""
    if rebuild is None:
        rebuild = rebuild_of(folder)
        if rebuild.make is not None:
            rebuild = rebuild._replace(make=builds.made_once(rebuild.make, Path(_kept().name), True))
    found = provenance.audit(Folder(folder), rebuild)
    return {check.id: check for check in found.checks}


def failing(folder: Path) -> set[str]:
    return {id for id, check in checks(folder).items() if check.blocks}


# --- files --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mine(bundled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy for files that are changed and put back."""
    return builds.copy(bundled, tmp_path_factory.mktemp("mine") / "robustbench-tc")


@given(st.data())
def test_one_changed_byte_of_any_file_is_seen(mine: Path, data: st.DataObject) -> None:
    """Without a rebuild already: by the checksums that the report keeps, and by its own."""
    names = sorted(p.relative_to(mine).as_posix() for p in mine.rglob("*") if p.is_file())
    name = data.draw(st.sampled_from(names))
    path = mine / name
    before = path.read_bytes()
    at = data.draw(st.integers(0, len(before) - 1))
    changed = bytearray(before)
    changed[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte != before[at]))
    path.write_bytes(changed)
    try:
        folder = Folder(mine)
        assert any(check.blocks for check in files_checks(folder, named(folder)))
    except UserError as error:  # the report is not JSON any more
        assert name == marker.BUILD and "damaged" in str(error)
    finally:
        path.write_bytes(before)


def test_the_report_of_an_audit_names_what_lies_under_audit(folder: Path, audited: AuditReport) -> None:
    (folder / "audit" / "suites").mkdir(parents=True)
    suite = folder / "audit" / "suites" / "rows.json"
    suite.write_text("{}")
    assert failing(folder) == {"provenance.closed_list"}, "nobody names it"
    named = msgspec.structs.replace(audited, files={"audit/suites/rows.json": marker.sha256(suite)})
    with pytest.raises(UserError, match="suites was not written by rbtc"):
        gate.write(named, folder)
    shutil.rmtree(folder / "audit")
    gate.write(named, folder, {"suites/rows.json": b"{}"})
    assert failing(folder) == set()
    suite.write_text("{ }")
    assert failing(folder) == {"provenance.checksums"}
    suite.unlink()
    assert failing(folder) == {"provenance.closed_list"}


def test_judgments_may_lie_there_before_the_audit_that_replays_them(folder: Path) -> None:
    (folder / "audit").mkdir()
    (folder / "audit" / "judgments.jsonl").write_text("")
    assert failing(folder) == set()


def test_names_cannot_hide_in_a_message(folder: Path) -> None:
    for name in ("\x1b[2Jx", "a\u202eb", "c\u200bd"):
        (folder / name).write_text("")
    (failed,) = (c for c in checks(folder).values() if c.status == "failed")
    assert {f.where for f in failed.failures} == {"\\x1b[2Jx", "a\\u202eb", "c\\u200bd"}
    assert visible("plain, ünï çödé 中文") == "plain, ünï çödé 中文"


@pytest.mark.parametrize(
    "report",
    ['{"files": 1}', '{"files": {"a": 1}}', '{"files": {"../../etc/passwd": "00"}}', '{"kind": []}', "{}"],
)
def test_a_report_of_any_shape_is_a_failed_check(folder: Path, report: str) -> None:
    (folder / marker.BUILD).write_text(report)
    assert {"provenance.closed_list", "provenance.checksums", "provenance.clean_rows"} <= failing(folder)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("audit_report.json", "["),
        ("audit_report.json", '{"files": {"clean/x.parquet": "00", "audit/x.PARQUET": "00"}}'),
        ("manifest.json", "[]"),
        ("manifest.json", '{"files": {"x": 1}}'),
        ("manifest.json", '{"files": []}'),
    ],
)
def test_a_broken_report_beside_the_build_breaks_no_audit(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    found = checks(folder)
    assert found["provenance.rows"].status == "passed"
    assert (name == "audit_report.json" and text == "[") or any(c.blocks for c in found.values())


# --- the rebuild --------------------------------------------------------------------------------------


def test_a_gate_without_a_way_to_build_again_is_red(bundled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "rebuild_of", lambda *args: Rebuild(None, why_not="nobody knows how"))
    monkeypatch.setattr(gate, "_benchmark", lambda *args: gate._Found([], []))
    monkeypatch.setattr(gate, "shipped", tuple)
    report = builds.audit(bundled)
    assert {c.id for c in report.blocking} == set(rebuilt.CHECKS) and not report.passed
    assert report.provenance.startswith("NOT rebuilt")


def test_the_verdict_says_what_was_compared(audited: AuditReport) -> None:
    assert audited.provenance == (
        "rebuilt from the starter samples of the package, the seed and generations.jsonl"
    )
    assert audited.provenance in render(audited)
    assert audited.checks[0].id == "provenance.closed_list", "it is the first question"


def test_other_bytes_of_the_same_rows_pass_under_another_pyarrow_only(
    bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = Forged(bundled, tmp_path / "robustbench-tc")
    forged.rewrite("CD", lambda table: table, compression="zstd", use_dictionary=False, write_page_index=True)
    forged.finish(reseal=True)
    assert failing(forged.path) == {"provenance.bytes"}
    monkeypatch.setattr(pa, "__version__", "99.0.0")
    found = checks(forged.path)
    assert not any(check.blocks for check in found.values())
    assert found["provenance.bytes"].status == "not_run" and "99.0.0" in found["provenance.bytes"].reason


def test_a_row_is_named_with_its_columns(bundled: Path, tmp_path: Path) -> None:
    forged = Forged(bundled, tmp_path / "robustbench-tc")
    forged.one("TD", lambda row: row.update(category="x", flags=["y"]))
    forged.finish(reseal=True)
    (failure,) = checks(forged.path)["provenance.rows"].failures
    assert failure.where == f"{forged.rows('TD')[0]['clean_id']}::TD"
    assert failure.what == "category, flags: not what the rebuild has"


def test_a_temporary_folder_is_all_that_the_rebuild_touches(
    bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = {p: p.stat().st_mtime_ns for p in bundled.rglob("*")}
    found = checks(bundled, rebuild_of(bundled))
    assert not any(check.blocks for check in found.values())
    assert list(tmp_path.iterdir()) == []
    assert {p: p.stat().st_mtime_ns for p in bundled.rglob("*")} == before


def test_training_data_are_rebuilt_from_their_files_or_say_that_they_are_not(
    shared: Path, tmp_path: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RBTC_SOURCES", str(tmp_path / "nowhere"))
    folder, sources = tmp_path / "toolrl-dr", shared / "sources"
    made = rbtc(
        "build", "toolrl-dr", "--rlla", sources, "--sources", sources, "--out", folder, "--seed", 3,
        "--ratio", "0.25", "--retry-probability", "0.5", "--configs", "mixed", "--configs", "retry",
    )  # fmt: skip
    assert made.code == 0, made.err
    found = provenance.audit(Folder(folder), rebuild_of(folder, sources))
    assert found.said.startswith("rebuilt from ToolRL's files")
    assert [c.id for c in found.checks if c.blocks] == []
    without = provenance.audit(Folder(folder), rebuild_of(folder))
    assert without.said.startswith("NOT rebuilt: its leak check needs the benchmark's sources")
    left_out = {*rebuilt.CHECKS, "provenance.clean_rows"} - {rebuilt.CARD}
    assert {c.id for c in without.checks if c.status == "not_run" and c.blocks} == left_out
    builds.edit_training(folder, "mixed", lambda rows: rows.reverse())
    report = json.loads((folder / marker.BUILD).read_text())
    report |= {"files": marker.hashes(folder, but=marker.BUILD), "own_sha256": ""}
    (folder / marker.BUILD).write_bytes(marker.sealed(report))
    found = provenance.audit(Folder(folder), rebuild_of(folder, sources))
    assert {"provenance.rows", "provenance.bytes"} <= {c.id for c in found.checks if c.blocks}


# --- sources ------------------------------------------------------------------------------------------


@pytest.fixture
def half(shared: Path, tmp_path: Path) -> Path:
    """Sources with a file missing, one damaged, one cut short."""
    root = tmp_path / "half"
    for number, name in enumerate(needed_files("full")):
        data = (shared / "sources" / name).read_bytes()
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if number != 0:
            (root / name).write_bytes(data[:-1] if number == 1 else b"x" + data[1:] if number == 2 else data)
    return root


def test_half_filled_default_sources_still_give_a_report_that_names_what_is_missing(
    bundled: Path, half: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RBTC_SOURCES", str(half))
    missing, short, damaged = needed_files("full")[:3]
    report = gate.audit(bundled)
    assert report.passed, "the starter samples need no sources"
    (pools,) = (c for c in report.checks if c.id == "contamination.pools")
    assert pools.status == "not_run" and f"{missing}: missing" in pools.reason
    assert f"{short}: " in pools.reason and f"{damaged}: sha256" in pools.reason


def test_half_filled_sources_that_are_named_are_one_line_before_any_work(
    folder: Path, half: Path, tmp_path: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*args: Any, **options: Any) -> None:
        raise AssertionError("the audit has begun")

    monkeypatch.setattr(provenance, "audit", work)
    done = rbtc("audit", folder, "--sources", half)
    assert done.code == 1 and "Traceback" not in done.err
    assert "3 of 23 source files of profile full are not as pinned" in done.err.replace("\n", " ")
    assert not (folder / "audit_report.json").exists()
    assert "no sources folder at" in rbtc("audit", folder, "--sources", tmp_path / "none").refusal


def test_the_real_build_without_sources_is_held_against_the_digest(
    shared: Path, half: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from robustbench_tc.builders.build import BuildSpec

    out = tmp_path / "robustbench-tc"
    build_release(BuildSpec(profile="paper", sources=shared / "sources", codes=("CD",)), out)
    monkeypatch.setenv("RBTC_SOURCES", str(half))
    found = provenance.audit(Folder(out), rebuild_of(out))
    assert found.said.startswith("clean rows compared with the digest that ships with the package")
    assert "NOT rebuilt from sources: 1 of 8 source files of profile paper" in found.said
    assert [c.id for c in found.checks if c.blocks] == []
    found = provenance.audit(Folder(out), rebuild_of(out, shared / "sources"))
    assert found.said.startswith("rebuilt from the pinned sources")
    none = {"benchmark": Pinned("1.0.0", {})}
    monkeypatch.setattr("robustbench_tc.audits.provenance.shipped.pinned", lambda: none)
    assert "provenance.clean_rows" in failing(out), "no digest, no sources: nobody vouches for the rows"
    with_sources = checks(out, rebuild_of(out, shared / "sources"))
    assert not any(c.blocks for c in with_sources.values())


# --- releases -----------------------------------------------------------------------------------------


def test_damaged_errata_are_one_failure_that_names_the_line(bundled: Path, tmp_path: Path) -> None:
    out = tmp_path / "robustbench-tc"
    shutil.copytree(bundled, out, copy_function=shutil.copyfile)
    (out / "errata.jsonl").write_text("{}\n")
    folder = Folder(out)
    assert found_digests(folder) == found_digests(Folder(bundled))
    [failure] = {(one.where, one.what) for one in folder.unreadable}
    assert failure[0] == "errata.jsonl" and failure[1].startswith("errata.jsonl, line 1: ")


@pytest.fixture
def released(trial: Path, tmp_path: Path) -> Path:
    """A copy of a release of the starter samples, in which files can be written."""
    out = tmp_path / "robustbench-tc"
    shutil.copytree(trial, out, copy_function=shutil.copyfile)
    return out


def test_a_release_is_audited_like_a_build(released: Path) -> None:
    assert failing(released) == set()
    (released / "notes.txt").write_text("x")
    assert failing(released) == {"provenance.closed_list"}


MANIFEST: dict[str, Callable[[dict[str, Any]], Any]] = {
    "kind": lambda m: m.update(kind="toolrl-dr"),
    "version": lambda m: m.update(version="2.0.0"),
    "licence": lambda m: m.update(licence="mit"),
    "data_sha256": lambda m: m.update(data_sha256="0" * 64),
    "seed": lambda m: m.update(seed=9),
    "seed as a boolean": lambda m: m.update(seed=False),
    "profile": lambda m: m.update(profile="paper"),
    "rows": lambda m: m["rows"].update(CD=1),
    "a config less": lambda m: m["rows"].pop("CD"),
    "sources": lambda m: m["sources"].append({"source": "x"}),
    "generators": lambda m: m["generators"]["redundant"].update(answered=1),
    "gate": lambda m: m["gate"].update(checks=1),
    "a waiver less": lambda m: m["gate"].update(waived=[]),
    "no gate": lambda m: m.pop("gate"),
    "a file's size": lambda m: m["files"]["README.md"].update(bytes=1),
    "a file's hash": lambda m: m["files"]["README.md"].update(sha256="0" * 64),
    "a file less": lambda m: m["files"].pop("README.md"),
    "a file more": lambda m: m["files"].update({"x.html": {"bytes": 1, "sha256": "0" * 64}}),
    "a Parquet file more": lambda m: m["files"].update({"CD/x.parquet": {"bytes": 1, "sha256": "0" * 64}}),
    "a field more": lambda m: m.update(approved=True),
    "files in another order": lambda m: m.update(rows=dict(reversed(m["rows"].items()))),
}


@pytest.mark.parametrize("what", MANIFEST)
def test_a_manifest_that_says_otherwise_is_seen(what: str, released: Path) -> None:
    path = released / manifest.NAME
    found = json.loads(path.read_text())
    MANIFEST[what](found)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    seen_by = {"provenance.manifest", "provenance.closed_list", "provenance.checksums"}
    assert failing(released) & ({"provenance.card"} if what == "version" else seen_by)


@pytest.mark.parametrize("name", ["README.md", "build_report.md", "croissant.json", "eval.yaml", "LICENSE"])
def test_cards_of_a_release_are_rendered_again(name: str, released: Path) -> None:
    """Whoever changes one and its line in the manifest is found without a key."""
    (released / name).write_bytes((released / name).read_bytes() + b" ")
    path = released / manifest.NAME
    found = json.loads(path.read_bytes())
    found["files"][name] = msgspec.to_builtins(manifest.entry(released / name))
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    assert "provenance.card" in failing(released)


@pytest.mark.parametrize(("kind", "has"), [("robustbench-tc", True), ("robustbench-tc-live", False)])
def test_only_a_release_of_the_benchmark_has_an_eval_yaml(kind: str, has: bool, tmp_path: Path) -> None:
    """Elsewhere nobody renders it again."""
    (tmp_path / marker.BUILD).write_text(json.dumps({"kind": kind, "files": {}}))
    (tmp_path / manifest.NAME).write_text('{"files": {"eval.yaml": {"sha256": "0"}}}')
    wrong = {failure.where for failure in named(Folder(tmp_path)).wrong}
    assert ("eval.yaml" not in wrong) is has


def test_cards_of_another_version_of_the_package_say_so(
    released: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robustbench_tc.audits.provenance.beside.__version__", "9.9.9")
    assert failing(released) == set(), "the same cards are the same cards"
    (released / "README.md").write_text("x")
    said = checks(released)["provenance.card"].failures
    assert any("9.9.9 is installed" in failure.what for failure in said)


def test_an_earlier_audits_report_is_one_that_an_audit_wrote(folder: Path, audited: AuditReport) -> None:
    gate.write(audited, folder)
    assert failing(folder) == set()
    for odd in (
        msgspec.structs.replace(audited, passed=False),
        msgspec.structs.replace(audited, build="0" * 64),
        msgspec.structs.replace(audited, checks=()),
        msgspec.structs.replace(audited, profile="paper"),
    ):
        gate.write(odd, folder)
        assert failing(folder) == {"provenance.audit_report"}
    gate.write(msgspec.structs.replace(audited, package_version="0.0.1"), folder)
    assert failing(folder) == set(), "of another version of the package: its seal is whole"
    report = folder / marker.AUDIT
    report.write_bytes(report.read_bytes().replace(b'"seed": 0', b'"seed": 1', 1))
    assert failing(folder) == {"provenance.audit_report"}
    report.unlink()
    (folder / marker.PAGE).unlink()
    gate.write(audited, folder)
    (folder / marker.PAGE).write_text(marker.sealed_page("<h1>Approved</h1>"))
    assert failing(folder) == {"provenance.audit_report"}


def test_a_pipe_for_a_report_is_never_opened(bundled: Path, tmp_path: Path) -> None:
    for name in ("audit_report.json", "manifest.json", marker.BUILD):
        folder = builds.copy(bundled, tmp_path / name / "robustbench-tc")
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
        if name == marker.BUILD:
            refuses("not a regular file", Folder, folder)
        else:
            assert "provenance.closed_list" in failing(folder)
