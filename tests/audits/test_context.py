"""Context before a request: what of the gold may not stand there."""

import msgspec
import pytest

from robustbench_tc.audits.invariants import INVARIANTS
from robustbench_tc.builders.perturb import cases
from robustbench_tc.schema import Message, Sample

CLEAN = cases.CLEAN["table"]


def said(question: str) -> str | None:
    before = (Message("user", question), Message("assistant", "It is done."))
    row: Sample = msgspec.structs.replace(CLEAN, type_code="context_2k", messages=(*before, *CLEAN.messages))
    return INVARIANTS["context_holds_no_gold_value"].holds(row, CLEAN)


@pytest.mark.parametrize("question", ["Is Luna open?", "LUNA!", "Book 2 cabins.", "Please reserve a berth."])
def test_a_golden_value_or_tool_before_the_request_is_named(question: str) -> None:
    assert said(question) == "a golden value or tool stands before the request"


@pytest.mark.parametrize(
    "question", ["Book 12 cabins.", "Is lunar dust sharp?", "Is it 20 or 102?", "Hello."]
)
def test_a_part_of_a_word_or_number_is_no_golden_value(question: str) -> None:
    assert said(question) == ""
