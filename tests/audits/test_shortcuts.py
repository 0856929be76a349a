"""What needs no reading: pinned figures, planted shortcuts, reasons, registries that nobody would write."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given

from robustbench_tc import taxonomy
from robustbench_tc.audits import classifier, shortcuts
from robustbench_tc.audits.classifier import Example
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.report import AuditReport, Shortcut
from robustbench_tc.schema import Tool

from ..eval.test_blind import REGISTRIES
from . import builds

# --- the gate -----------------------------------------------------------------------------------------------


def test_the_report_of_the_starter_samples_holds_every_config(audited: AuditReport) -> None:
    assert [one.type_code for one in audited.shortcuts] == ["clean", *taxonomy.codes()]
    check = builds.find(audited, "shortcuts.named")
    assert (check.status, check.applied) == ("passed", 22)
    assert "9 of 22 types are solved without reading" in check.reason


def without_reason(monkeypatch: pytest.MonkeyPatch, code: str, reason: str) -> None:
    changed = msgspec.structs.replace(taxonomy.get(code), solved_without_reading=reason)
    known = taxonomy.get
    monkeypatch.setattr(taxonomy, "get", lambda asked: changed if asked == code else known(asked))


@pytest.fixture
def few(bundled: Path, tmp_path: Path) -> Path:
    """A build of few types, to be spoilt."""
    return builds.some_configs(bundled, tmp_path / "robustbench-tc", "clean", "CD", "redundant")


def test_the_same_build_gives_the_same_figures(few: Path, audited: AuditReport) -> None:
    known = {one.type_code: one for one in audited.shortcuts}
    assert shortcuts.audit(Folder(few))[0] == tuple(known[code] for code in ("clean", "redundant", "CD"))


def test_a_solved_type_without_a_reason_fails_the_gate(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_reason(monkeypatch, "CD", "")
    named = shortcuts.audit(Folder(few))[1]
    assert named.blocks and [one.where for one in named.failures] == ["CD"]
    assert "picks-best-offer is right in 60 of 60 rows (100.0 %)" in named.failures[0].what


def test_a_reason_that_is_not_needed_is_listed(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_reason(monkeypatch, "redundant", "It was once.")
    named = shortcuts.audit(Folder(few))[1]
    assert named.status == "passed" and "redundant give a reason and need none any more" in named.reason


def test_the_classifier_alone_can_solve_a_type() -> None:
    one = Shortcut(type_code="CD", rows=10, chance=0.5, right={"picks-by-position": 5}, classifier=10)
    assert "the classifier is right in 10 of 10 rows" in shortcuts.solved_by(one)
    assert shortcuts.solved_by(Shortcut(type_code="CD", rows=10, chance=0.5, right={}, classifier=9)) == ""


def test_new_tools_in_another_case_solve_their_type(few: Path) -> None:
    """Half of the rows are enough where two new tools stand beside each original."""

    def shout(rows: list[builds.Row]) -> None:
        for row in rows:
            brought = [change["after"]["name"] for change in row["changes"] if change.get("before") is None]
            for tool in row["tools"]:
                if tool["name"] in brought:
                    tool["description"] = tool["description"].upper()

    builds.edit(few, "redundant", shout)
    named = shortcuts.audit(Folder(few))[1]
    (failure,) = named.failures
    assert named.blocks and failure.where == "redundant" and "the classifier is right in" in failure.what
    half = Shortcut(type_code="redundant", rows=10, chance=0.2, right={}, classifier=5)
    assert shortcuts.solved_by(half) == ""
    assert shortcuts.solved_by(msgspec.structs.replace(half, classifier=6))


def test_rows_that_cannot_be_looked_at_are_counted(few: Path) -> None:
    rows = len(builds.rows(few, "CD"))

    def spoil(rows: list[builds.Row]) -> None:
        rows[0]["tools"] = "[{"
        rows[1]["tools"] = "[" * 5_000
        rows[2]["golden_answers"] = '{"a": 1}'
        rows[3]["tools"], rows[3]["gold_tool_index"] = [], 7

    builds.edit(few, "CD", spoil)
    figures, named = shortcuts.audit(Folder(few))
    (of_cd,) = (one for one in figures if one.type_code == "CD")
    assert of_cd.rows == rows - 3
    assert "3 rows could not be looked at" in named.reason


def test_an_empty_build_has_nothing_to_look_at(tmp_path: Path) -> None:
    (tmp_path / "build_report.json").write_text("{}")
    figures, named = shortcuts.audit(Folder(tmp_path))
    assert figures == () and named.status == "not_run"


# --- the classifier -----------------------------------------------------------------------------------------


def pair(number: int, rng: np.random.Generator, describe: Callable[[bool], str]) -> Example:
    gold = int(rng.integers(2))
    tools = [Tool("look_up", describe(at == gold), {"type": "object"}) for at in range(2)]
    return Example(classifier.features(tools, [[0, 1]]), frozenset({gold}), number)


def test_it_finds_what_is_written_in_the_registry() -> None:
    rng = np.random.default_rng(0)
    examples = [pair(n, rng, lambda gold: "Looks up." if gold else "") for n in range(60)]
    assert classifier.right(examples) == 60


@pytest.mark.parametrize(
    "other", ["looks up tides.", "LOOKS UP TIDES.", "Looks up tides!?", "Looks (up) tide."]
)
def test_case_and_punctuation_are_among_what_it_sees(other: str) -> None:
    rng = np.random.default_rng(0)
    examples = [pair(n, rng, lambda gold: "Looks up tides." if gold else other) for n in range(60)]
    assert classifier.right(examples) == 60


def test_it_finds_nothing_where_there_is_nothing() -> None:
    rng = np.random.default_rng(0)
    examples = [pair(n, rng, lambda gold: "x" * int(rng.integers(9))) for n in range(400)]
    assert 150 < classifier.right(examples) < 250
    assert classifier.right(examples) == classifier.right(list(examples))


def test_groups_are_never_on_both_sides() -> None:
    groups = [n % 7 for n in range(50)]
    folds = classifier.folds(groups)
    assert set(folds) == set(range(classifier.FOLDS))
    assert all(len({f for f, g in zip(folds, groups, strict=True) if g == one}) == 1 for one in set(groups))


def test_what_one_group_alone_shows_is_not_carried_over() -> None:
    """All registries are one: there is nothing to train on, and the first tool is taken."""
    rng = np.random.default_rng(1)
    examples = [pair(0, rng, lambda gold: "Looks up." if gold else "") for _ in range(30)]
    assert classifier.right(examples) == sum(0 in one.gold for one in examples)


def test_no_registries_and_empty_ones_are_no_matter() -> None:
    empty = Example(classifier.features([], []), frozenset(), "a")
    assert classifier.right([]) == classifier.right([empty]) == 0


@given(REGISTRIES)
def test_features_of_any_registry_are_numbers(tools: list[Tool]) -> None:
    for groups in ([], [list(range(len(tools)))]):
        found = classifier.features(tools, groups)
        assert found.shape == (len(tools), 2 * classifier.CONTRASTS + classifier.STANDING)
        assert np.isfinite(found).all()
