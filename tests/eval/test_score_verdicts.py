"""The verdict on a prediction: the tools to judge against, the error modes, and what has no answer."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.builders.sources import BUNDLED, read_pool
from robustbench_tc.eval.parse import parse
from robustbench_tc.eval.prompts.calls import python_calls, render_calls
from robustbench_tc.eval.score import error_mode, judge, score, scoring_tools
from robustbench_tc.eval.score.golden import concrete
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import ANY, OMIT, Call, Json, Sample, Tool, Verdict

from ..refusals import refuses
from . import small
from .small import prediction

ROW = small.clean_rows()[0]


def rows_of(code: str) -> list[tuple[Sample, Sample]]:
    """Every row of a type with its clean row."""
    found = small.rows(code)
    clean = {row.clean_id: row for row in found if row.type_code == "clean"}
    return [(row, clean[row.clean_id]) for row in found if row.type_code == code]


def answered(row: Sample, clean: Sample, text: str | None = None, **fields: Any) -> Verdict:
    return judge(prediction(row, raw_output=text, **fields), row, clean)


def golden_text(row: Sample) -> str:
    return render_calls(concrete(row.golden_answers[0], row.tools), row.output_format)


@pytest.mark.parametrize("code", ["same_name_A", "same_name_D", "CD", "CD_NT", "CD_AB"])
def test_the_golden_answer_of_a_perturbed_row_is_right_against_the_clean_tools(code: str) -> None:
    for row, clean in rows_of(code):
        assert answered(row, clean, golden_text(row)).correct


def test_a_renamed_gold_tool_stands_first_among_the_tools_to_judge_against() -> None:
    for row, clean in rows_of("CD_AB"):
        new = row.golden_answers[0][0].name
        tools = scoring_tools(row, clean)
        assert tools[0].name == new
        assert [tool.name for tool in tools].count(new) == 1
        assert clean.golden_answers[0][0].name not in {tool.name for tool in tools}


def test_otherwise_the_clean_registry_judges_as_it_stands() -> None:
    for code in ("same_name_A", "CD"):
        for row, clean in rows_of(code):
            assert scoring_tools(row, clean) == clean.tools


def test_a_golden_name_that_no_registry_has_takes_no_tool_away() -> None:
    for row, clean in rows_of("CD"):
        unlisted = msgspec.structs.replace(
            row, tools=clean.tools, golden_answers=((Call("in_no_registry", {}),),)
        )
        assert scoring_tools(unlisted, clean) == clean.tools


def bfcl(code: str) -> tuple[Sample, Sample]:
    return next(pair for pair in rows_of(code) if pair[0].source == "bfcl_v3")


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("", "empty"),
        (" \n<|im_end|>", "empty"),
        ("I cannot help with that.", "omitted"),
        ("[other_tool(x=1)]", "ghost"),
        ("[{name}(zz=1)]", "wrong_parameters"),
        ("[{name}(zz=1), other(x=1)]", "ghost"),
    ],
)
def test_error_modes(text: str, mode: str) -> None:
    verdict = answered(ROW, ROW, text.replace("{name}", ROW.golden_answers[0][0].name))
    assert (verdict.correct, verdict.error_mode) == (False, mode)


def test_too_few_of_the_right_calls_is_a_missing_call() -> None:
    first = ROW.golden_answers[0][0]
    other = Call("other", {"x": [1]})
    two = msgspec.structs.replace(ROW, category="parallel", golden_answers=((first, other),))
    calls = concrete((first,), ROW.tools)
    assert answered(two, two, python_calls(calls)).error_mode == "missing_call"
    assert answered(two, two, python_calls([*calls, Call("third", {})])).error_mode == "ghost"


def test_golds_of_several_steps_and_one_surplus_call_are_flagged() -> None:
    row = msgspec.structs.replace(
        ROW,
        source="tooleyes",
        golden_answers=((Call("f", {}), Call("g", {})),),
        output_format="react",
    )
    one, surplus = [Call("f", {})], [Call("f", {}), Call("g", {}), Call("h", {})]
    assert answered(row, row, render_calls(one, "react")).flags == ("several_steps",)
    assert answered(row, row, render_calls(surplus, "react")).flags == ("several_steps", "one_surplus_call")
    single = msgspec.structs.replace(row, golden_answers=((Call("f", {}),),))
    assert answered(single, single, render_calls(one, "react")).flags == ()


def test_a_right_answer_has_no_error_mode() -> None:
    assert answered(ROW, ROW, golden_text(ROW)).error_mode is None


@pytest.mark.parametrize("code", ["CD", "TD", "CD_NT", "TD_NT", "CD_AB", "TD_AB"])
def test_calling_the_distractor_of_a_reward_type_is_name_bias(code: str) -> None:
    for row, clean in rows_of(code):
        gold = {call.name for answer in row.golden_answers for call in answer}
        known = {tool.name for tool in clean.tools}
        renamed = not gold <= known
        added = {tool.name for tool in row.tools} - known - gold
        distractor = clean.golden_answers[0][0].name if renamed else added.pop()
        call = Call(distractor, concrete(row.golden_answers[0], row.tools)[0].parameters)
        verdict = answered(row, clean, render_calls([call], row.output_format))
        assert (verdict.correct, verdict.error_mode) == (False, "name_bias")


def test_a_tool_that_the_registry_has_not_is_a_ghost_in_a_reward_type_too() -> None:
    for row, clean in rows_of("CD"):
        verdict = answered(row, clean, render_calls([Call("no_such_tool", {})], row.output_format))
        assert verdict.error_mode == "ghost"


def test_another_tool_of_the_registry_is_a_wrong_name() -> None:
    found = 0
    for row, clean in rows_of("same_name_A"):
        gold = {call.name for answer in row.golden_answers for call in answer}
        for tool in row.tools:
            if tool.name not in gold:
                verdict = answered(row, clean, render_calls([Call(tool.name, {})], row.output_format))
                assert (verdict.correct, verdict.error_mode) == (False, "wrong_name")
                found += 1
    assert found > 3


def test_an_added_tool_outside_the_reward_types_is_a_wrong_name() -> None:
    row, clean = bfcl("CD")
    plain = msgspec.structs.replace(row, component="action")
    parsed = parse(python_calls([Call(row.golden_answers[0][0].name + "_Budget", {})]), source="bfcl_v3")
    found = score(
        parsed.calls,
        source="bfcl_v3",
        category="multiple",
        golden_answers=row.golden_answers,
        tools=clean.tools,
    )
    assert error_mode(parsed, found, row, clean) == "name_bias"
    assert error_mode(parsed, found, plain, clean) == "wrong_name"


def test_native_calls_are_not_empty_whatever_the_text() -> None:
    verdict = answered(ROW, ROW, "", tool_calls=[{"id": "1", "name": "x", "arguments": "{}"}])
    assert (verdict.variant, verdict.error_mode) == ("fc", "ghost")


@pytest.mark.parametrize("status", ["rejected", "too_long"])
def test_what_the_server_refused_is_wrong_for_that_reason(status: str) -> None:
    verdict = answered(ROW, ROW, status=status)
    assert (verdict.correct, verdict.reason, verdict.error_mode) == (False, status, "other")


def test_a_request_error_is_no_answer() -> None:
    with pytest.raises(ValueError, match="no answer was had"):
        answered(ROW, ROW, status="request_error")


def test_a_bad_argument_is_flagged_in_the_verdict() -> None:
    native: Json = [{"name": ROW.golden_answers[0][0].name, "arguments": "{"}]
    verdict = answered(ROW, ROW, tool_calls=native)
    assert (verdict.flags, verdict.error_mode) == (("bad_arguments",), "wrong_parameters")


def test_the_first_tool_of_a_duplicated_name_does_not_judge() -> None:
    row, clean = bfcl("same_name_A")
    bare = Tool(row.golden_answers[0][0].name, "", {"type": "object", "properties": {}})
    first = msgspec.structs.replace(row, tools=(bare, *clean.tools))
    assert answered(first, clean, golden_text(clean)).correct


# --- Golden answers as model output, and the self-check of samples and releases -----------------------


TOOL = Tool(
    "f",
    "",
    {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "n": {"type": "integer"},
            "o": {"type": "object"},
            "l": {"type": "array", "items": {"type": "object"}},
            "e": {"type": "string", "enum": ["x", "y"]},
        },
        "required": ["a"],
    },
)


def first(**golden: list[object]) -> dict[str, object]:
    (call,) = concrete((Call("f", golden),), (TOOL,))
    return call.parameters


def test_a_concrete_answer_takes_first_values_and_leaves_out_what_may_be() -> None:
    assert first(a=["x", "y"], n=[OMIT, 1]) == {"a": "x"}
    assert first(n=[1, OMIT]) == {"n": 1}
    assert first(a=[OMIT, "x"]) == {"a": "x"}  # required by the tool
    assert first(unknown=["x", OMIT]) == {}
    assert first(unknown=["x"]) == {"unknown": "x"}


def test_a_free_value_is_made_up_by_its_declared_type() -> None:
    assert first(a=[ANY], n=[ANY], e=[ANY]) == {"a": "anything", "n": 1, "e": "x"}


def test_the_keys_of_an_object_have_accepted_values_of_their_own() -> None:
    assert first(o=[{"k": ["v", "w"], "m": [OMIT, 1]}]) == {"o": {"k": "v"}}
    assert first(l=[[{"k": ["v"]}]]) == {"l": [{"k": "v"}]}
    (call,) = concrete((Call("f", {"o": [{"k": ["v"]}]}),), (TOOL,), source="toolalpaca")
    assert call.parameters == {"o": {"k": ["v"]}}


def test_an_unknown_output_format_is_an_error() -> None:
    refuses("unknown output format 'xml'", render_calls, (), "xml")


def test_every_golden_answer_of_the_rule_types_passes(subtests: pytest.Subtests) -> None:
    for row in small.rows():
        with subtests.test(row.id):
            clean = next(other for other in small.clean_rows() if other.clean_id == row.clean_id)
            assert self_check(row, clean) is None


def test_every_bundled_sample_passes() -> None:
    samples = read_pool(BUNDLED, "bundled").samples
    assert len(samples) > 20
    assert {sample.id: reason for sample in samples if (reason := self_check(sample))} == {}


def test_the_199_samples_pass(shared: Path) -> None:
    samples = read_pool(shared / "sources", "paper").samples
    assert len(samples) == 199
    assert {sample.id: reason for sample in samples if (reason := self_check(sample))} == {}


def changed(**golden: list[object]) -> Sample:
    call = ROW.golden_answers[0][0]
    return msgspec.structs.replace(ROW, golden_answers=((Call(call.name, {**call.parameters, **golden}),),))


def test_a_golden_answer_that_its_scorer_refuses_has_a_reason() -> None:
    assert self_check(changed(zz=["x"])) == "answer 0 as text: scores 0 (unexpected_parameter)"
    assert self_check(changed(zz=[])) == "answer 0 as text: scores 0 (missing_parameter)"
    row = msgspec.structs.replace(ROW, golden_answers=())
    assert self_check(row) == "no golden answer"
    call = ROW.golden_answers[0][0]
    row = msgspec.structs.replace(row, golden_answers=((Call("not a name", call.parameters),),))
    assert (self_check(row) or "").startswith("answer 0 as text: reads back as")
