"""The mutation test of the gate: every planted defect is caught, by the check that should catch it."""

import re
from pathlib import Path

import pytest

from robustbench_tc.audits import report
from robustbench_tc.audits.checks import rules
from robustbench_tc.audits.expectations import gx
from robustbench_tc.audits.judge import Item, Judgment, Recorded
from robustbench_tc.audits.report import AuditReport
from robustbench_tc.audits.rows import Pair
from robustbench_tc.builders.perturb import REGISTRY

from ..builders.perturb.planted import defects_of
from ..conftest import ROOT
from . import builds, defects
from .defects import FOLDER, ROWS, Defect
from .test_hygiene import PLANTS


@pytest.fixture(scope="module")
def of_rows(bundled: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], AuditReport]:
    """A copy with every defect of rows, each in a row of its own: what was planted, and its audit."""
    folder = builds.copy(bundled, tmp_path_factory.mktemp("rows") / "robustbench-tc")
    planted = defects.plant_rows(folder)
    with pytest.MonkeyPatch.context() as patch:  # so many at once: show them all
        patch.setattr(report, "SHOWN", 1_000)
        patch.setattr(gx, "SHOWN", 1_000)
        return planted, builds.audit_rows(folder)


@pytest.fixture(scope="module")
def of_folder(bundled: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], AuditReport]:
    """A copy with every defect of the folder, and what the gate says of it with a judge who likes no tide."""
    folder = builds.copy(bundled, tmp_path_factory.mktemp("folder") / "robustbench-tc")
    planted = {defect.name: str(defect.plant(folder)) for defect in FOLDER}
    return planted, builds.audit(folder, judge=[Recorded(low, "test")])


def low(item: Item) -> Judgment | None:
    if not isinstance(item, Pair):
        return None
    return Judgment(2 if "tide" in item.before.lower() else 5, "the port changed", "test")


def caught(defect: Defect, planted: dict[str, str], audit: AuditReport) -> None:
    found = builds.find(audit, defect.check)
    assert found.status == "failed", f"{defect.name}: {defect.check} is {found.status}"
    named = [failure.where for failure in found.failures]
    assert any(planted[defect.name].startswith(name) for name in named), (
        defect.name,
        planted[defect.name],
        named,
    )


def test_a_defect_of_a_row_is_caught_and_the_row_is_named(
    of_rows: tuple[dict[str, str], AuditReport], subtests: pytest.Subtests
) -> None:
    for defect in ROWS:
        with subtests.test(defect.name):
            caught(defect, *of_rows)


@pytest.mark.parametrize("defect", FOLDER, ids=lambda d: d.name)
def test_a_defect_of_the_folder_is_caught_and_named(
    defect: Defect, of_folder: tuple[dict[str, str], AuditReport]
) -> None:
    caught(defect, *of_folder)


def test_rows_without_a_defect_are_not_accused(of_rows: tuple[dict[str, str], AuditReport]) -> None:
    """Beyond the planted rows, only those of damaged clean rows fail, and the other of two duplicates."""
    planted, audit = of_rows
    damaged = {planted[d.name].rpartition("::")[0] for d in ROWS if d.place == "clean"}
    touched = {name.partition(" /")[0] for name in planted.values()}
    named = {f.where for check in audit.checks if check.id.startswith("rows.") for f in check.failures}
    assert {where for where in named - touched if where.rpartition("::")[0] not in damaged} == set()


ELSEWHERE = {
    "gate.waivers": "test_gate.py",
    "evidence.cases_are_complete": "test_evidence.py",
    "paraphrase.canaries": "test_paraphrase.py",
    "paraphrase.agreement": "test_paraphrase.py",
    "paraphrase.redundant": "test_paraphrase.py",
    "paraphrase.realistic_typos": "test_paraphrase.py",
    "paraphrase.paraphrase_tool_description": "test_paraphrase.py",
    "paraphrase.paraphrase_parameter_description": "test_paraphrase.py",
    "rows.no_sentence_form_stands_six_times": "tests/builders/perturb/test_context.py",
    "rows.chinese_dates_are_as_people_type_them": "tests/builders/perturb/test_language.py",
    "contamination.pools": "test_contamination.py",
    "texts.tool_description_length": "test_gate.py",
    "shortcuts.declining_needs_reading": "test_declining.py; of builds with the pack abstention",
    "secrets.files": "test_secrets.py",
    "secrets.footers": "test_secrets.py",
}
"""Checks whose defects are planted in another file of tests."""


def test_every_check_of_the_gate_has_a_planted_defect(audited: AuditReport) -> None:
    assert len({(defect.name, defect.check) for defect in (*ROWS, *FOLDER)}) == len(ROWS) + len(FOLDER)
    planted = {defect.check for defect in (*ROWS, *FOLDER)} | {plant.check for plant in PLANTS.values()}
    edits = (ROOT / "docs" / "audits.md").read_text("utf-8")  # held by tests/audits/test_planted.py
    planted |= set(re.findall(r"(?<=\| )provenance\.\w+", edits))
    # Types beyond the core: tests/builders/perturb/test_facts.py and test_extensions.py plant their defects.
    own = {f"rows.{check}" for unit in REGISTRY.values() for check, _ in defects_of(unit.code)}
    assert {rule.id for rule in rules("benchmark_rows")} <= planted | own | set(ELSEWHERE)
    assert {check.id for check in audited.checks} - planted - set(ELSEWHERE) == set()


def test_a_pair_that_is_judged_2_is_caught(of_folder: tuple[dict[str, str], AuditReport]) -> None:
    _, audit = of_folder
    failing = [c for c in audit.blocking if c.id.startswith("paraphrase.")]
    assert failing and not audit.passed
    assert any("scored 2" in f.what for c in failing for f in c.failures)
