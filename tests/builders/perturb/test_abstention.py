"""The pack abstention: which samples have rows, why the others have none, and what a row is."""

import gzip
import random
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_tc import taxonomy
from robustbench_tc.builders.build import BuildSpec, prepare
from robustbench_tc.builders.perturb import (
    REGISTRY,
    Context,
    NotApplicable,
    abstention,
    abstention_recorded,
    cases,
    query_text,
)
from robustbench_tc.builders.perturb.abstention_recorded import (
    Judged,
    Recorded,
    apply_edits,
    edits_between,
    names_hash,
    recorded,
)
from robustbench_tc.builders.plan import Plan
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import CONTROL_TOOLS, Call, Message, Sample, clean_id_hash
from robustbench_tc.transcript import CLOSING_TURN, MAY_DECLINE, closing_order

from .strategies import samples

CODES = taxonomy.named("abstention") or ()
NO_CALL = [code for code in CODES if taxonomy.get(code).no_call == "right"]


@pytest.fixture(scope="module")
def bundled() -> Plan:
    return prepare(BuildSpec(profile="bundled", codes=CODES), accept=self_check).plan


@pytest.fixture(scope="module")
def paper(shared: Path) -> Plan:
    return prepare(BuildSpec(sources=shared / "sources", codes=CODES), accept=self_check).plan


def rows(plan: Plan, code: str) -> list[Sample]:
    return [row for row in plan.rows(code) if isinstance(row, Sample)]


def skips(plan: Plan, code: str) -> dict[str, int]:
    return dict(Counter(row.reason for row in plan.rows(code) if not isinstance(row, Sample)))


def test_every_sample_of_the_paper_has_a_row_or_a_reason(paper: Plan) -> None:
    """docs/packs/abstention.md explains each number."""
    assert {code: (len(rows(paper, code)), skips(paper, code)) for code in CODES} == {
        "gold_removed": (
            78,
            {
                "no_other_tool": 45,
                "gold_is_control_tool": 1,
                "another_tool_serves": 67,
                "history_calls_removed": 8,
            },
        ),
        "near_miss": (
            76,
            {
                "no_other_tool": 45,
                "gold_is_control_tool": 1,
                "another_tool_serves": 67,
                "history_calls_removed": 8,
                "no_sibling": 2,
            },
        ),
        "missing_value": (
            45,
            {"not_recorded": 152, "gold_is_control_tool": 1, "not_in_the_first_answer": 1},
        ),
        "answer_directly": (60, {"no_question_for_it": 139}),
        "call_due": (198, {"gold_is_control_tool": 1}),
        "irrelevant": (0, {"no_record_for_it": 32, "other_source": 167}),
    }


def test_the_whole_pools_have_rows_where_something_is_recorded(shared: Path) -> None:
    spec = BuildSpec(profile="full", sources=shared / "sources", codes=CODES)
    plan = prepare(spec, accept=self_check).plan
    assert {code: len(rows(plan, code)) for code in CODES} == {c: REGISTRY[c].rows.full for c in CODES}
    assert skips(plan, "gold_removed")["not_judged"] == 1683


def test_the_starter_samples_have_rows_of_every_type(bundled: Plan) -> None:
    assert {code: len(rows(bundled, code)) for code in CODES} == {c: REGISTRY[c].rows.bundled for c in CODES}
    assert skips(bundled, "gold_removed")["history_calls_removed"] == 1


def test_each_question_is_put_to_one_sample_of_the_paper(paper: Plan) -> None:
    asked = [row.messages[-1].content for row in rows(paper, "answer_directly")]
    assert len(set(asked)) == len(asked) == 60
    assert not set(asked) & {query_text(sample) for sample in paper.samples}


@pytest.mark.parametrize("code", NO_CALL)
def test_no_call_is_right_in_its_rows(bundled: Plan, code: str) -> None:
    clean = {sample.clean_id: sample for sample in bundled.samples}
    for row in rows(bundled, code):
        assert row.golden_answers == ((),) and row.gold_tool_index is None
        assert self_check(row, clean[row.clean_id]) is None
        assert any(tool.name not in CONTROL_TOOLS for tool in row.tools)


@pytest.mark.parametrize("code", CODES)
def test_rows_are_asked_in_open_words(bundled: Plan, code: str) -> None:
    for row in rows(bundled, code):
        assert row.messages[0].role == "system" and row.messages[0].content.endswith(MAY_DECLINE)
        assert sum(MAY_DECLINE in message.content for message in row.messages) == 1
        assert not any(CLOSING_TURN.search(message.content) for message in row.messages)


@pytest.mark.parametrize("code", ["gold_removed", "near_miss"])
def test_every_accepted_tool_has_gone(bundled: Plan, code: str) -> None:
    clean = {sample.clean_id: sample for sample in bundled.samples}
    for row in rows(bundled, code):
        accepted = abstention.accepted_names(clean[row.clean_id])
        assert accepted.isdisjoint(tool.name for tool in row.tools)
        assert abstention_recorded.another_tool_serves(row.clean_id, accepted) is False


def test_the_value_stands_nowhere_in_its_row(paper: Plan) -> None:
    found = recorded()
    for row in rows(paper, "missing_value"):
        (one,) = found.missing[clean_id_hash(row.clean_id)]
        words = "\n".join(message.content for message in row.messages)
        assert one.value.casefold() not in words.casefold().split()
        assert row.tools and row.changes


def test_what_ships_is_what_was_recorded(shared: Path) -> None:
    packed = gzip.decompress(abstention_recorded.SHIPPED.read_bytes())
    assert packed == gzip.decompress(abstention_recorded.pack(shared / "recorded"))
    assert abstention_recorded.pack(shared / "recorded") == abstention_recorded.pack(shared / "recorded")


# --- properties -----------------------------------------------------------------------------------------


def made(code: str, sample: Sample) -> Sample | str:
    try:
        return REGISTRY[code].perturb(sample, random.Random(0), Context())
    except NotApplicable as skip:
        return skip.reason


@given(samples())
def test_a_counterpart_differs_in_its_words_alone(sample: Sample) -> None:
    row = made("call_due", sample)
    assert isinstance(row, Sample) and row == made("call_due", sample)
    assert REGISTRY["call_due"].check(sample, row) == []
    same = ("tools", "golden_answers", "gold_tool_index", "output_format", "source", "category")
    assert all(getattr(row, name) == getattr(sample, name) for name in same)
    assert (self_check(row, sample) is None) == (self_check(sample) is None)
    assert closing_order(row.messages[-1].content) is None


@given(samples(), st.booleans())
def test_a_registry_is_judged_before_its_gold_leaves(sample: Sample, serves: bool) -> None:
    gone = abstention.accepted_names(sample)
    judged = Judged(clean_id_hash(sample.clean_id), names_hash(gone), serves, "")
    book = Recorded({(judged.sample, judged.removed): judged}, {}, {}, {})
    with pytest.MonkeyPatch.context() as patch:
        others = any(tool.name not in gone for tool in sample.tools)
        assert made("gold_removed", sample) == ("not_judged" if others else "no_other_tool")
        patch.setattr(abstention, "recorded", lambda: book)
        row = made("gold_removed", sample)
        if not isinstance(row, Sample):
            assert row == ("another_tool_serves" if others else "no_other_tool")
            assert serves or not others
            return
        assert row == made("gold_removed", sample)
        assert REGISTRY["gold_removed"].check(sample, row) == []
        assert self_check(row, sample) is None
        assert [tool for tool in sample.tools if tool.name not in gone] == list(row.tools)


@given(st.text(), st.text())
def test_edits_make_the_text_again(before: str, after: str) -> None:
    edits = edits_between(before, after)
    assert apply_edits(before, edits) == after
    if any(old for _, old, _ in edits):
        assert apply_edits("", edits) is None


def test_an_order_to_make_one_call_is_found_in_the_last_turn_only() -> None:
    text = "<user>Make one tool call.</user>\n<response>Yes?</response>\n<user>Go on.</user>\n"
    assert closing_order(text) is None
    assert closing_order("<user> Answer with one tool call.</user>") is None, "the only turn is the request"
    ordered = text + "\n\n<user> Answer with one tool call.</user>\n"
    start, end = closing_order(ordered) or (0, 0)
    assert ordered[:start] + ordered[end:] == text.rstrip() + "\n"


def test_a_row_of_another_registry_is_not_taken_for_the_judged_one() -> None:
    table = cases.CLEAN["table"]
    menu = Call("find_menu", {"dish": ["soup"]})
    assert made("gold_removed", msgspec.structs.replace(table, golden_answers=((menu,),))) == "not_judged"
    other = msgspec.structs.replace(table, messages=(Message("user", "Book 2 seats at Mona tonight."),))
    assert made("missing_value", other) == "not_recorded"
    fewer = msgspec.structs.replace(table, tools=table.tools[1:], gold_tool_index=0)
    assert made("answer_directly", fewer) == "no_question_for_it"
