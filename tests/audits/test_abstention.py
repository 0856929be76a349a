"""What the gate says of rows in which no call is right, and of tools that have gone."""

from typing import Any

import msgspec
import pytest

from robustbench_tc.audits.invariants import allowed, gold
from robustbench_tc.audits.invariants.base import HOLDS
from robustbench_tc.builders.perturb import REGISTRY, cases
from robustbench_tc.schema import Call, Change, Sample

TABLE = cases.CLEAN["table"]


def row_of(code: str) -> Sample:
    return cases.row_of(REGISTRY[code], REGISTRY[code].golden[0])


def with_(row: Sample, **fields: Any) -> Sample:
    return msgspec.structs.replace(row, **fields)


def test_a_removed_tool_is_named_by_the_diff() -> None:
    row = row_of("gold_removed")
    assert allowed.replay(row, TABLE) == HOLDS
    assert allowed.differences(row, TABLE) <= set(REGISTRY["gold_removed"].may_change)
    (place,) = (i for i, one in enumerate(row.changes) if one.path == "/tools/1")
    unsaid = (*row.changes[:place], *row.changes[place + 1 :])
    hidden = "the tools hold a change that the diff does not name"
    assert allowed.replay(with_(row, changes=unsaid), TABLE) == hidden
    for path in ("/tools/0", "/tools/7"):
        other = Change(path, row.changes[place].before, None)
        assert (
            allowed.replay(with_(row, changes=(*unsaid, other)), TABLE)
            == f"{path} is not the tool that was removed"
        )
    assert allowed.replay(with_(row, tools=TABLE.tools), TABLE) == hidden


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
    assert gold.gold_is_there(row, TABLE) == said


def test_an_empty_answer_is_for_types_that_say_so() -> None:
    due = row_of("call_due")
    assert gold.gold_is_there(due, TABLE) == HOLDS
    for answers in (((),), (*TABLE.golden_answers, ())):
        assert (
            gold.gold_is_there(with_(due, golden_answers=answers), TABLE)
            == "an accepted answer holds no call"
        )


def test_an_accepted_empty_answer_stands_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gold, "no_call", lambda row: "accepted")
    due = row_of("call_due")
    said = "not one accepted answer is without calls, beside one with calls"
    assert gold.gold_is_there(due, TABLE) == said
    assert gold.gold_is_there(with_(due, golden_answers=(*TABLE.golden_answers, ())), TABLE) == HOLDS
    assert gold.gold_is_there(with_(due, golden_answers=((), ())), TABLE) == said


def test_no_tool_is_meant_where_no_call_is_right() -> None:
    row = row_of("missing_value")
    assert gold.gold_at_its_index(row, TABLE) == gold.gold_index_means_the_clean_tool(row, TABLE) == HOLDS
    pointing = with_(row, gold_tool_index=1)
    assert gold.gold_at_its_index(pointing, TABLE) == "gold_tool_index points at a tool, and none is right"
