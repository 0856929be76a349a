"""The real benchmark: it passes the whole gate, and defects planted in it are caught."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from robustbench_tc import taxonomy
from robustbench_tc.audits import paraphrase, shortcuts
from robustbench_tc.audits.expectations.benchmark import pinned
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.judgments import recorded_judge
from robustbench_tc.audits.report import AuditReport, Shortcut
from robustbench_tc.audits.scan import Scan
from robustbench_tc.builders.perturb import REGISTRY
from robustbench_tc.builders.sources import read_pool

from ..conftest import NIGHTLY, ROOT
from . import blind_table, builds, defects


@pytest.fixture(scope="module")
def report(paper: Path, shared: Path) -> AuditReport:
    return builds.audit(paper, sources=shared / "sources")


def test_it_passes_the_whole_gate(report: AuditReport) -> None:
    assert [(one.id, one.reason, one.failures[:3]) for one in report.blocking] == []
    assert report.passed
    assert [one.id for one in report.checks if one.status == "waived"] == []


def test_every_written_text_is_judged_and_pinned_and_no_tool_is_in_doubt(report: AuditReport) -> None:
    assert all(score.pinned == score.n for score in report.paraphrase)
    found = report.redundant
    assert found is not None
    assert (found.population, found.asked, found.pinned, found.could_answer) == (1193, 1193, 1193, 0)
    assert builds.find(report, "paraphrase.canaries").applied == 20


def test_an_edited_new_tool_has_no_judgment(paper: Path, tmp_path: Path) -> None:
    """Another description, another parameter's; row and diff agree, and what was judged has another hash."""
    folder = builds.some_configs(paper, tmp_path / "robustbench-tc", "clean", "redundant")

    def sharpen(rows: list[builds.Row]) -> list[str]:
        for row, words in zip(
            rows, ("and answers the request", "The value that is asked for."), strict=False
        ):
            added = next(change for change in row["changes"] if change.get("before") is None)
            tool = next(tool for tool in row["tools"] if tool == added["after"])
            if words.startswith("and"):
                tool["description"] += f" {words}"
            else:
                next(iter(tool["parameters"]["properties"].values()))["description"] = words
            added["after"] = tool
        return [row["id"] for row in rows[:2]]

    sharpened = builds.edit(folder, "redundant", sharpen)
    found = Scan(Folder(folder)).found
    judged = paraphrase.audit(found.pairs, found.new_tools, recorded_judge(build=folder))
    check = next(one for one in judged.checks if one.id == "paraphrase.redundant")
    assert check.status == "failed"
    assert set(sharpened) <= {failure.where for failure in check.failures}


def test_every_pair_is_judged_and_the_table_stands_beside_the_papers(
    report: AuditReport, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {(s.type_code, s.scope) for s in report.paraphrase} == {
        (code, scope) for code in defects.REWRITES for scope in ("sample", "all")
    }
    lines = ["", "  type, scope: pairs, mean, median, std, <= 2 | the paper"]
    for s in report.paraphrase:
        assert s.unjudged == 0 and s.mean is not None and s.mean >= 4.7
        assert s.share_low == 0 and s.upper is not None and s.limit is not None and s.upper <= s.limit
        assert s.paper is not None
        lines.append(
            f"  {s.type_code}, {s.scope}: {s.n}, {s.mean:.2f}, {s.median}, {s.std:.2f}, {s.share_low:.3f}"
            f" | {', '.join(f'{value:g}' for value in s.paper.values())}"
        )
    with capsys.disabled():
        sys.stdout.write("\n".join([*lines, ""]))


def test_the_papers_audit_is_the_printed_one(shared: Path) -> None:
    from robustbench_tc.audits.paraphrase import paper

    facts = json.loads((shared / "spec" / "paper" / "facts.json").read_bytes())
    assert paper() == facts["audit"]


def test_every_type_has_the_papers_rows_but_for_texts_that_do_not_exist(shared: Path) -> None:
    facts = json.loads((shared / "spec" / "paper" / "facts.json").read_bytes())["per_type_n"]
    stated = {kind.code: (kind.paper_rows, kind.paper_unchanged) for kind in taxonomy.types()}
    nothing_to_rewrite = {"paraphrase_tool_description": 2, "paraphrase_parameter_description": 3}
    assert stated == {code: (facts[code], nothing_to_rewrite.get(code, 0)) for code in stated}
    assert pinned("paper")["clean"] == facts["clean"]
    assert all(pinned("paper")[code] >= facts[code] - unchanged for code, (_, unchanged) in stated.items())


def test_queries_of_the_199_that_the_pools_repeat_are_listed(report: AuditReport) -> None:
    assert builds.find(report, "contamination.pools").applied > 2_500 and report.pool_overlaps
    assert len(report.near_duplicates) >= 3


def test_what_was_reviewed_is_what_upstream_has_and_no_more(shared: Path) -> None:
    """All clean rows of profile paper, by night of all pools: nothing is left to review, and nothing was
    reviewed that is not there."""
    from robustbench_tc.audits.hygiene.reviewed import groups
    from robustbench_tc.audits.hygiene.rows import RowTexts
    from robustbench_tc.builders.build import BuildSpec, prepare
    from robustbench_tc.schema import Sample, columns

    from ..known import SOURCES

    everything, shipped = RowTexts(frozenset()), RowTexts()
    found: set[str] = set()
    for profile in ("paper", "full") if NIGHTLY else ("paper",):
        for sample in read_pool(shared / "sources", profile).samples:
            raw = {name: values[0] for name, values in columns([sample], type(sample)).items()}
            found |= {find.fingerprint(flagged.text) for flagged, find in everything.to_review(raw, sample)}
            assert list(shipped.to_review(raw, sample)) == [], sample.id
    if not NIGHTLY:
        return
    spec = BuildSpec(profile="full", sources=shared / "sources", codes=("irrelevant",))
    for row in prepare(spec).plan.rows("irrelevant"):  # BFCL's own texts, which no clean row has
        if isinstance(row, Sample):
            raw = {name: values[0] for name, values in columns([row], Sample).items()}
            found |= {find.fingerprint(flagged.text) for flagged, find in everything.to_review(raw, row)}
            assert list(shipped.to_review(raw, row)) == [], row.id
    assert {one for group in groups() if group.source in SOURCES for one in group.hashes} <= found


# --- what needs no reading ----------------------------------------------------------------------------------

OFFERS = tuple(kind.code for kind in taxonomy.types() if kind.channel == "offers")


@pytest.fixture(scope="module")
def of_paper(report: AuditReport) -> dict[str, Shortcut]:
    return {one.type_code: one for one in report.shortcuts}


def test_the_figures_of_the_page_are_those_of_the_paper_profile(of_paper: dict[str, Shortcut]) -> None:
    """Moved on purpose? `make blind` writes them again."""
    match = blind_table.PLACE.search((ROOT / blind_table.DOCS).read_text("utf-8"))
    assert match is not None
    found = "\n".join(blind_table.lines(tuple(of_paper.values()))) + "\n"
    assert match.group() == match.group(1) + found + match.group(2)


def test_offers_and_same_names_without_description_need_no_reading(of_paper: dict[str, Shortcut]) -> None:
    def right(policy: str, codes: Sequence[str]) -> float:
        return sum(of_paper[code].right[policy] for code in codes) / sum(of_paper[c].rows for c in codes)

    assert len(OFFERS) == 6
    assert right("picks-best-offer", OFFERS) == right("picks-shortest-twin", OFFERS) == 1.0
    assert right("picks-longest-definition", ["same_name_A", "same_name_B", "same_name_C"]) > 0.99
    assert 0.4 < right("picks-longest-definition", ["same_name_D", "same_name_E"]) < 0.65


def test_types_that_change_no_tool_have_the_figures_of_clean(of_paper: dict[str, Shortcut]) -> None:
    clean = of_paper["clean"]
    for code in ("realistic_typos", "query_paraphrase", "transient_timeout"):
        assert (of_paper[code].right, of_paper[code].classifier) == (clean.right, clean.classifier)


def test_the_named_types_are_the_solved_ones(of_paper: dict[str, Shortcut]) -> None:
    named = {code for code, unit in REGISTRY.items() if unit.solved_without_reading}
    solved = {code for code, one in of_paper.items() if shortcuts.solved_by(one)}
    assert solved == named & set(taxonomy.codes())
