"""`rbtc audit` from end to end: exit codes, files, one-line errors, no key anywhere."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.outcomes import Audited
from robustbench_tc.audits.report import AuditReport
from robustbench_tc.shown import plain
from tests.conftest import Rbtc
from tests.loopback import Fault, LoopbackServer, error_body

from . import builds, defects


@pytest.fixture(autouse=True)
def no_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RBTC_SOURCES", str(tmp_path / "nowhere"))


def test_a_sound_build_exits_with_0_and_leaves_its_report(folder: Path, rbtc: Rbtc) -> None:
    done = rbtc("audit", folder, "--json")
    assert done.code == 0, done.out
    report = json.loads(done.out)
    assert report["passed"] is True
    assert json.loads((folder / "audit_report.json").read_bytes()) == report
    assert (folder / "audit_report.html").read_text().startswith("<!doctype html>")
    assert Folder(folder).digest() == report["build"], "the reports are not part of what is audited"


def test_a_defect_exits_with_1_and_names_the_row(folder: Path, rbtc: Rbtc) -> None:

    def lose_the_gold(rows: list[builds.Row]) -> str:
        rows[0]["golden_answers"] = [[]]
        return str(rows[0]["id"])

    row = builds.edit(folder, "TD", lose_the_gold)
    done = rbtc("audit", folder)
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[0] == "robustbench-tc may NOT be released"
    assert "failed: rows.gold_is_there" in done.out and row in done.out
    shown = [line.partition(":")[0] for line in lines if line.startswith(("failed: ", "not run: "))]
    assert shown == sorted(shown) and {*shown} == {"failed", "not run"}
    [counts] = [index for index, line in enumerate(lines) if re.match(r"\d+ checks: passed ", line)]
    assert counts > max(index for index, line in enumerate(lines) if line.startswith("not run: "))
    assert "by hand-written" not in done.out and "waived: " not in done.out
    report = msgspec.json.decode((folder / "audit_report.json").read_bytes(), type=AuditReport)
    full = plain(Audited(report, full=True).shown())
    assert full.startswith(lines[0]) and "by hand-written" in full and "waived: " in full


def test_no_key_is_in_any_report_or_message(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rbtc: Rbtc
) -> None:
    builds.edit(
        folder, "query_paraphrase", lambda rows: defects.reword(rows[0], "A text that nobody judged.")
    )
    key, token = "sk-planted-0123456789abcdef", "hf_plantedPlanted0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("HF_TOKEN", token)
    store = tmp_path / "judgments.jsonl"
    with LoopbackServer(lambda body: Fault(403, error_body(f"key {key} may not"))) as server:
        done = rbtc("audit", folder, "--judge", f"tiny@{server.url}", "--n", 2, "--store", store)
    said = (
        done.out
        + done.err
        + "".join(path.read_text() for path in (*folder.glob("audit_report.*"), store) if path.exists())
    )
    assert done.code == 1
    assert key not in said and token not in said


def test_a_release_is_not_written_to(folder: Path, rbtc: Rbtc) -> None:
    (folder / "manifest.json").write_text("{}")
    assert "never changed" in rbtc("audit", folder).refusal
    assert not (folder / "audit_report.json").exists()


def test_bad_input_is_one_line(tmp_path: Path, rbtc: Rbtc) -> None:
    for arguments in ([tmp_path / "none"], ["none.parquet", "--dataset", tmp_path]):
        assert rbtc("audit", *arguments).refusal


def test_the_evidence_is_listed(audited: AuditReport) -> None:
    shown = plain(Audited(audited, full=True).shown())
    assert shown.count("constructed") == 4, "three types and the title"


def test_without_a_network_a_second_look_says_so(
    bundled: Path, monkeypatch: pytest.MonkeyPatch, rbtc: Rbtc
) -> None:
    def unreachable(url: str) -> tuple[int, str]:
        raise OSError("Network is unreachable")

    monkeypatch.setattr("robustbench_tc.audits.outcomes.fetch_page", unreachable)
    assert "was not checked" in rbtc("audit", bundled, "--refetch").refusal


def test_what_nobody_reviewed_is_shown_and_written(
    folder: Path, bundled: Path, tmp_path: Path, rbtc: Rbtc
) -> None:
    out = tmp_path / "unreviewed.json"
    done = rbtc("audit", bundled, "--review-out", out)
    assert done.code == 0 and "0 finds to review" in done.out
    assert json.loads(out.read_bytes()) == [], "the starter samples hold nothing"

    def write_a_password(rows: list[builds.Row]) -> str:
        rows[0]["messages"][0]["content"] += " My password is kelp4river."
        return str(rows[0]["id"])

    row = builds.edit(folder, "clean", write_a_password)
    refused = rbtc("audit", folder, "--review-out", out)
    assert refused.refusal and json.loads(out.read_bytes()) == [], "not ours to replace"
    out = tmp_path / "found.json"
    done = rbtc("audit", folder, "--review-out", out)
    assert "kelp4river" in done.out and row in done.out
    (group,) = json.loads(out.read_bytes())
    assert (group["rule"], group["source"], group["reason"]) == ("assigned", "bfcl_v3", "")
    assert len(group["hashes"]) == 1 and "kelp" not in out.read_text()


def test_of_a_run_the_answers_are_held_against_the_dataset_that_it_asked(
    bundled: Path, tmp_path: Path, rbtc: Rbtc
) -> None:
    run = tmp_path / "run"
    assert rbtc("eval", bundled, "--agent", "oracle", "--types", "CD", "--out", run).code == 0
    done = rbtc("audit", run)
    assert done.code == 0 and done.out.startswith("scores.parquet fits its dataset\n")
    assert rbtc("audit", run / "predictions.parquet", "--dataset", tmp_path / "gone").refusal
    (run / "scores.parquet").unlink()
    other = builds.copy(bundled, tmp_path / "other")
    builds.edit(other, "CD", lambda rows: rows[0]["messages"][-1].update(content="Something else."))
    done = rbtc("audit", run, "--dataset", other)
    assert done.code == 1 and "predictions.parquet does NOT fit its dataset" in done.out
    assert "failed: rows.asked_in_these_words: 1 of" in done.out
