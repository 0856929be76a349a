"""What the gate says of rows beyond the core: offers, context before a request, rows without a right call."""

from typing import Any

import msgspec
import pytest

from robustbench_tc.audits.checks import HOLDS, verdict
from robustbench_tc.audits.invariants import INVARIANTS, allowed, gold, reward
from robustbench_tc.audits.invariants.base import is_for
from robustbench_tc.audits.invariants.reward import least_factor
from robustbench_tc.builders.perturb import REGISTRY
from robustbench_tc.schema import Call, Change, Message, Sample, Tool

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


# --- Balanced offers: what stands beside the gold tool, and that nothing else changed


UNIT = REGISTRY["CD_inv"]
CLEAN = cases.pair(UNIT.code)[0]
ROW = cases.row_of(UNIT.code)
OTHER = next(i for i, t in enumerate(ROW.tools) if i != ROW.gold_tool_index and t not in CLEAN.tools)


def with_other(**changed: object) -> Sample:
    """The row with the tool beside the gold tool changed."""
    tool: Tool = msgspec.structs.replace(ROW.tools[OTHER], **changed)
    return msgspec.structs.replace(ROW, tools=(*ROW.tools[:OTHER], tool, *ROW.tools[OTHER + 1 :]))


def said(check: str, row: Sample) -> str | None:
    return INVARIANTS[check].verdict(row, CLEAN)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (with_other(name="another"), "not just the clean name and one numbered name"),
        (with_other(description=f"Better. {ROW.tools[OTHER].description}"), "more than annotated"),
        (
            msgspec.structs.replace(
                ROW,
                tools=tuple(
                    msgspec.structs.replace(tool, description="Else.") if tool in CLEAN.tools else tool
                    for tool in ROW.tools
                ),
            ),
            "another tool changed",
        ),
    ],
)
def test_one_look_alike_beside_the_gold_tool(row: Sample, words: str) -> None:
    assert said("one_look_alike_beside_the_gold_tool", ROW) == ""
    assert words in str(said("one_look_alike_beside_the_gold_tool", row))


def test_both_tools_have_the_clean_parameters() -> None:
    assert said("both_tools_have_the_clean_parameters", ROW) == ""
    row = with_other(parameters={"type": "object", "properties": {}})
    assert said("both_tools_have_the_clean_parameters", row)


# --- Context before a request: what of the gold may not stand there


BOOKED = cases.CLEAN["table"]


def problem(question: str) -> str | None:
    before = (Message("user", question), Message("assistant", "It is done."))
    row: Sample = msgspec.structs.replace(
        BOOKED, type_code="context_text_2k", messages=(*before, *BOOKED.messages)
    )
    return INVARIANTS["context_holds_no_gold_value"].verdict(row, BOOKED)


@pytest.mark.parametrize("question", ["Is Luna open?", "LUNA!", "Book 2 cabins.", "Please reserve a berth."])
def test_a_golden_value_or_tool_before_the_request_is_named(question: str) -> None:
    assert problem(question) == "a golden value or tool stands before the request"


@pytest.mark.parametrize(
    "question", ["Book 12 cabins.", "Is lunar dust sharp?", "Is it 20 or 102?", "Hello."]
)
def test_a_part_of_a_word_or_number_is_no_golden_value(question: str) -> None:
    assert problem(question) == ""


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
    for path in ("/tools/0", "/tools/7"):
        other = Change(path, row.changes[place].before, None)
        assert (
            verdict(allowed.diff_explains_the_row, with_(row, changes=(*unsaid, other)), TABLE)
            == f"{path} is not the tool that was removed"
        )
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
