"""`rbtc audit` from end to end: exit codes, files, one-line errors, no key anywhere."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from robustbench_tc.audits.folder import Folder
from robustbench_tc.cli.audit import app
from robustbench_tc.errors import UserError
from tests.loopback import Fault, LoopbackServer, error_body

from . import builds, defects


def rbtc_audit(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def no_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RBTC_SOURCES", str(tmp_path / "nowhere"))


def test_a_sound_build_exits_with_0_and_leaves_its_report(bundled: Path, tmp_path: Path) -> None:
    folder = builds.copy(bundled, tmp_path / "robustbench-tc")
    done = rbtc_audit(folder, "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["passed"] is True
    assert json.loads((folder / "audit_report.json").read_bytes()) == report
    assert (folder / "audit_report.html").read_text().startswith("<!doctype html>")
    assert Folder(folder).digest() == report["build"], "the reports are not part of what is audited"


def test_a_defect_exits_with_1_and_names_the_row(bundled: Path, tmp_path: Path) -> None:
    folder = builds.copy(bundled, tmp_path / "robustbench-tc")

    def lose_the_gold(rows: list[builds.Row]) -> str:
        rows[0]["golden_answers"] = [[]]
        return str(rows[0]["id"])

    row = builds.edit(folder, "TD", lose_the_gold)
    done = rbtc_audit(folder)
    assert done.exit_code == 1
    assert "failed: rows.gold_is_there" in done.output and row in done.output
    assert "may NOT be released" in done.output and "by hand-written" in done.output


def test_no_key_is_in_any_report_or_message(
    bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = builds.copy(bundled, tmp_path / "robustbench-tc")
    builds.edit(
        folder, "query_paraphrase", lambda rows: defects.reword(rows[0], "A text that nobody judged.")
    )
    key, token = "sk-planted-0123456789abcdef", "hf_plantedPlanted0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("HF_TOKEN", token)
    store = tmp_path / "judgments.jsonl"
    with LoopbackServer(lambda body: Fault(403, error_body(f"key {key} may not"))) as server:
        done = rbtc_audit(folder, "--judge", f"tiny@{server.url}", "--n", 2, "--store", store)
    said = (
        done.output
        + repr(done.exception)
        + "".join(path.read_text() for path in (*folder.glob("audit_report.*"), store) if path.exists())
    )
    assert done.exit_code == 1
    assert key not in said and token not in said


def test_a_release_is_not_written_to(bundled: Path, tmp_path: Path) -> None:
    folder = builds.copy(bundled, tmp_path / "robustbench-tc")
    (folder / "manifest.json").write_text("{}")
    done = rbtc_audit(folder)
    assert isinstance(done.exception, UserError) and "never written to" in str(done.exception)
    assert not (folder / "audit_report.json").exists()


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    for arguments in ([tmp_path / "none"], ["predictions", "none", "--dataset", tmp_path]):
        done = rbtc_audit(*arguments)
        assert isinstance(done.exception, UserError) and "\n" not in str(done.exception)


def test_the_evidence_is_listed() -> None:
    done = rbtc_audit("evidence")
    assert done.exit_code == 0
    assert done.output.count("constructed") == 4, "three types and the title"
    assert len(json.loads(rbtc_audit("evidence", "--json").stdout)) == 22


def test_without_a_network_a_second_look_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(url: str) -> tuple[int, str]:
        raise OSError("Network is unreachable")

    monkeypatch.setattr("robustbench_tc.cli.audit.fetch_page", unreachable)
    done = rbtc_audit("evidence", "--refetch")
    assert isinstance(done.exception, UserError) and "not looked at again" in str(done.exception)


def test_what_nobody_reviewed_is_shown_and_written(bundled: Path, tmp_path: Path) -> None:
    out = tmp_path / "unreviewed.json"
    done = rbtc_audit("review", bundled, "--out", out)
    assert done.exit_code == 0 and "0 finds to review" in done.output
    assert json.loads(out.read_bytes()) == [], "the starter samples hold nothing"
    folder = builds.copy(bundled, tmp_path / "robustbench-tc")

    def write_a_password(rows: list[builds.Row]) -> str:
        rows[0]["messages"][0]["content"] += " My password is kelp4river."
        return str(rows[0]["id"])

    row = builds.edit(folder, "clean", write_a_password)
    refused = rbtc_audit("review", folder, "--out", out)
    assert isinstance(refused.exception, UserError) and json.loads(out.read_bytes()) == [], (
        "not ours to replace"
    )
    out = tmp_path / "found.json"
    done = rbtc_audit("review", folder, "--out", out)
    assert "kelp4river" in done.output and row in done.output
    (group,) = json.loads(out.read_bytes())
    assert (group["rule"], group["source"], group["reason"]) == ("assigned", "bfcl_v3", "")
    assert len(group["hashes"]) == 1 and "kelp" not in out.read_text()
