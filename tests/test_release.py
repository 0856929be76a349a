"""From a build to an immutable release, and what refuses to become one."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pyarrow.parquet as pq
import pytest

from robustbench_tc.audits import gate
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.report import AuditReport, Check
from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs
from robustbench_tc.io import manifest, marker, resolve
from robustbench_tc.io.resolve import version_of
from robustbench_tc.release import freeze

from .conftest import Done
from .refusals import refuses
from .released import CODES, MOMENT, released, report_says, small_build, verdict


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


def test_a_release_holds_the_audited_bytes_and_states_them_file_by_file(build: Path, release: Path) -> None:
    frozen = manifest.read_manifest(release)
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
        "eval.yaml",
        "build_report.json",
        "build_report.md",
        marker.AUDIT,
    ):
        assert name in frozen.files
    assert frozen.version == "1.0.0" and frozen.tag == "v1.0.0"
    assert frozen.gate is not None and frozen.gate.passed and frozen.gate.checks == 1
    assert set(frozen.rows) == {"clean", *CODES}
    assert frozen.seed == 0 and frozen.profile == "full"


def test_the_manifest_hashes_data_as_the_audit_does(build: Path) -> None:
    files = {name: manifest.entry(build / name) for name in manifest.files_of(build)}
    assert manifest.digest(manifest.data_files(files, "robustbench-tc")) == Folder(build).digest()


def test_two_releases_of_one_build_differ_in_the_moment_alone(
    build: Path, release: Path, tmp_path: Path
) -> None:
    def again(name: str, moment: str) -> tuple[Path, set[str]]:
        out = tmp_path / name
        with patch.object(gate, "audit", verdict()):
            freeze.release(build, out, version="1.0.0", created_at=moment)
        other = {
            p for p in manifest.files_of(release) if (out / p).read_bytes() != (release / p).read_bytes()
        }
        return out, other

    same, other = again("hour", "2026-11-20T23:59:59Z")
    assert other == set() and MOMENT != "2026-11-20T23:59:59Z"
    ours, theirs = manifest.read_manifest(release), manifest.read_manifest(same)
    assert msgspec.structs.replace(theirs, created_at=ours.created_at) == ours
    assert again("day", "2026-12-31T00:00:00Z")[1] == {"croissant.json"}
    _, other = again("year", "2030-01-01T00:00:00Z")
    assert other == {"croissant.json", "README.md", "build_report.json"}  # the year of the citation


def test_a_release_has_a_version_and_the_fingerprint_of_its_build(build: Path, tmp_path: Path) -> None:
    released(build, tmp_path / "out", "2.3.4")
    report = msgspec.json.decode((tmp_path / "out" / "build_report.json").read_bytes())
    assert "dataset_version" not in report
    assert (
        report["fingerprint"]
        == inputs.load_samples(str(build)).fingerprint()
        == inputs.load_samples(str(tmp_path / "out")).fingerprint()
    )
    assert (version_of(build), version_of(tmp_path / "out")) == (None, "2.3.4")
    assert "# RobustBench-TC 2.3.4" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("text", ["", "[]", "\xff", '{"rows": 1}', '{"files": 1}', "[" * 100_000])
def test_a_broken_build_report_is_one_line(text: str, copy: Path, tmp_path: Path) -> None:
    (copy / "build_report.json").write_bytes(text.encode("latin-1"))
    refused = refuses(r"build_report\.json", released, copy, tmp_path / "out")
    assert len(refused.splitlines()) == 1 and not (tmp_path / "out").exists()


def test_an_existing_folder_is_never_overwritten(build: Path, release: Path) -> None:
    before = manifest.read_manifest(release)
    refuses("never overwritten", released, build, release, "1.0.1")
    assert manifest.read_manifest(release) == before and manifest.problems(release) == []


def test_a_release_is_not_released_again(release: Path, tmp_path: Path) -> None:
    refuses("is a release already", released, release, tmp_path / "out", "1.0.1")


def test_a_failed_release_leaves_nothing_behind(copy: Path, tmp_path: Path) -> None:
    report_says(copy, lengths={"CD_AB": "x"})
    refuses(r"build_report\.json", released, copy, tmp_path / "out" / "release")
    assert [path.name for path in (tmp_path / "out").iterdir() if not path.name.endswith(".lock")] == []


VERSIONS = ["1.0", "1", "01.0.0", "latest", "1.0.0 ", "", "../1.0.0", "1.0.0-..", "1.0.0-", "1.0.0-01"]
VERSIONS += ["1.0.0-a..b", "1.0.0+build", "1.0.0-a.lock", "1.0.0\n", "１.0.0", f"1.0.0-{'a' * 99}", "vv1.0.0"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_is_semantic(version: str, build: Path, tmp_path: Path) -> None:
    refuses("semantic version", released, build, tmp_path / "out", version)


# --- the gate (the real one: test_release_gate.py) ------------------------------------------------------


def failing(**how: Any) -> Check:
    return Check(id="rows.digits_kept", protects="Digits.", **{"status": "failed", "failed": 1, **how})


def test_a_red_gate_is_refused_and_names_its_checks(copy: Path, tmp_path: Path) -> None:
    refuses(r"red \(rows.digits_kept\)", released, copy, tmp_path / "out", "1.0.0", failing())
    refuses("red", released, copy, tmp_path / "out", "1.0.0", failing(status="not_run", failed=0))
    assert not (tmp_path / "out").exists()


def test_a_waived_check_is_let_through_and_named(copy: Path, tmp_path: Path) -> None:
    check = failing(status="waived", reason="known upstream", expires="2027-01-01")
    frozen = released(copy, tmp_path / "out", "1.0.0", check)
    assert frozen.gate is not None and frozen.gate.waived == ("rows.digits_kept",)
    assert "rows.digits_kept" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("said", [{"passed": True}, {"checks": ()}, {"build": "0" * 64}])
def test_a_verdict_that_contradicts_itself_is_refused(
    said: dict[str, Any], copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = () if "build" in said else (failing(),)
    monkeypatch.setattr(gate, "audit", verdict(*checks, **said))
    out = tmp_path / "out"
    refuses(r"red|about other data", freeze.release, copy, out, version="1.0.0", created_at=MOMENT)
    assert not (tmp_path / "out").exists()


def test_what_is_released_is_the_copy_that_was_audited(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build that changes while it is audited does not slip by."""
    path = next((copy / "CD_AB").glob("*.parquet"))
    before = path.read_bytes()

    def audit(folder: Path, **options: Any) -> AuditReport:
        path.write_bytes(b"other bytes")
        return verdict()(folder)

    out = tmp_path / "out"
    monkeypatch.setattr(gate, "audit", audit)
    freeze.release(copy, out, version="1.0.0", created_at=MOMENT)
    assert (out / path.relative_to(copy)).read_bytes() == before
    assert manifest.problems(out) == []


def test_an_error_of_the_audit_names_the_build_and_not_its_copy(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def audit(folder: Path, **options: Any) -> AuditReport:
        raise UserError(f"{folder}/clean is broken")

    monkeypatch.setattr(gate, "audit", audit)
    refused = refuses(".", freeze.release, copy, tmp_path / "out", version="1.0.0", created_at=MOMENT)
    assert refused == f"{copy}/clean is broken"


def test_a_file_that_the_build_does_not_name_is_refused(copy: Path, tmp_path: Path) -> None:
    (copy / "notes.txt").write_text("remember the milk")
    refuses(r"notes.txt, which build_report.json does not name", released, copy, tmp_path / "out")
    (copy / "notes.txt").unlink()
    (copy / "CD_AB" / "test-00001-of-00002.parquet").write_bytes(b"")
    refuses(
        r"test-00001-of-00002.parquet, which build_report.json does not", released, copy, tmp_path / "out"
    )


def test_a_link_is_refused(copy: Path, tmp_path: Path) -> None:
    path = next((copy / "CD_AB").glob("*.parquet"))
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    refuses(r"holds the link CD_AB/test-00000-of-00001.parquet", released, copy, tmp_path / "out")


def test_the_starter_samples_are_released_on_trial_only(copy: Path, tmp_path: Path) -> None:
    report_says(copy, profile="bundled")
    refuses("starter samples, which are never published", released, copy, tmp_path / "out")
    assert released(copy, tmp_path / "out", trial=True).profile == "bundled"


def test_a_folder_that_is_no_build_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refuses("is not a build", released, tmp_path / "empty", tmp_path / "out")


# --- revisions ----------------------------------------------------------------------------------------


def test_a_local_folder_of_another_version_is_refused(build: Path, release: Path) -> None:
    resolve.check_revision(release, None)
    resolve.check_revision(release, "v1.0.0")
    assert resolve.resolve_dataset(str(release), "1.0.0") == release
    for revision in ("v1.0.1", "main", "v1.0"):
        refuses(r"is version 1.0.0", resolve.resolve_dataset, str(release), revision)
    refuses("unreleased build", resolve.check_revision, build, "v1.0.0")


def test_a_name_that_is_neither_folder_nor_hub_id_is_one_line() -> None:
    refuses("no dataset at nowhere", resolve.resolve_dataset, "nowhere")


# --- secrets ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["HF_TOKEN", "OPENAI_API_KEY", "OPENAI_APIKEY", "aws_credentials"])
def test_a_planted_token_stops_the_release_and_is_not_repeated(
    variable: str, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "planted-token-0123456789"
    monkeypatch.setenv(variable, secret)
    report_says(copy, generators={"redundant": {"generator": f"http://x/?key={secret}", "asked": 1}})
    assert secret not in refuses(f"holds the value of {variable}", released, copy, tmp_path / "out")


def test_a_token_inside_compressed_rows_is_found(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = pq.read_table(next((copy / "clean").glob("*.parquet")))["messages"][0][0]["content"].as_py()
    monkeypatch.setenv("HF_TOKEN", words[:40])
    refuses(r"test-00000-of-00001\.parquet holds the value of HF_TOKEN", released, copy, tmp_path / "out")


def test_a_token_in_a_footer_is_found(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "planted-token-0123456789")
    path = next((copy / "clean").glob("*.parquet"))
    table = pq.read_table(path)
    notes = {**(table.schema.metadata or {}), b"by": b"planted-token-0123456789"}
    pq.write_table(table.replace_schema_metadata(notes), path)
    report_says(copy)
    refuses("holds the value of HF_TOKEN", released, copy, tmp_path / "out")


def test_no_produced_file_or_line_holds_the_token(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rbtc: Callable[..., Done]
) -> None:
    secret = "planted-token-0123456789"
    for variable in ("HF_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "SOME_PASSWORD"):
        monkeypatch.setenv(variable, secret)
    out = tmp_path / "out"
    released(build, out)
    assert rbtc("verify", out)[0] == 0
    for path in out.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()
    for arguments in (
        ("release", build, "--version", "x", "--out", out),
        ("verify", build),
        ("data", "diff", out, "?"),
    ):
        code, text, error = rbtc(*arguments)
        assert code == 1 and secret not in text + error
