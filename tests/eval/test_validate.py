"""Golden answers as model output, and the self-check of samples and releases."""

from pathlib import Path

import msgspec
import pytest

from robustbench_tc.builders.sources import BUNDLED, read
from robustbench_tc.eval.prompts.calls import render_calls
from robustbench_tc.eval.score.golden import concrete
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import ANY, OMIT, Call, Sample, Tool

from ..refusals import refuses
from . import small

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
    samples = read(BUNDLED, "bundled").samples
    assert len(samples) > 20
    assert {sample.id: reason for sample in samples if (reason := self_check(sample))} == {}


def test_the_199_samples_pass(shared: Path) -> None:
    samples = read(shared / "sources", "paper").samples
    assert len(samples) == 199
    assert {sample.id: reason for sample in samples if (reason := self_check(sample))} == {}


def changed(**golden: list[object]) -> Sample:
    row = small.clean_rows()[0]
    call = row.golden_answers[0][0]
    return msgspec.structs.replace(row, golden_answers=((Call(call.name, {**call.parameters, **golden}),),))


def test_a_golden_answer_that_its_scorer_refuses_has_a_reason() -> None:
    assert self_check(changed(zz=["x"])) == "answer 0 as text: scores 0 (unexpected_parameter)"
    assert self_check(changed(zz=[])) == "answer 0 as text: scores 0 (missing_parameter)"
    row = msgspec.structs.replace(small.clean_rows()[0], golden_answers=())
    assert self_check(row) == "no golden answer"
    call = small.clean_rows()[0].golden_answers[0][0]
    row = msgspec.structs.replace(row, golden_answers=((Call("not a name", call.parameters),),))
    assert (self_check(row) or "").startswith("answer 0 as text: reads back as")
