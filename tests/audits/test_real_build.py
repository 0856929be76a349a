"""The real benchmark: it passes the whole gate, and defects planted in it are caught."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from robustbench_tc.audits.expectations.configs import pinned
from robustbench_tc.audits.report import AuditReport
from robustbench_tc.builders.build import BuildSpec, build
from robustbench_tc.builders.sources import read
from robustbench_tc.dataset_cards.render import benchmark_card
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import Message

from . import builds, defects


@pytest.fixture(scope="module")
def paper(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper") / "robustbench-tc"
    spec = BuildSpec(profile="paper", sources=shared / "sources")
    build(spec, folder, card=benchmark_card, accept=self_check)
    return folder


@pytest.fixture(scope="module")
def report(paper: Path, shared: Path) -> AuditReport:
    def pools() -> Iterable[tuple[str, Sequence[Message]]]:
        return ((sample.id, sample.messages) for sample in read(shared / "sources", "full").samples)

    return builds.audit(paper, pool_queries=pools)


def test_it_passes_the_whole_gate(report: AuditReport) -> None:
    assert [(one.id, one.reason, one.failures[:3]) for one in report.blocking] == []
    assert report.passed and report.counts()["waived"] == 0


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


def test_the_floor_is_the_papers_count_but_for_texts_that_do_not_exist(shared: Path) -> None:
    facts = json.loads((shared / "spec" / "paper" / "facts.json").read_bytes())["per_type_n"]
    nothing_to_rewrite = {"paraphrase_tool_description": 2, "paraphrase_parameter_description": 3}
    floor = pinned()["paper"]["paper_rows"]
    assert floor == {code: n - nothing_to_rewrite.get(code, 0) for code, n in facts.items()}
    assert all(pinned()["paper"]["rows"][code] >= n for code, n in floor.items())


def test_queries_of_the_199_that_the_pools_repeat_are_listed(report: AuditReport) -> None:
    check = builds.find(report, "contamination.pools")
    assert check.applied > 2_500 and report.pool_overlaps
    assert len(report.near_duplicates) >= 3


def test_nothing_but_hand_made_strings_of_upstream_is_on_the_allow_list(paper: Path) -> None:
    from robustbench_tc.audits import credentials
    from robustbench_tc.schema import Sample, record

    rows = builds.rows(paper, "clean")
    used = {
        credentials.key(sample.clean_id, find)
        for sample in (record(row, Sample) for row in rows)
        for find in credentials.in_clean(sample)
    }
    assert used == credentials.allowlist()


SOME = (
    "a lost digit",
    "a swapped price",
    "a changed gold value",
    "a vendor's key in a new text",
    "a duplicate id",
)


def test_defects_in_the_real_build_are_caught(paper: Path, tmp_path: Path) -> None:
    folder = builds.copy(paper, tmp_path / "robustbench-tc")
    planted = defects.plant_rows(folder, SOME)
    audit = builds.audit(folder)
    for defect in (d for d in defects.ROWS if d.name in SOME):
        found = builds.find(audit, defect.check)
        assert planted[defect.name] in [failure.where for failure in found.failures], defect.name
