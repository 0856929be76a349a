"""What the gate says of rows beyond the core: offers, context before a request, rows without a right call."""

from typing import Any

import msgspec
import pytest

from robustbench_tc.audits.checks import HOLDS, verdict
from robustbench_tc.audits.invariants import INVARIANTS, allowed, gold, reward
from robustbench_tc.audits.invariants.base import is_for
from robustbench_tc.audits.invariants.reward import least_factor
from robustbench_tc.builders.perturb import REGISTRY
from robustbench_tc.schema import Call, Change, Sample

from ..builders.perturb import cases


@pytest.mark.parametrize(
    ("code", "times"),
    [
        ("factor_1_5", 1.5),
        ("factor_5", 5),
        ("factor_100", 100),
        ("CD", 4),
        ("abbreviated_3", 4),
        ("flood_3", 4),
    ],
)
def test_a_distractor_is_worse_by_the_factor_of_its_type(code: str, times: float) -> None:
    assert least_factor(code) == times


@pytest.mark.parametrize(
    ("code", "held"), [("CD", True), ("CD_swap", True), ("CD_inv", False), ("flood_3", False)]
)
def test_only_offers_between_equal_tools_are_held_to_what_makes_them_equal(code: str, held: bool) -> None:
    named = {name: check for name, check in INVARIANTS.items() if check.holds.__module__ == reward.__name__}
    assert set(named) == {
        "exactly_one_counterpart",
        "annotations_in_order",
        "counterpart_is_named_as_its_type_says",
        "other_tools_look_no_better",
        "gold_is_the_unique_best",
    }
    assert {is_for(check, code) for check in named.values()} == {held}


# --- What the gate says of rows in which no call is right, and of tools that have gone


TABLE = cases.CLEAN["table"]


def row_of(code: str) -> Sample:
    return cases.row_of(code)


def with_(row: Sample, **fields: Any) -> Sample:
    return msgspec.structs.replace(row, **fields)


def test_a_removed_tool_is_named_by_the_diff() -> None:
    row = row_of("gold_removed")
    assert verdict(allowed.diff_explains_the_row, row, TABLE) == HOLDS
    assert allowed.differences(row, TABLE) <= set(REGISTRY["gold_removed"].may_change)
    (place,) = (i for i, one in enumerate(row.changes) if one.path == "/tools/1")
    unsaid = (*row.changes[:place], *row.changes[place + 1 :])
    hidden = "the tools hold a change that the diff does not name"
    assert verdict(allowed.diff_explains_the_row, with_(row, changes=unsaid), TABLE) == hidden
    for path, said in (("/tools/0", hidden), ("/tools/7", "/tools/7 is not that in its row")):
        other = with_(row, changes=(*unsaid, Change(path, row.changes[place].before, None)))
        assert verdict(allowed.diff_explains_the_row, other, TABLE) == said
    assert verdict(allowed.diff_explains_the_row, with_(row, tools=TABLE.tools), TABLE) == hidden


def test_as_many_tools_may_come_as_go() -> None:
    row = row_of("near_miss")
    assert len(row.tools) == len(TABLE.tools)
    assert "the set of tools" in allowed.differences(row, TABLE)
    assert "tool names" not in allowed.differences(row, TABLE)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (((),), HOLDS),
        ((), "there is no accepted answer"),
        (((), ()), "an answer is accepted beside that without calls"),
        (((Call("find_menu", {}),),), "an answer is accepted beside that without calls"),
    ],
)
def test_no_call_is_the_one_right_answer(answers: Any, said: str) -> None:
    row = with_(row_of("gold_removed"), golden_answers=answers)
    assert verdict(gold.gold_is_there, row, TABLE) == said


def test_an_empty_answer_is_for_types_that_say_so() -> None:
    due = row_of("call_due")
    assert verdict(gold.gold_is_there, due, TABLE) == HOLDS
    for answers in (((),), (*TABLE.golden_answers, ())):
        assert (
            verdict(gold.gold_is_there, with_(due, golden_answers=answers), TABLE)
            == "an accepted answer holds no call"
        )


def test_an_accepted_empty_answer_stands_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gold, "no_call", lambda row: "accepted")
    due = row_of("call_due")
    said = "not one accepted answer is without calls, beside one with calls"
    assert verdict(gold.gold_is_there, due, TABLE) == said
    assert verdict(gold.gold_is_there, with_(due, golden_answers=(*TABLE.golden_answers, ())), TABLE) == HOLDS
    assert verdict(gold.gold_is_there, with_(due, golden_answers=((), ())), TABLE) == said


def test_no_tool_is_meant_where_no_call_is_right() -> None:
    row = row_of("missing_value")
    assert (
        verdict(gold.gold_at_its_index, row, TABLE)
        == verdict(gold.gold_index_means_the_clean_tool, row, TABLE)
        == HOLDS
    )
    pointing = with_(row, gold_tool_index=1)
    assert (
        verdict(gold.gold_at_its_index, pointing, TABLE)
        == "gold_tool_index points at a tool, and none is right"
    )
