"""The gate: green for a sound build, red for whatever is missing, and nothing silently skipped."""

import datetime
import re
from pathlib import Path

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.audits import gate, waivers
from robustbench_tc.audits.expectations.benchmark import configs_suite
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.invariants import INVARIANTS
from robustbench_tc.audits.invariants.base import is_for
from robustbench_tc.audits.page import render
from robustbench_tc.audits.report import AuditReport, Failure, check, not_run
from robustbench_tc.audits.scan import Scan
from robustbench_tc.audits.waivers import Waiver

from ..refusals import refuses
from . import builds

TODAY = datetime.date(2026, 11, 20)


def test_a_sound_build_passes(audited: AuditReport) -> None:
    assert [one.id for one in audited.blocking] == []
    assert audited.passed
    assert audited.profile == "bundled" and audited.kind == "benchmark"


def test_every_check_has_a_sentence_and_says_what_it_was_held_against(audited: AuditReport) -> None:
    ids = [one.id for one in audited.checks]
    assert len(set(ids)) == len(ids)
    for one in audited.checks:
        assert one.protects.endswith("."), one.id
        assert one.applied > 0 or one.status == "not_run", one.id
        if one.status == "not_run":
            assert one.reason and one.may_be_left_out, one.id


def test_every_invariant_is_a_check_and_its_docstring_is_the_sentence(audited: AuditReport) -> None:
    """Of the core: those of other types alone are asked where a build has one of them (test_extensions)."""
    found = {one.id: one.protects for one in audited.checks}
    core = {
        name: one
        for name, one in INVARIANTS.items()
        if any(is_for(one, code) for code in (taxonomy.CLEAN, *taxonomy.codes()))
    }
    assert len(core) > 20
    assert {f"rows.{name}": i.protects for name, i in core.items()}.items() <= found.items()


def test_the_report_reads_back(audited: AuditReport) -> None:
    assert msgspec.json.decode(audited.json(), type=AuditReport) == audited


def test_the_page_holds_every_check_and_needs_no_network(audited: AuditReport) -> None:
    page = render(audited)
    assert all(f'id="{one.id}"' in page for one in audited.checks)
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?![\"'#])|@import|url\(|<script", page)


def test_the_page_escapes_what_rows_say(audited: AuditReport) -> None:
    bad = check("rows.x", "A sentence.", 1, [Failure("<img src=x>", "<script>alert(1)</script>")])
    page = render(msgspec.structs.replace(audited, checks=(bad,)))
    assert "<script" not in page and "<img" not in page


def test_a_check_that_did_not_run_blocks_unless_it_may_be_left_out() -> None:
    assert not_run("a.b", "S.", "no reason").blocks
    assert not not_run("a.b", "S.", "no reason", may_be_left_out="issue 4").blocks
    assert check("a.b", "S.", 0, []).blocks, "held against nothing"
    assert not check("a.b", "S.", 1, []).blocks


def test_failures_are_bounded_counted_and_quote_no_credential() -> None:
    token = "sk-" + "a1b2c3d4" * 4
    many = check("a.b", "S.", 500, [Failure(f"row {n}", f"says {token}") for n in range(500)])
    assert many.failed == 500 and len(many.failures) == 20
    assert token not in msgspec.json.encode(many).decode()


def waived(today: datetime.date, **changes: object) -> list[str]:
    failing = [check("rows.x", "S.", 3, [Failure("row", "wrong")])]
    entry = Waiver(check="rows.x", reason="because", expires=TODAY)
    entry = msgspec.structs.replace(entry, **changes)
    found = waivers.apply(failing, [entry], kind="benchmark", profile="paper", today=today)
    return [one.status for one in found]


def test_a_waiver_holds_to_its_last_day() -> None:
    assert waived(TODAY) == ["waived", "passed"]
    assert waived(TODAY + datetime.timedelta(days=1)) == ["failed", "passed"]


def test_a_waiver_needs_a_check_and_a_reason_and_its_own_profile() -> None:
    assert waived(TODAY, check="rows.y") == ["failed", "failed"]
    assert waived(TODAY, reason=" ") == ["failed", "failed"]
    assert waived(TODAY, profile="bundled") == ["failed", "passed"]
    assert waived(TODAY, profile="paper") == ["waived", "passed"]


def test_the_shipped_waivers_are_all_used(audited: AuditReport) -> None:
    used = {one.id for one in audited.checks if one.status == "waived"}
    assert {w.check for w in waivers.shipped() if w.profile in (None, "bundled")} == used


def test_a_waiver_of_single_failures_lets_no_other_through() -> None:
    def statuses(*keys: str, number: int | None = None) -> str:
        failing = check("a.b", "S.", 9, [Failure("row", "wrong", key) for key in keys], failed=number)
        entry = Waiver(check="a.b", reason="because", expires=TODAY, only=("k1", "k2"))
        return waivers.apply([failing], [entry], kind="benchmark", profile="paper", today=TODAY)[0].status

    assert statuses("k1") == statuses("k2", "k1") == "waived"
    assert statuses("k1", "k3") == statuses("k3") == statuses("") == statuses("k1", "") == "failed"
    assert statuses("k1", number=2) == "failed", "a failure that is counted and not listed"


def test_what_is_no_build_is_said_in_one_line(tmp_path: Path) -> None:
    refuses(r"no build at .*: name the folder", Folder, tmp_path / "nothing")
    refuses(r"holds no build_report\.json", Folder, tmp_path)
    (tmp_path / "build_report.json").write_text("{")
    refuses(r"damaged", Folder, tmp_path)


def test_written_reports_lie_beside_the_build(audited: AuditReport, tmp_path: Path) -> None:
    json_path, page_path = gate.write(audited, tmp_path)
    assert json_path.read_bytes() == audited.json()
    assert page_path.read_text() == render(audited)


def test_identifiability_tells_types_with_and_without_a_preference(audited: AuditReport) -> None:
    found = {one.type_code: one for one in audited.identifiability}
    assert set(found) == {"CD", "TD", "CD_NT", "TD_NT", "CD_AB", "TD_AB"}
    for code, one in found.items():
        assert one.unique_best == one.rows > 0
        assert one.preference_stated == (0 if code.endswith("_AB") else one.rows)
        assert bool(one.note) == code.endswith("_AB")


def test_three_types_are_called_constructed(audited: AuditReport) -> None:
    constructed = {one.type_code for one in audited.evidence if one.constructed}
    assert constructed == {"realistic_typos", "paraphrase_parameter_description", "TD_AB"}


def test_two_processes_find_what_one_finds(bundled: Path, tmp_path: Path) -> None:
    folder = builds.some_configs(bundled, tmp_path / "few", "clean", "CD", "query_paraphrase", "redundant")
    one, two = (Scan(Folder(folder), processes=processes) for processes in (1, 2))
    assert one.found == two.found and len(one.counts) == 4
    assert (one.counts, one.present) == (two.counts, two.present)


def test_what_calls_itself_the_papers_profile_has_its_rows_and_its_sources(
    bundled: Path, tmp_path: Path
) -> None:
    folder = builds.some_configs(bundled, tmp_path / "robustbench-tc", "clean", "known_issues", "CD")
    path = folder / "build_report.json"
    path.write_bytes(path.read_bytes().replace(b'"profile": "bundled"', b'"profile": "paper"'))
    build = Folder(folder)
    assert build.report["profile"] == "paper"
    found = {one.id: one for one in configs_suite(Scan(build, processes=1))}
    assert {"clean", "CD"} <= {failure.where for failure in found["configs.rows_as_pinned"].failures}


def test_longer_tool_descriptions_fail() -> None:
    from types import SimpleNamespace

    from robustbench_tc.audits.expectations.benchmark import texts_suite

    def status(longer: int) -> str:
        ratios = [1.5] * longer + [1.0] * (100 - longer)
        texts = {
            "id": list(map(str, range(100))),
            "config": ["paraphrase_tool_description"] * 100,
            "length_ratio": ratios,
            "description_ratio": ratios,
        }
        checks = texts_suite(SimpleNamespace(found=SimpleNamespace(texts=texts)))  # type: ignore[arg-type]
        return next(one.status for one in checks if one.id == "texts.tool_description_length")

    assert (status(5), status(6)) == ("passed", "failed")
