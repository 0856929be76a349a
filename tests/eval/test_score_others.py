"""API-Bank, RoTBench, ToolAlpaca and ToolEyes (scoring.md sections 4 and 5)."""

from collections.abc import Sequence
from itertools import permutations

import msgspec
import pytest
from hypothesis import given, strategies as st

from robustbench_tc import sources
from robustbench_tc.eval.prompts.json_schema import type_schema
from robustbench_tc.eval.score import SCORERS, Score, score
from robustbench_tc.schema import ANY, OMIT, Call, GoldenAnswer, Json, Tool

from .texts import values


def scored(source: str, calls: Sequence[Call], *answers: GoldenAnswer, tools: Sequence[Tool] = ()) -> Score:
    return score(calls, source=source, category="", golden_answers=answers, tools=tools)


def one(source: str, value: Json, accepted: list[Json], kind: str = "") -> bool:
    registry = [Tool("f", "", {"type": "object", "properties": {"x": type_schema(kind)}})] if kind else []
    return scored(source, [Call("f", {"x": value})], (Call("f", {"x": accepted}),), tools=registry).correct


# --- API-Bank -------------------------------------------------------------------------------------------


def test_apibank_compares_by_declared_type() -> None:
    cases = [
        ("  New   york", "new York", "str", True),
        ("007", "7", "str", False),
        (7, "007", "str", False),
        (7, "7", "str", True),
        (7.5, "7.50", "str", True),
        (True, "true", "str", True),
        (None, "x", "str", False),
        (["x"], "x", "str", False),
        ("05", "5", "int", True),
        ("5.0", "5", "int", True),
        (5.5, "5.5", "int", False),
        ("4", "5", "int", False),
        ("6", "5", "int", False),
        ("1,000", "1000", "int", False),
        (True, "1", "int", False),
        ("74.0060", "74.006", "float", True),
        (" 1e2 ", "100", "float", True),
        ("five", "Five", "int", True),
        ("TRUE", "True", "bool", True),
        (True, "true", "bool", True),
        (1, "true", "bool", False),
        (["Mary", " peter"], "['Mary', 'Peter']", "list(str)", True),
        ('["Mary", "Peter"]', "['Mary', 'Peter']", "list", True),
        (["Peter", "Mary"], "['Mary', 'Peter']", "list", False),
        ("Mary", '["Mary"]', "list", False),
        (["1"], "[1]", "list", True),
        (["05"], "['5']", "list(int)", True),
        (["05"], "['5']", "list", False),
        ([["Mary"]], "[\"['Mary']\"]", "list", False),  # a text inside a list stays a text
        ([{"name": "a", "value": "1"}], "[{'name': 'A', 'value': '1'}]", "list", True),
        (["Mary", "Peter"], "['Mary', 'Peter']", "", True),
        ("['Mary','Peter']", "['Mary', 'Peter']", "str", True),
        ("__import__('os')", "['Mary']", "list", False),
        ({"name": "Mary", "age": 7}, "{'age': '7', 'name': 'mary'}", "", True),
        ({"name": "Mary"}, "{'name': 'Mary', 'age': '7'}", "", False),
        ({"name": "Mary", "age": 7}, "{'name': 'Mary'}", "", False),
        ("Mary", "{'name': 'Mary'}", "", False),
    ]
    wrong = [
        (value, golden, kind, right, got)
        for value, golden, kind, right in cases
        if (got := one("apibank", value, [golden], kind)) != right
    ]
    assert wrong == []


@pytest.mark.parametrize(("value", "golden"), [("True", True), (True, True), ("false", False)])
def test_apibank_compares_a_golden_truth_value_as_text(value: Json, golden: bool) -> None:
    """Where the tool declares a text."""
    assert one("apibank", value, [golden], "str")
    assert not one("apibank", value, [not golden], "str")


def test_apibank_wants_exactly_the_golden_call() -> None:
    golden = (Call("f", {"x": ["1"]}),)
    right = Call("f", {"x": "1"})
    assert scored("apibank", [right], golden).correct
    assert scored("apibank", [right, right], golden).reason == "call_count"
    assert scored("apibank", [], golden).reason == "no_call"
    assert scored("apibank", [Call("F", {"x": "1"})], golden).reason == "wrong_name"
    assert scored("apibank", [Call("f", {})], golden).reason == "missing_parameter"
    assert scored("apibank", [Call("f", {"x": "1", "y": "2"})], golden).reason == "unexpected_parameter"
    assert scored("apibank", [Call("f", {})], (Call("f", {"x": ["1", OMIT]}),)).correct


# --- RoTBench -------------------------------------------------------------------------------------------


def test_rotbench_has_three_stages_and_the_best_answer_decides() -> None:
    answers = ((Call("f", {"x": ["1"], "y": [ANY]}),), (Call("g", {"z": ["2"]}),))
    assert scored("rotbench", [Call("f", {"x": "1", "y": None})], *answers).correct
    assert scored("rotbench", [Call("g", {"z": 2})], *answers).correct
    found = scored("rotbench", [Call("f", {"x": "no", "y": "1"})], *answers)
    assert (found.reason, list(found.stages.values())) == ("wrong_value", [True, True, False])
    found = scored("rotbench", [Call("f", {"x": "1"})], *answers)
    assert (found.reason, list(found.stages.values())) == ("missing_parameter", [True, False, False])
    found = scored("rotbench", [Call("h", {"x": "1"})], *answers)
    assert (found.reason, list(found.stages.values())) == ("wrong_name", [False, False, False])
    assert scored("rotbench", [Call("g", {"z": "2"})] * 2, *answers).reason == "call_count"


@pytest.mark.parametrize(
    ("value", "golden", "right"),
    [(5, "5", True), (5.0, "5", True), ("5", 5, True), (5, "05", False), ("A", "a", False), (True, 1, False)],
)
def test_rotbench_lets_a_number_equal_its_decimal_text_and_nothing_else(
    value: Json, golden: Json, right: bool
) -> None:
    assert one("rotbench", value, [golden]) == right


def test_rotbench_compares_a_call_without_parameters_and_frees_control_tools() -> None:
    assert scored("rotbench", [Call("f", {})], (Call("f", {}),)).correct
    asked = (Call("ask_to_user", {"question": ["Which town?"]}),)
    assert scored("rotbench", [Call("ask_to_user", {"question": "What?"})], asked).correct
    assert not scored("rotbench", [Call("ask_to_user", {})], asked).correct
    swapped = (Call("ask_to_user", {"town": ["Oslo"]}),)  # a noisy list gave another tool that name
    assert not scored("rotbench", [Call("ask_to_user", {"town": "Rome"})], swapped).correct


# --- ToolAlpaca -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "golden", "right"),
    [
        (" Red  CAT ", "red cat", True),
        (500, "500", True),
        ("500", 500, True),
        (500.0, 500, True),
        ("true", True, True),
        (True, "TRUE", True),
        (1, True, False),
        (["A", 1], ["a", "1"], True),
        (["a"], ["a", "b"], False),
        ({"k": "A", "more": 1}, {"k": "a"}, True),
        ({}, {"k": "a"}, False),
        ({}, {"k": None}, True),
        ("x", "y", False),
        ("x", None, True),
        ("x", "None", True),
    ],
)
def test_toolalpaca_compares_loosely(value: Json, golden: Json, right: bool) -> None:
    assert one("toolalpaca", value, [golden]) == right


@pytest.mark.parametrize("blank", [None, OMIT, "None"])
def test_toolalpaca_accepts_the_absence_of_a_blank_golden_value(blank: Json) -> None:
    assert scored("toolalpaca", [Call("f", {})], (Call("f", {"x": [blank]}),)).correct
    assert not scored("toolalpaca", [Call("f", {})], (Call("f", {"x": [ANY]}),)).correct


def test_toolalpaca_tolerates_extra_parameters_and_calls_but_no_missing_one() -> None:
    golden = (Call("f", {"x": ["1"]}),)
    assert scored("toolalpaca", [Call("g", {}), Call("f", {"x": "1", "y": 2})], golden).correct
    assert scored("toolalpaca", [Call("f", {"y": 2})], golden).reason == "missing_parameter"
    assert scored("toolalpaca", [Call("g", {"x": "1"})], golden).reason == "wrong_name"
    assert scored("toolalpaca", [Call("f", {"x": "1"})], golden * 2).reason == "no_match"


def test_toolalpaca_matches_in_any_order() -> None:
    golden = (Call("f", {"x": [OMIT]}), Call("f", {"x": ["1"]}), Call("g", {}))
    for calls in permutations([Call("f", {"x": "1"}), Call("f", {"x": "2"}), Call("g", {})]):
        assert scored("toolalpaca", calls, golden).correct


# --- ToolEyes -------------------------------------------------------------------------------------------


def test_toolalpaca_allows_as_many_surplus_calls_as_golden_ones() -> None:
    golden = (Call("f", {"x": ["1"]}),)
    right, other = Call("f", {"x": "1"}), Call("g", {})
    assert scored("toolalpaca", [other, right], golden).correct
    assert scored("toolalpaca", [other, other, right], golden).reason == "call_count"
    assert scored("toolalpaca", [right, other, right, other], golden * 2).correct
    assert scored("toolalpaca", [right, other, right, other, other], golden * 2).reason == "call_count"


def test_tooleyes_scores_the_names_in_common_and_is_right_only_where_they_are_all_and_no_more() -> None:
    f, g, h, x = (Call(name, {}) for name in "fghx")
    answers = ((f, g), (f, h))
    assert scored("tooleyes", [h, Call("f", {"any": 1})], *answers) == Score(
        1.0, True, None, {"names_found": 2, "one_surplus_call": True}
    )
    surplus = scored("tooleyes", [h, x, f], *answers)
    assert (surplus.score, surplus.correct, surplus.reason) == (0.8, False, "call_count")
    assert surplus.stages["one_surplus_call"] is True
    assert scored("tooleyes", [h, x, f, x], *answers).stages["one_surplus_call"] is False
    assert scored("tooleyes", [f, g, h, x, x], (f, g, h)).stages["one_surplus_call"] is False
    missing = scored("tooleyes", [f], *answers)
    assert (missing.score, missing.correct, missing.reason) == (2 / 3, False, "call_count")
    assert missing.stages["one_surplus_call"] is False
    assert scored("tooleyes", [f, f], *answers).score == 0.5
    assert scored("tooleyes", [f, x], *answers).reason == "wrong_name"
    assert scored("tooleyes", [], *answers).score == 0.0


def test_tooleyes_counts_control_tools_on_neither_side() -> None:
    f, finish, ask = (Call(name, {}) for name in ("f", "finish", "ask_to_user"))
    assert scored("tooleyes", [f, finish, ask], (f,)).correct
    assert scored("tooleyes", [finish], (f,)).reason == "no_call"


@pytest.mark.parametrize("source", ["bfcl_v3", "apibank", "rotbench", "toolalpaca", "tooleyes"])
def test_an_answer_without_calls_is_given_by_calling_nothing_but_control_tools(source: str) -> None:
    f, finish = Call("f", {}), Call("finish", {"answer": "done"})
    assert scored(source, [], ()).correct
    assert scored(source, [finish], ()).correct
    assert scored(source, [f], ()).reason == "unexpected_call"
    assert scored(source, [finish, f], ()).reason == "unexpected_call"
    # Beside it another answer may be accepted, which the source's own scorer decides.
    tools = [Tool("f", "", {"type": "object", "properties": {}})]
    assert scored(source, [f], (), (f,), tools=tools).correct
    assert scored(source, [], (), (f,), tools=tools).correct
    assert not scored(source, [Call("g", {})], (), (f,), tools=tools).correct


@given(
    st.sampled_from(["apibank", "rotbench", "toolalpaca", "tooleyes"]), values, st.lists(values, max_size=3)
)
def test_no_value_makes_a_scorer_raise(source: str, value: Json, accepted: list[Json]) -> None:
    assert one(source, value, accepted) in (True, False)


@given(st.sampled_from(["apibank", "rotbench", "toolalpaca"]), values)
def test_a_value_equals_itself(source: str, value: Json) -> None:
    assert one(source, value, [value])


# --- The scorer of a source that brings none of its own; and what a source's own scorer gives


def generic_score(calls: list[Call], *answers: GoldenAnswer) -> Score:
    return SCORERS["generic"](calls, "", answers, ())


def called(name: str = "f", **parameters: Json) -> Call:
    return Call(name, parameters)


GOLDEN = called(x=[1, "one"], y=[OMIT, 2])


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ([called(x=1)], None),
        ([called(x="one", y=2)], None),
        ([], "no_call"),
        ([called(x=1), called(x=1)], "call_count"),
        ([called("g", x=1)], "wrong_name"),
        ([called(y=2)], "missing_parameter"),
        ([called(x=2)], "wrong_value"),
        ([called(x=1, y=3)], "wrong_value"),
        ([called(x=1, z=0)], "unexpected_parameter"),
    ],
)
def test_one_golden_call(calls: list[Call], reason: str | None) -> None:
    found = generic_score(calls, (GOLDEN,))
    assert (found.reason, found.correct, found.score) == (reason, reason is None, float(reason is None))


@pytest.mark.parametrize("value", [0, 1, True, False, "true", None])
def test_a_truth_value_equals_itself_alone(value: Json) -> None:
    for golden in (True, False):
        assert generic_score([called(x=value)], (called(x=[golden]),)).correct is (value is golden)
        assert generic_score([called(x=golden)], (called(x=[value]),)).correct is (value is golden)


def test_any_value_still_has_to_be_given() -> None:
    assert generic_score([called(x=None)], (called(x=[ANY]),)).correct
    assert generic_score([called()], (called(x=[ANY]),)).reason == "missing_parameter"


def test_several_calls_in_any_order_each_met_by_one_of_its_own() -> None:
    golden = (called(x=[1, 2]), called(x=[1]))
    assert generic_score([called(x=1), called(x=2)], golden).correct
    assert generic_score([called(x=2), called(x=1)], golden).correct
    assert generic_score([called(x=2), called(x=2)], golden).reason == "no_match"
    assert generic_score([called(x=1)], golden).reason == "call_count"


def test_an_answer_without_calls_is_given_by_calling_nothing() -> None:
    assert generic_score([], ()).correct
    assert generic_score([called()], ()).reason == "call_count"


def test_the_best_of_several_answers_counts() -> None:
    first, second = (called(x=[1]),), (called("g", y=[2]),)
    assert generic_score([called("g", y=2)], first, second).correct
    assert generic_score([called(x=1)], first, second).correct
    assert generic_score([called("g", y=3)], first, second).reason == "wrong_name"
    assert generic_score([called(x=1)]).reason == "no_match"


def one_call_of_f(calls: list[Call], *_: object) -> str | None:
    """A scorer of a source's own."""
    return None if [call.name for call in calls] == ["f"] else "not_f"


def test_a_scorer_of_its_own_scores_right_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {source.name: source for source in sources.sources()}
    own = msgspec.structs.replace(known["bfcl_v3"], name="own_f", scorer=f"{__name__}:one_call_of_f")
    monkeypatch.setattr(sources, "_by_name", lambda: {**known, "own_f": own})
    found = [
        score([called(name)], source="own_f", category="", golden_answers=((GOLDEN,),), tools=())
        for name in "fg"
    ]
    assert found == [Score(1.0, True, None), Score(0.0, False, "not_f")]
