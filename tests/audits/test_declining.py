"""No rule that understands nothing tells the rows in which no call is right from their controls."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.audits import declining
from robustbench_tc.audits.declining import ENOUGH, TOLD, Asked, Example, by_overlap, by_words, held_out
from robustbench_tc.audits.folder import Folder
from robustbench_tc.builders.build import BuildSpec, build
from robustbench_tc.builders.perturb.abstention_recorded import questions
from robustbench_tc.dataset_cards.render import benchmark_card

from . import builds

CODES = ("missing_value", "answer_directly", "call_due", "gold_removed")


def made(folder: Path, **spec: Any) -> Path:
    build(BuildSpec(codes=CODES, **spec), folder, card=benchmark_card)
    return folder


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("declining") / "build", profile="bundled")


def test_both_types_of_profile_paper_must_be_read(shared: Path, tmp_path: Path) -> None:
    (check,) = declining.audit(Folder(made(tmp_path / "build", profile="paper", sources=shared / "sources")))
    assert (check.status, check.applied) == ("passed", 2), check.failures
    assert "too few" not in check.reason and check.reason.count("overlap") == 2


def test_a_type_with_few_controls_says_so(bundled: Path, tmp_path: Path) -> None:
    (check,) = declining.audit(Folder(bundled))
    assert check.status == "passed" and "missing_value: 15 rows and 15 controls are too few" in check.reason
    copy = builds.copy(bundled, tmp_path / "copy")
    shutil.rmtree(copy / "call_due")
    assert declining.audit(Folder(copy)) == []


def longer(text: str) -> str:
    return f"Tell me something, please. {text}"


def foreign(text: str) -> str:
    return "Zzz qqq?"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [(longer, "a few words of the request"), (foreign, "its overlap with the registry")],
)
def test_questions_that_a_rule_tells_are_named(
    bundled: Path, tmp_path: Path, spoil: Callable[[str], str], said: str
) -> None:
    copy = builds.copy(bundled, tmp_path / "copy")
    rows = builds.rows(copy, "answer_directly")
    for row in rows:
        row["messages"][-1]["content"] = spoil(row["messages"][-1]["content"])
    builds.write(copy, "answer_directly", rows)
    (check,) = declining.audit(Folder(copy))
    assert check.status == "failed"
    assert any(one.where == "answer_directly" and one.what.startswith(said) for one in check.failures)


def test_a_rule_is_fitted_without_the_registries_in_which_it_decides() -> None:
    """Words that stand in one registry alone tell nothing; a word of one whole side tells all."""
    own = [Example(place % 2 == 0, frozenset({f"only{place}"}), 0.0) for place in range(60)]
    groups = [place // 2 for place in range(60)]
    assert held_out(own, groups, by_words) <= 0.6
    told = [one._replace(words=one.words | {"please"} if one.due else one.words) for one in own]
    assert held_out(told, groups, by_words) == 1.0
    assert held_out(told, groups, by_overlap) <= TOLD
    apart = [one._replace(overlap=float(one.due)) for one in own]
    assert held_out(apart, groups, by_overlap) == 1.0


def test_the_overlap_is_with_the_tool_that_overlaps_most() -> None:
    rows = [
        Asked(True, "book a table", ("book a table", "sing a song"), 0),
        Asked(True, "sing", ("book a table", "sing a song"), 0),
        Asked(False, "nothing", ("book a table", "sing a song"), 0),
    ]
    first, second, third = declining.overlap(rows)
    assert first > second > third == 0


def test_questions_begin_in_many_ways() -> None:
    asked = [one.question for one in questions()]
    assert len(set(asked)) == len(asked) >= 3 * ENOUGH
    for words in (1, 2, 3):
        _, most = Counter(" ".join(one.split()[:words]) for one in asked).most_common(1)[0]
        assert most <= 0.3 * len(asked)
