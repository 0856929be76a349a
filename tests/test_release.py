"""From a build to an immutable release, and what refuses to become one."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc import freeze, manifest
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.report import Check
from robustbench_tc.errors import UserError

from .conftest import Done
from .released import CODES, audit, released, small_build


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_build(tmp_path_factory.mktemp("build") / "robustbench-tc")


@pytest.fixture
def copy(build: Path, tmp_path: Path) -> Path:
    """A build to spoil."""
    return Path(shutil.copytree(build, tmp_path / "robustbench-tc"))


@pytest.fixture(scope="module")
def release(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("release") / "robustbench-tc"
    released(build, out)
    return out


@pytest.fixture
def spoilt(release: Path, tmp_path: Path) -> Path:
    """A release to spoil."""
    folder = Path(shutil.copytree(release, tmp_path / "spoilt"))
    for path in folder.rglob("*"):
        path.chmod(0o755)
    return folder


def test_a_release_holds_the_audited_bytes_and_states_them_file_by_file(build: Path, release: Path) -> None:
    frozen = manifest.read(release)
    assert manifest.problems(release) == []
    assert set(frozen.files) == set(manifest.files_of(release))
    for path in build.glob("*/*.parquet"):
        name = path.relative_to(build).as_posix()
        assert (release / name).read_bytes() == path.read_bytes()
        assert frozen.files[name] == manifest.entry(path)
    for name in (
        "README.md",
        "LICENSE",
        "croissant.json",
        "build_report.json",
        "build_report.md",
        freeze.AUDIT,
    ):
        assert name in frozen.files
    assert frozen.version == "1.0.0" and frozen.tag == "v1.0.0"
    assert frozen.gate is not None and frozen.gate.passed and frozen.gate.checks == 1
    assert set(frozen.rows) == {"clean", *CODES}
    assert frozen.seed == 0 and frozen.profile == "bundled"


def test_the_manifest_hashes_data_as_the_audit_does(build: Path) -> None:
    files = {name: manifest.entry(build / name) for name in manifest.files_of(build)}
    assert manifest.digest(manifest.data_files(files, "robustbench-tc")) == Folder(build).digest()


def test_two_releases_of_one_build_differ_in_the_time_stamp_alone(
    build: Path, release: Path, tmp_path: Path
) -> None:
    from robustbench_tc.cli.release import render

    again = tmp_path / "again"
    freeze.release(build, again, version="1.0.0", created_at="2030-01-01T00:00:00Z", render=render)
    for name in manifest.files_of(release):
        assert (again / name).read_bytes() == (release / name).read_bytes(), name
    ours, theirs = manifest.read(release), manifest.read(again)
    assert msgspec.structs.replace(theirs, created_at=ours.created_at) == ours
    held = [name for name in manifest.files_of(again) if b"2030-01-01" in (again / name).read_bytes()]
    assert held == []


def test_reports_of_a_release_carry_its_version(build: Path, tmp_path: Path) -> None:
    released(build, tmp_path / "out", "2.3.4")
    report = msgspec.json.decode((tmp_path / "out" / "build_report.json").read_bytes())
    assert report["dataset_version"] == "2.3.4"
    assert "Dataset version 2.3.4." in (tmp_path / "out" / "build_report.md").read_text()
    assert "# RobustBench-TC 2.3.4" in (tmp_path / "out" / "README.md").read_text()


def test_an_existing_folder_is_never_overwritten(build: Path, release: Path) -> None:
    before = manifest.read(release)
    with pytest.raises(UserError, match="never overwritten"):
        released(build, release, "1.0.1")
    assert manifest.read(release) == before and manifest.problems(release) == []


def test_a_release_is_not_released_again(release: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a release already"):
        released(release, tmp_path / "out", "1.0.1")


def test_a_failed_release_leaves_nothing_behind(copy: Path, tmp_path: Path) -> None:
    (copy / "build_report.json").write_text('{"rows": {}}')
    with pytest.raises(UserError, match=r"build_report\.json"):
        released(copy, tmp_path / "out" / "release")
    assert [path.name for path in (tmp_path / "out").iterdir() if not path.name.endswith(".lock")] == []


@pytest.mark.parametrize("version", ["1.0", "1", "01.0.0", "latest", "1.0.0 ", "", "../1.0.0"])
def test_a_version_is_semantic(version: str, build: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="semantic version"):
        released(build, tmp_path / "out", version)


# --- the gate -----------------------------------------------------------------------------------------


def failing(**how: Any) -> Check:
    return Check(id="rows.digits_kept", protects="Digits.", **{"status": "failed", "failed": 1, **how})


def test_a_build_without_an_audit_is_refused(copy: Path, tmp_path: Path) -> None:
    (copy / freeze.AUDIT).unlink()
    with pytest.raises(UserError, match="was not audited: run `rbtc audit"):
        released(copy, tmp_path / "out")


def test_a_red_gate_is_refused_and_names_its_checks(copy: Path, tmp_path: Path) -> None:
    audit(copy, failing())
    with pytest.raises(UserError, match=r"red \(rows.digits_kept\)"):
        released(copy, tmp_path / "out")
    audit(copy, failing(status="not_run", failed=0))
    with pytest.raises(UserError, match="red"):
        released(copy, tmp_path / "out")


def test_a_waived_check_is_let_through_and_named(copy: Path, tmp_path: Path) -> None:
    audit(copy, failing(status="waived", reason="known upstream", expires="2027-01-01"))
    frozen = released(copy, tmp_path / "out")
    assert frozen.gate is not None and frozen.gate.waived == ("rows.digits_kept",)
    assert "rows.digits_kept" in (tmp_path / "out" / "README.md").read_text()


def test_a_report_that_claims_green_over_a_failed_check_is_refused(copy: Path, tmp_path: Path) -> None:
    audit(copy, failing())
    text = (copy / freeze.AUDIT).read_text()
    (copy / freeze.AUDIT).write_text(text.replace('"passed": false', '"passed": true'))
    with pytest.raises(UserError, match="red"):
        released(copy, tmp_path / "out")
    audit(copy)
    report = msgspec.json.decode((copy / freeze.AUDIT).read_bytes())
    (copy / freeze.AUDIT).write_bytes(msgspec.json.encode({**report, "checks": []}))
    with pytest.raises(UserError, match="holds no check"):
        released(copy, tmp_path / "out")


def test_an_audit_of_other_bytes_is_refused(copy: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = next((copy / "CD_AB").glob("*.parquet"))
    pq.write_table(pq.read_table(path), path, compression="snappy")
    with pytest.raises(UserError, match="about other data"):
        released(copy, tmp_path / "out")


def test_a_build_report_that_counts_otherwise_is_refused(copy: Path, tmp_path: Path) -> None:
    report = msgspec.json.decode((copy / "build_report.json").read_bytes())
    report["rows"]["CD_AB"] = {"bfcl_v3": 1}
    (copy / "build_report.json").write_bytes(msgspec.json.encode(report))
    with pytest.raises(UserError, match="says 1 rows of CD_AB"):
        released(copy, tmp_path / "out")


def test_a_file_that_is_no_part_of_a_release_is_refused(copy: Path, tmp_path: Path) -> None:
    (copy / "notes.txt").write_text("remember the milk")
    with pytest.raises(UserError, match=r"notes.txt, which is no part of a release"):
        released(copy, tmp_path / "out")


def test_a_folder_that_is_no_build_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="is no build"):
        released(tmp_path / "empty", tmp_path / "out")


# --- verify and revisions -----------------------------------------------------------------------------


def test_verify_prints_a_line_per_file_that_is_not_as_released(
    spoilt: Path, rbtc: Callable[..., Done]
) -> None:
    assert rbtc("verify", spoilt)[0] == 0
    (spoilt / "README.md").write_text("another card")
    data = next((spoilt / "CD_AB").glob("*.parquet"))
    data.write_bytes(bytes(reversed(data.read_bytes())))
    next((spoilt / "clean").glob("*.parquet")).unlink()
    (spoilt / "extra.txt").write_text("")
    code, out, _ = rbtc("verify", spoilt)
    lines = out.splitlines()
    assert code == 1
    assert [line.split(":")[0] for line in lines] == ["bad", "bad", "missing", "surplus"]
    assert lines[0].startswith("bad: CD_AB/test-00000-of-00001.parquet: sha256")
    assert lines[1].startswith("bad: README.md: 12 bytes instead of")
    assert lines[3] == "surplus: extra.txt"


def test_files_of_the_hubs_own_are_no_surplus(spoilt: Path) -> None:
    (spoilt / ".gitattributes").write_text("*.parquet filter=lfs")
    (spoilt / ".cache" / "huggingface").mkdir(parents=True)
    (spoilt / ".cache" / "huggingface" / "x").write_text("")
    assert manifest.problems(spoilt) == []


def test_a_manifest_that_lies_about_its_data_is_bad(spoilt: Path) -> None:
    path = spoilt / manifest.NAME
    path.write_text(path.read_text().replace(manifest.read(spoilt).data_sha256, "0" * 64))
    assert manifest.problems(spoilt) == ["bad: manifest.json: data_sha256 is not that of its files"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": 1}', "\xff"])
def test_a_broken_manifest_is_one_line(text: str, spoilt: Path, rbtc: Callable[..., Done]) -> None:
    (spoilt / manifest.NAME).write_bytes(text.encode("latin-1"))
    code, out, err = rbtc("verify", spoilt)
    assert code == 1 and out == "" and err.startswith("rbtc: ") and err.count("\n") == 1


def test_a_local_folder_of_another_version_is_refused(build: Path, release: Path) -> None:
    manifest.check_revision(release, None)
    manifest.check_revision(release, "v1.0.0")
    assert manifest.resolve_dataset(str(release), "1.0.0") == release
    for revision in ("v1.0.1", "main", "v1.0"):
        with pytest.raises(UserError, match=r"is version 1.0.0"):
            manifest.resolve_dataset(str(release), revision)
    with pytest.raises(UserError, match="unreleased build"):
        manifest.check_revision(build, "v1.0.0")


def test_a_name_that_is_neither_folder_nor_hub_id_is_one_line() -> None:
    with pytest.raises(UserError, match="no dataset at nowhere"):
        manifest.resolve_dataset("nowhere")


# --- secrets ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["HF_TOKEN", "OPENAI_API_KEY"])
def test_a_planted_token_stops_the_release_and_is_not_repeated(
    variable: str, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "planted-token-0123456789"
    monkeypatch.setenv(variable, secret)
    report = msgspec.json.decode((copy / "build_report.json").read_bytes())
    report["generators"] = {"redundant": {"generator": f"http://x/?key={secret}", "asked": 1}}
    (copy / "build_report.json").write_bytes(msgspec.json.encode(report))
    with pytest.raises(UserError, match=f"holds the value of {variable}") as refused:
        released(copy, tmp_path / "out")
    assert secret not in str(refused.value)


def test_a_token_inside_compressed_rows_is_found(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    words = pq.read_table(next((copy / "clean").glob("*.parquet")))["messages"][0][0]["content"].as_py()
    monkeypatch.setenv("HF_TOKEN", words[:40])
    with pytest.raises(UserError, match=r"test-00000-of-00001\.parquet holds the value of HF_TOKEN"):
        released(copy, tmp_path / "out")


def test_no_produced_file_or_line_holds_the_token(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rbtc: Callable[..., Done]
) -> None:
    secret = "planted-token-0123456789"
    for variable in ("HF_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "SOME_PASSWORD"):
        monkeypatch.setenv(variable, secret)
    out = tmp_path / "out"
    assert rbtc("release", build, "--version", "1.0.0", "--out", out)[0] == 0
    assert rbtc("verify", out)[0] == 0
    for path in out.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()
    for arguments in (
        ("release", build, "--version", "x", "--out", out),
        ("verify", build),
        ("diff", out, "?"),
    ):
        code, text, error = rbtc(*arguments)
        assert code == 1 and secret not in text + error
