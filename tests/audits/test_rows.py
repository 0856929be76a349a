"""What the pass over the rows hands on: the tools that a judge is asked about, and the plain columns."""

import msgspec
import pytest

from robustbench_tc.audits.plain_columns import plain_columns
from robustbench_tc.audits.rows import NewTool, RowChecks
from robustbench_tc.builders import answerable
from robustbench_tc.builders.perturb import REGISTRY, cases
from robustbench_tc.builders.plan import row_dict
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import Message, Sample, Tool, dumps

CLEAN = cases.CLEAN["table"]
ASKED = CLEAN.messages[0]


def new_tools(row: Sample) -> list[NewTool]:
    checks = RowChecks(self_check=self_check, unit_checks=lambda clean, row: [], golds=answerable.classes)
    checks.check("clean", 0, [row_dict(CLEAN)])
    return list(checks.check(row.type_code, 0, [row_dict(row)]).new_tools)


@pytest.mark.parametrize(
    "messages",
    [
        (ASKED,),
        (Message("user", "Hello."), Message("assistant", "What do you need?"), ASKED),
        (Message("system", "Be brief."), ASKED, Message("assistant", "One moment.")),
    ],
    ids=["alone", "after-another", "before-an-answer"],
)
def test_the_judge_of_a_new_tool_is_shown_the_last_thing_that_the_user_said(
    messages: tuple[Message, ...],
) -> None:
    made = cases.row_of(REGISTRY["redundant"], REGISTRY["redundant"].golden[0])
    shown = new_tools(msgspec.structs.replace(made, messages=messages))
    brought = [tool for tool in made.tools if tool not in CLEAN.tools]
    assert {(tool.name, tool.description) for tool in shown} == {(t.name, t.description) for t in brought}
    assert {tool.query for tool in shown} == {"Book 2 seats at Luna tonight."}
    assert {tool.clean_id for tool in shown} == {CLEAN.clean_id}
    assert {msgspec.json.decode(tool.gold, type=Tool).name for tool in shown} == {"reserve"}


def test_a_row_of_another_type_brings_nothing_to_judge() -> None:
    made = cases.row_of(REGISTRY["redundant"], REGISTRY["redundant"].golden[0])
    assert new_tools(msgspec.structs.replace(made, type_code="same_name_A")) == []


def test_a_row_without_golden_answers_has_an_empty_gold_call() -> None:
    row = msgspec.structs.replace(CLEAN, golden_answers=())
    assert plain_columns({"query": ASKED.content, "gold_call": ""}, row) == ""
    said = plain_columns({"query": ASKED.content, "gold_call": "reserve(place='Luna', seats=2)"}, row)
    assert said == "there is no gold call"
    assert plain_columns({"query": ASKED.content, "gold_call": ""}, CLEAN), dumps(CLEAN.golden_answers)
