"""The scorer of own tools and cases, and what is said of answers that it finds wrong."""

import itertools
import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from robustbench_tc import sources
from robustbench_tc.eval.agents import AGENTS, AgentContext, is_right, reply
from robustbench_tc.eval.prompts.calls import render_calls
from robustbench_tc.eval.score import SCORERS, has_to_ask, judge, matching, result
from robustbench_tc.eval.score.answers import answered, stands_in
from robustbench_tc.eval.score.category import Category, read_category
from robustbench_tc.eval.score.golden import concrete
from robustbench_tc.eval.stats.failures import REASONS
from robustbench_tc.schema import Call, GoldenAnswer, Json, Message, Sample, Tool, Verdict

from .small import prediction

REFUND = Tool(
    "refund",
    "Refunds an order.",
    {
        "type": "object",
        "properties": {
            "order_id": {"type": "integer"},
            "reason": {"type": "string"},
            "via": {"type": "string", "default": "card", "enum": ["card", "voucher"]},
            "amount": {"$ref": "#/$defs/money"},
            "note": {"type": "string"},
        },
        "required": ["order_id", "reason"],
        "$defs": {"money": {"type": "number", "default": 0}},
    },
)
FIND = Tool("find", "Finds an order.", {"type": "object", "properties": {"order_id": {"type": "integer"}}})
OTHER_FIND = Tool("find", "Finds a customer.", {"type": "object", "properties": {"mail": {"type": "string"}}})
CLEAN = "calls"


def call(name: str, /, **arguments: Json) -> Call:
    return Call(name, arguments)


def gold(name: str, /, **expected: Json) -> Call:
    return Call(name, {key: [value] for key, value in expected.items()})


def scored(calls: Sequence[Call], *answers: GoldenAnswer, category: str = CLEAN) -> result.Score:
    return SCORERS["own"](calls, category, answers, (REFUND, FIND, OTHER_FIND))


GOLDEN = gold("refund", order_id=1042, reason={"regex": "broken"}, note={"any": True, "optional": True})


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"order_id": 1042, "reason": "it is broken"}, None),
        ({"order_id": "1042", "reason": "broken", "note": 5}, None),
        ({"order_id": 1042, "reason": "broken", "via": "card"}, None),
        ({"order_id": 1042, "reason": "broken", "amount": "0.0"}, None),
        ({"order_id": 1042, "reason": "broken", "via": "voucher"}, "unexpected_parameter"),
        ({"order_id": 1042, "reason": "broken", "via": None}, "unexpected_parameter"),
        ({"order_id": 1042, "reason": "broken", "made_up": 1}, "unexpected_parameter"),
        ({"order_id": 1042, "reason": "broken", "note": None}, "wrong_value"),
        ({"order_id": 1042, "reason": "late"}, "wrong_value"),
        ({"order_id": True, "reason": "broken"}, "wrong_value"),
        ({"order_id": 1042}, "missing_parameter"),
    ],
)
def test_arguments_by_matcher_and_default(arguments: dict[str, Json], reason: str | None) -> None:
    assert scored([Call("refund", arguments)], (GOLDEN,)).reason == reason


def test_a_stated_default_may_be_left_out() -> None:
    golden = gold("refund", order_id=1, reason="x", via="card", amount={"number": 0})
    assert scored([call("refund", order_id=1, reason="x")], (golden,)).correct
    other = gold("refund", order_id=1, reason="x", via="voucher")
    assert scored([call("refund", order_id=1, reason="x")], (other,)).reason == "missing_parameter"


def test_extra_arguments_count_only_where_the_case_does_not_allow_them() -> None:
    calls = [call("refund", order_id=1042, reason="broken", via="voucher", made_up=1)]
    assert scored(calls, (GOLDEN,), category="calls+extra").correct
    assert not scored(calls, (GOLDEN,), category="calls+ordered").correct


def test_parallel_calls_have_no_order_unless_the_case_says_so() -> None:
    golden = (gold("find", order_id={"any": True}), gold("find", order_id=1))
    assert scored([call("find", order_id=1), call("find", order_id=2)], golden).correct
    assert scored([call("find", order_id=2), call("find", order_id=2)], golden).reason == "no_match"
    right = [call("find", order_id=2), call("find", order_id=1)]
    assert scored(right, golden, category="calls+ordered").correct
    assert scored(right[::-1], golden, category="calls+ordered").reason == "wrong_value"
    assert scored(right[:1], golden).reason == "call_count"
    assert scored([], golden).reason == "no_call"


def test_a_case_may_expect_more_calls_than_python_has_frames() -> None:
    several = 1_500
    fits = [[at, at + 1] for at in range(several - 1)]
    assert matching.all_matched([*fits, [0]])
    assert not matching.all_matched([*fits, [0], [0]])


@given(st.lists(st.lists(st.integers(0, 4), unique=True), max_size=5))
def test_calls_are_paired_off_wherever_they_can_be(fits: list[list[int]]) -> None:
    ways = itertools.product(*fits)
    assert matching.all_matched(fits) == any(len(set(way)) == len(way) for way in ways)


def test_one_acceptable_answer_is_enough() -> None:
    answers = ((gold("find", order_id=1),), (gold("refund", order_id=1, reason={"any": True}),))
    assert scored([call("refund", order_id=1, reason="x")], *answers).correct
    assert scored([call("find", order_id=2)], *answers).reason == "wrong_value"
    assert scored([call("unknown")], *answers).reason == "wrong_name"


def test_of_several_tools_of_a_name_any_may_be_meant() -> None:
    golden = (gold("find", mail="a@b.example"),)
    assert scored([call("find", mail=" a@b.example")], golden).correct
    assert scored([call("find", order_id="5")], (gold("find", order_id=5),)).correct


def test_the_category_says_what_the_case_says() -> None:
    for marks in itertools.product((False, True), repeat=3):
        category = Category(("calls", "ask"), *marks)
        assert read_category(category.text) == category


# --- whole replies ------------------------------------------------------------------------------------


def row(*answers: GoldenAnswer, category: str = CLEAN, **more: Any) -> Sample:
    made = Sample(
        id="own__a::clean",
        clean_id="own__a",
        type_code="clean",
        source=sources.OWN,
        category=category,
        messages=(Message("user", "Refund order 1042, it arrived broken."),),
        tools=(REFUND, FIND),
        golden_answers=answers,
        output_format="tool_call_tags",
        gold_tool_index=0,
    )
    return msgspec.structs.replace(made, **more)


def judged(text: str | tuple[Call, ...], sample: Sample) -> Verdict:
    said = text if isinstance(text, str) else render_calls(text, sample.output_format)
    return judge(prediction(sample, raw_output=said), sample, sample)


@pytest.mark.parametrize(
    ("category", "said", "reason"),
    [
        ("ask", "Which order do you mean?", None),
        ("ask", (call("ask_to_user", question="Which one?"),), None),
        ("ask", "I refunded it.", "no_question"),
        ("ask", "I am sorry, I cannot do that.", "no_question"),
        ("ask", "", "unparsable"),
        ("ask", (call("find", order_id=1),), "unexpected_call"),
        ("no_call", "You are welcome.", None),
        ("no_call", "Anything else?", None),
        ("no_call|ask", "You are welcome.", None),
    ],
)
def test_asking_is_right_where_the_case_says_so(
    category: str, said: str | tuple[Call, ...], reason: str | None
) -> None:
    verdict = judged(said, row((), category=category))
    assert verdict.reason == reason
    assert reason is None or reason in REASONS
    if reason == "no_question":
        assert (verdict.error_mode, verdict.stage, verdict.stage_detail) == ("other", "decide", "no_question")


def test_calling_or_asking() -> None:
    both = row((gold("find", order_id=1),), (), category="calls|ask")
    assert judged((call("find", order_id=1),), both).correct
    assert judged("Which order?", both).correct
    assert judged("There is none.", both).reason == "no_question"
    assert judged((call("find", order_id=2),), both).reason == "wrong_value"


def test_where_a_type_took_the_tool_away_saying_so_is_right() -> None:
    gone = row((), category="calls|ask", type_code="gold_removed", component="action")
    assert not has_to_ask(gone)


@pytest.mark.parametrize(
    ("arguments", "failed"),
    [
        ({"order_id": 1042}, "identify missing"),
        ({"order_id": 1042, "reason": "broken", "via": "voucher"}, "identify unexpected"),
        ({"order_id": 999, "reason": "broken"}, "fill invented"),
        ({"order_id": 1042, "reason": "order"}, "fill wrong_value"),
        ({"order_id": [1042], "reason": "broken"}, "fill wrong_type"),
    ],
)
def test_the_stage_of_a_wrong_answer_reads_matchers(arguments: dict[str, Json], failed: str) -> None:
    verdict = judged((Call("refund", arguments),), row((GOLDEN,)))
    assert f"{verdict.stage} {verdict.stage_detail}" == failed
    assert verdict.error_mode == "wrong_parameters"


def test_right_calls_in_another_order_fail_where_the_scorer_found_it() -> None:
    ordered = row((gold("find", order_id=1), GOLDEN), category="calls+ordered")
    verdict = judged((call("refund", order_id=1042, reason="broken"), call("find", order_id=1)), ordered)
    assert (verdict.reason, verdict.stage) == ("wrong_name", "select")


def test_a_value_left_in_the_users_language_is_found_beside_matchers() -> None:
    spoken = row(
        (gold("refund", order_id={"any": True}, reason={"one_of": ["broken", "torn"]}, note={"regex": "x"}),),
        type_code="language_full_zh",
        component="observation",
    )
    verdict = judged((call("refund", order_id=5, reason="坏了", note="x"),), spoken)
    assert verdict.error_mode == "wrong_language"
    verdict = judged((call("refund", order_id=5, reason="broken", note="坏了"),), spoken)
    assert verdict.error_mode == "wrong_language"


# --- reference agents ---------------------------------------------------------------------------------

EVERY_KIND = [
    row((GOLDEN,)),
    row((gold("refund", order_id=1, reason="x", via="card"),)),
    row((gold("find"),)),
    row((gold("find"),), category="calls+extra"),
    row((gold("find", order_id={"any": True, "optional": True}),)),
    row((gold("find", order_id=None),), (gold("refund", order_id=1, reason={"regex": "e"}),)),
    row((gold("find", order_id={"one_of": [1, {"any": True}]}),), category="calls+ordered+extra"),
    row((gold("find", order_id=1),), (GOLDEN,)),
    row((gold("refund", order_id={"number": 7}, reason={"date": "2026-11-21"}), gold("find", order_id=2))),
    row((), category="ask"),
    row((), category="no_call"),
    row((gold("find", order_id=1),), (), category="calls|ask"),
    row((gold("find", order_id=1),), (), category="calls|no_call"),
]


def test_agents_know_their_verdicts_on_own_rows(subtests: pytest.Subtests) -> None:
    for name in sorted(AGENTS):
        with subtests.test(name=name):
            for sample in EVERY_KIND:
                said = reply(name, AgentContext(sample, sample, False))
                assert judged(said, sample).correct == is_right(name, sample, sample), (
                    sample.golden_answers,
                    said,
                )


def test_golden_answers_become_calls_that_are_right() -> None:
    for sample in EVERY_KIND:
        for golden in filter(None, sample.golden_answers):
            calls = concrete(golden, sample.tools, source=sample.source)
            assert scored(calls, golden, category=sample.category).correct


# --- Whether a reply answers what the user asked, in whatever form a person would take ----------------


SLOTS = json.dumps([{"start": "09:00", "end": "15:00"}, {"start": "16:30", "end": "17:00"}])
ORDERS = json.dumps(
    [
        {"order_id": "O-1", "products": ["Floor lamp"], "total": 80},
        {"order_id": "O-2", "products": ["Cotton blanket"], "total": 140},
    ]
)


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("You are both free from 9 am to 3 p.m.", True),
        ("09:00-15:00", True),
        ("From 9:00 until 3:00 PM.", True),
        ("From 9 pm to 3 am.", False),
        ("From 09:00.", False),
        ("From 09:00 to 15:00, and again at half past: 16:30.", False),
        ("16:30 to 17:00", False),
        ("", False),
    ],
)
def test_times_of_day(reply: str, right: bool) -> None:
    assert answered(reply, [{"start": ["09:00"], "end": ["15:00"]}], [SLOTS], "before 16:00") is right


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("O-1 is still open.", True),
        ("Your floor lamp order is open.", True),
        ("Floor lamps, for 80 euros.", True),
        ("O-1, and O-2 was delivered.", False),
        ("The floor lamp; the cotton blanket has come.", False),
        ("O-11 is open.", False),
        (ORDERS, False),
        ('It is {"order_id": "O-1", "products": ["Floor lamp"],\n "total": 80}.', False),
    ],
)
def test_one_record_among_others(reply: str, right: bool) -> None:
    answers = [{"order_id": ["O-1"]}, {"products": ["Floor lamp"]}]
    assert answered(reply, answers, [ORDERS], "") is right


def test_what_the_user_said_does_not_count_against_a_reply() -> None:
    assert answered("Not O-2: O-1.", [{"order_id": ["O-1"]}], [ORDERS], "Is it O-2?")
    assert not answered("Not O-2: O-1.", [{"order_id": ["O-1"]}], [ORDERS], "")


@pytest.mark.parametrize(
    ("value", "text", "there"),
    [
        (60, "€60.00", True),
        (60, "60,000", False),
        (1200, "1,200 euros", True),
        (12.346, "about 12.35", True),
        (12.346, "about 12", False),
        (60, "O-60", False),
        (60, "160 or 6.0", False),
        ("2026-05-08", "on Friday, May 8th", True),
        ("2026-05-08", "8 May 2026", True),
        ("2026-05-08", "18 May", False),
    ],
)
def test_numbers_and_dates(value: Any, text: str, there: bool) -> None:
    assert stands_in(value, text) is there


@given(
    st.integers(0, 10**6) | st.text("abc ", min_size=1).filter(str.strip), st.sampled_from(("", " x", "."))
)
def test_a_value_stands_in_itself(value: Any, rest: str) -> None:
    assert stands_in(value, f"It is {value}{rest}")
