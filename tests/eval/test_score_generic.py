"""The scorer of a source that brings none of its own; and what a source's own scorer gives."""

import msgspec
import pytest

from robustbench_tc import sources
from robustbench_tc.eval.score import SCORERS, Score, score
from robustbench_tc.schema import ANY, OMIT, Call, GoldenAnswer, Json


def scored(calls: list[Call], *answers: GoldenAnswer) -> Score:
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
    found = scored(calls, (GOLDEN,))
    assert (found.reason, found.correct, found.score) == (reason, reason is None, float(reason is None))


@pytest.mark.parametrize("value", [0, 1, True, False, "true", None])
def test_a_truth_value_equals_itself_alone(value: Json) -> None:
    for golden in (True, False):
        assert scored([called(x=value)], (called(x=[golden]),)).correct is (value is golden)
        assert scored([called(x=golden)], (called(x=[value]),)).correct is (value is golden)


def test_any_value_still_has_to_be_given() -> None:
    assert scored([called(x=None)], (called(x=[ANY]),)).correct
    assert scored([called()], (called(x=[ANY]),)).reason == "missing_parameter"


def test_several_calls_in_any_order_each_met_by_one_of_its_own() -> None:
    golden = (called(x=[1, 2]), called(x=[1]))
    assert scored([called(x=1), called(x=2)], golden).correct
    assert scored([called(x=2), called(x=1)], golden).correct
    assert scored([called(x=2), called(x=2)], golden).reason == "no_match"
    assert scored([called(x=1)], golden).reason == "call_count"


def test_an_answer_without_calls_is_given_by_calling_nothing() -> None:
    assert scored([], ()).correct
    assert scored([called()], ()).reason == "call_count"


def test_the_best_of_several_answers_counts() -> None:
    first, second = (called(x=[1]),), (called("g", y=[2]),)
    assert scored([called("g", y=2)], first, second).correct
    assert scored([called(x=1)], first, second).correct
    assert scored([called("g", y=3)], first, second).reason == "wrong_name"
    assert scored([called(x=1)]).reason == "no_match"


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
