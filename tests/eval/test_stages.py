"""The stage at which a wrong answer fails: one for every wrong answer, the first in order."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from robustbench_tc import schema, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval.parse import Parsed, Segment
from robustbench_tc.eval.prompts.calls import render_calls
from robustbench_tc.eval.score import golden, judge, stage_values
from robustbench_tc.eval.score.result import wrong
from robustbench_tc.eval.score.stages import stage_of
from robustbench_tc.eval.stats import runs, stages
from robustbench_tc.schema import CONTROL_TOOLS, STAGES, Call, Json, Sample, Tool, Verdict

from ..known import INJECTED_ERRORS
from . import small
from .synthetic_runs import clean_ids, coin, pairs, write_run

BY_SOURCE = {row.source: row for row in small.clean_rows()}


def answered(row: Sample, text: str | None, clean: Sample | None = None, **more: Any) -> Verdict:
    anchor = clean or next(c for c in small.clean_rows() if c.clean_id == row.clean_id)
    return judge(small.prediction(row, **{"raw_output": text, **more}), row, anchor)


def failed(row: Sample, calls: Sequence[Call], clean: Sample | None = None) -> str:
    made = answered(row, render_calls(calls, row.output_format), clean)
    assert not made.correct and made.stage is not None
    assert made.stage_detail in STAGES[made.stage]
    return f"{made.stage} {made.stage_detail}"


def gold(row: Sample) -> Call:
    return golden.concrete(row.golden_answers[0], row.tools, source=row.source)[0]


def of_type(code: str, source: str) -> tuple[Sample, Sample]:
    found = {row.type_code: row for row in small.rows(code) if row.source == source}
    return found[code], found["clean"]


BFCL, APIBANK, ROTBENCH = (BY_SOURCE[name] for name in ("bfcl_v3", "apibank", "rotbench"))
TOOLALPACA, TOOLEYES = (BY_SOURCE[name] for name in ("toolalpaca", "tooleyes"))


@pytest.mark.parametrize(
    ("text", "more", "stage"),
    [
        ("I cannot say how high that is.", {}, "decide no_call"),
        ('I would write `[summit.height(mountain="Galdhoppen")]` here.', {}, "decide quoted"),
        ('<think>[summit.height(mountain="Galdhoppen")]</think> Done.', {}, "decide only_thought"),
        ('<think>[summit.height(mountain="Galdhoppen")]</think>', {}, "format empty"),
        ("", {}, "format empty"),
        (None, {}, "format empty"),
        ("The height is", {"finish_reason": "length"}, "format cut"),
        ("The height is", {"finish_reason": "content_filter"}, "format refused"),
        ("<tool_call>summit.height Galdhoppen</tool_call>", {}, "format unread"),
        (None, {"status": "rejected"}, "format refused"),
        (None, {"status": "too_long"}, "format refused"),
    ],
)
def test_a_reply_without_a_call_decided_against_it_or_cannot_be_read(
    text: str | None, more: dict[str, Any], stage: str
) -> None:
    made = answered(BFCL, text, **more)
    assert (made.correct, f"{made.stage} {made.stage_detail}") == (False, stage)


def test_unreadable_arguments_fail_at_the_format() -> None:
    calls = [{"id": "1", "name": "summit.height", "arguments": '"Galdhoppen"'}]
    made = answered(BFCL, None, mode="fc", tool_calls=calls)
    assert (made.stage, made.stage_detail) == ("format", "arguments")


def test_a_wrong_call_fails_at_the_first_stage_that_is_wrong() -> None:
    cases = [
        (BFCL, [Call("geo_map.distance", {"start": "a", "stop": "b"})], "select other"),
        (BFCL, [Call("summit.depth", {"mountain": "Galdhoppen"})], "select ghost"),
        (BFCL, [Call("summit.height", {"mountain": "Galdhoppen"})] * 2, "select too_many"),
        (BFCL, [Call("summit.height", {"unit": "m"})], "identify missing"),
        (BFCL, [Call("summit.height", {"mountain": "Galdhoppen", "peak": 1})], "identify unexpected"),
        # The scorer meets the value first; a parameter that gold lacks is the earlier failure.
        (BFCL, [Call("summit.height", {"mountain": "Molde", "peak": 1})], "identify unexpected"),
        (BFCL, [Call("summit.height", {"mountain": "Molde"})], "fill invented"),
        (BFCL, [Call("summit.height", {"mountain": "mountain"})], "fill wrong_value"),
        (BFCL, [Call("summit.height", {"mountain": 8848})], "fill wrong_type"),
        (BFCL, [Call("summit.height", {"mountain": ["Galdhoppen"]})], "fill wrong_type"),
        (BFCL, [Call("finish", {})], "decide control_only"),
        (APIBANK, [Call("AddReminder", {"content": "water the plants"})], "identify missing"),
        (
            APIBANK,
            [Call("AddReminder", {"content": "water", "time": "2031-04-01 09:00"})],
            "fill wrong_value",
        ),
        (APIBANK, [Call("QueryCalendar", {"day": "2031-04-01"})], "select other"),
        (ROTBENCH, [Call("find_country", {"town": "Bodo"})], "identify missing"),
        (ROTBENCH, [Call("find_country", {"town": "Molde", "language": "en"})], "fill invented"),
        (ROTBENCH, [Call("finish", {"answer": "Norway"})], "select other"),
        (ROTBENCH, [Call("find_river", {"valley": "Bodo"})], "select other"),
        (TOOLALPACA, [Call("randomPicture", {"tag": "sleepy"})], "identify missing"),
        (
            TOOLALPACA,
            [Call("randomPicture", {"tag": "sleepy", "width": 400, "more": 1})],
            "fill invented",
        ),
        (TOOLALPACA, [Call("stampList", {"prefix": "s"})], "select other"),
        (TOOLALPACA, [Call("randomPicture", {"tag": "sleepy", "width": 300})] * 3, "select too_many"),
        (TOOLEYES, [Call("weather_now", {"place": "Molde"})], "select too_few"),
        (TOOLEYES, [Call("weather_now", {}), Call("sunrise", {})], "select ghost"),
        (TOOLEYES, [Call("ask_to_user", {"question": "Which town?"})], "decide control_only"),
    ]
    wrong = [(row, calls, stage, got) for row, calls, stage in cases if (got := failed(row, calls)) != stage]
    assert wrong == []


def test_a_call_where_none_is_due_fails_at_the_decision() -> None:
    none_due = msgspec.structs.replace(BFCL, golden_answers=((),), gold_tool_index=None)
    assert failed(none_due, [gold(BFCL)]) == "decide called"
    assert failed(none_due, [Call("made_up", {})]) == "decide called"
    steer = msgspec.structs.replace(ROTBENCH, golden_answers=ROTBENCH.golden_answers[1:], gold_tool_index=2)
    assert failed(steer, [gold(ROTBENCH)]) == "decide called"
    assert failed(steer, [Call("finish", {"answer": "x"})]) == "select other"


def test_a_broken_reply_where_none_is_due_fails_at_the_format() -> None:
    none_due = msgspec.structs.replace(BFCL, golden_answers=((),), gold_tool_index=None)
    one = small.prediction(none_due, raw_output="Some text that a stricter rule cannot read.")
    broken = (Parsed((), None, (), (Segment("final", 0, 9),)), wrong("no_call"), None)
    assert stage_of(one, none_due, none_due, none_due.tools, broken, None) == ("format", "unread")


def test_gold_or_no_call_accepted_a_third_tool_fails_at_the_selection() -> None:
    either = msgspec.structs.replace(BFCL, golden_answers=(*BFCL.golden_answers, ()))
    assert answered(either, "I cannot say.").correct
    assert failed(either, [Call("summit.depth", {})]) == "select ghost"


@pytest.mark.parametrize("code", ["CD", "TD", "CD_AB"])
def test_the_worse_offer_is_a_distractor(code: str) -> None:
    row, clean = of_type(code, "bfcl_v3")
    [wrong] = {tool.name for tool in row.tools} - {"geo_map.distance", row.golden_answers[0][0].name}
    assert failed(row, [Call(wrong, gold(row).parameters)], clean) == "select distractor"


@pytest.mark.parametrize("code", ["same_name_A", "same_name_C", "same_name_D"])
def test_the_arguments_tell_which_of_two_namesakes_was_chosen(code: str) -> None:
    row, clean = of_type(code, "bfcl_v3")
    [added] = [tool for tool in row.tools if tool not in clean.tools]
    chosen = Call(added.name, dict.fromkeys(added.properties, "x"))
    assert failed(row, [chosen], clean) == "select distractor"
    assert failed(row, [Call(added.name, {"mountain": "Galdhoppen", "peak": 1})], clean) == (
        "identify unexpected"
    )


def test_a_tool_beside_gold_is_a_sibling_where_the_type_adds_siblings() -> None:
    extra = Tool("summit.elevation", "Elevation.", BFCL.tools[1].parameters)
    row = msgspec.structs.replace(
        BFCL,
        id=f"{BFCL.clean_id}::redundant",
        type_code="redundant",
        component="action",
        tools=(*BFCL.tools, extra),
    )
    assert failed(row, [Call("summit.elevation", {"mountain": "Galdhoppen"})]) == "select sibling"
    # Called beside gold, the sibling is what is wrong, not the number.
    both = [gold(row), Call("summit.elevation", {"mountain": "Galdhoppen"})]
    assert failed(row, both) == "select sibling"


def test_a_word_that_only_the_typos_wrote_is_copied() -> None:
    row = msgspec.structs.replace(
        BFCL,
        id=f"{BFCL.clean_id}::realistic_typos",
        type_code="realistic_typos",
        component="observation",
        messages=(schema.Message("user", "How high is the mountain Galdhopen, if you please?"),),
    )
    assert failed(row, [Call("summit.height", {"mountain": "Galdhopen"})]) == "fill typo_copied"
    assert failed(row, [Call("summit.height", {"mountain": "Galhoppen"})]) == "fill invented"
    plain = msgspec.structs.replace(row, type_code="query_paraphrase")
    assert failed(plain, [Call("summit.height", {"mountain": "Galdhopen"})]) == "fill wrong_value"


def test_a_value_of_the_users_language_is_said_by_its_error_mode() -> None:
    assert stage_values.fill_detail("x", ["y"], BFCL, BFCL, "wrong_language") == "wrong_language"


@pytest.mark.parametrize(
    ("value", "detail"),
    [(3, "wrong_value"), (31, "invented"), (3.5, "invented"), (1_200, "wrong_value"), (3.0, "wrong_value")],
)
def test_a_number_stands_in_the_messages_by_itself(value: float, detail: str) -> None:
    row = msgspec.structs.replace(
        BFCL, messages=(schema.Message("user", "Take 3 of the 315 mountains above 1,200 m."),)
    )
    assert stage_values.fill_detail(value, [7], row, row, None) == detail


def test_of_several_calls_the_earliest_failure_counts() -> None:
    first, other = BFCL.golden_answers[0][0], Call("geo_map.distance", {"start": ["a"], "stop": ["b"]})
    row = msgspec.structs.replace(BFCL, category="parallel_multiple", golden_answers=((first, other),))
    right = Call("geo_map.distance", {"start": "a", "stop": "b"})
    assert failed(row, [gold(BFCL)]) == "select too_few"
    assert failed(row, [right, Call("summit.height", {"mountain": "Molde"})]) == "fill invented"
    wrong = Call("geo_map.distance", {"start": "a", "end": "b"})
    assert failed(row, [wrong, Call("summit.height", {"mountain": "Molde"})]) == "identify missing"


def test_two_calls_of_one_tool_are_paired_as_they_fit_best() -> None:
    first, second = (Call("summit.height", {"mountain": [name]}) for name in ("Galdhoppen", "Molde"))
    row = msgspec.structs.replace(BFCL, category="parallel", golden_answers=((first, second),))
    calls = [Call("summit.height", {"mountain": name}) for name in ("Molde", "Bodo")]
    assert failed(row, calls) == "fill invented"


TRANSITION = INJECTED_ERRORS


@pytest.mark.parametrize(
    ("first", "second", "stage"),
    [
        ('[summit.height(mountain="Galdhoppen")]', "I am sorry, it failed.", "recover gave_up"),
        ('[summit.height(mountain="Galdhoppen")]', '[summit.height(mountain="x")]', "recover wrong_retry"),
        ('[geo_map.distance(start="a", stop="b")]', '[summit.height(mountain="x")]', "select other"),
        ('[summit.height(mountain="Molde")]', "I am sorry, it failed.", "fill invented"),
        (None, "I am sorry, it failed.", "recover gave_up"),
    ],
)
def test_after_an_error_the_first_reply_decides_whether_recovery_failed(
    first: str | None, second: str, stage: str
) -> None:
    row, clean = of_type("transient_timeout", "bfcl_v3")
    made = answered(row, second, clean, injected=True, first_output=first)
    assert (made.correct, f"{made.stage} {made.stage_detail}") == (False, stage)


def test_without_a_first_call_there_is_nothing_to_recover_from() -> None:
    row, clean = of_type("transient_timeout", "bfcl_v3")
    made = answered(row, "I cannot say.", clean, injected=False)
    assert (made.stage, made.stage_detail) == ("decide", "no_call")


def test_a_call_after_a_result_that_is_no_error_fails_at_the_decision() -> None:
    row = msgspec.structs.replace(BFCL, type_code="benign_result", injected_error="Done.")
    made = answered(row, '[summit.height(mountain="x")]', injected=True, first_output=None)
    assert (made.stage, made.stage_detail) == ("decide", "called")


@pytest.mark.parametrize("row", small.clean_rows(), ids=lambda row: row.source)
def test_a_right_answer_has_no_stage(row: Sample) -> None:
    calls = golden.concrete(row.golden_answers[0], row.tools, source=row.source)
    made = answered(row, render_calls(calls, row.output_format))
    assert (made.correct, made.stage, made.stage_detail) == (True, None, None)


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_keys = st.sampled_from(
    "mountain unit content time day town language tag width place start stop question x".split()
)


FITTING: dict[str, set[schema.Stage]] = {
    "no_call": {"decide", "format"},
    "call_count": {"decide", "select"},
    "wrong_name": {"decide", "select"},
    "missing_parameter": {"select", "identify"},
    "unexpected_parameter": {"select", "identify"},
    "wrong_type": {"select", "identify", "fill"},
    "wrong_value": {"select", "identify", "fill"},
}
"""The scorer's reason → the stages that it leaves open: what it met first, or something before that."""


@given(data=st.data())
def test_every_wrong_answer_has_exactly_one_stage(data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(small.rows("CD", "same_name_C", "transient_timeout")))
    names = st.sampled_from([*(tool.name for tool in row.tools), "made_up", "finish"])
    wanted = st.builds(Call, names, st.dictionaries(_keys, _values, max_size=3))
    calls = data.draw(st.lists(wanted, max_size=3))
    native: Json = [
        {"id": str(at), "name": call.name, "arguments": schema.dumps(call.parameters)}
        for at, call in enumerate(calls)
    ]
    made = answered(row, data.draw(st.sampled_from([None, "Well.", ""])), mode="fc", tool_calls=native)
    if made.correct:
        assert (made.stage, made.stage_detail) == (None, None)
    else:
        assert made.stage is not None and made.stage_detail in STAGES[made.stage]
        assert made.stage in FITTING.get(made.reason or "", set(STAGES)), made


def test_a_huge_value_is_looked_at_in_bounds() -> None:
    """What stands behind so many values of one argument is not looked for."""
    for known, detail in ((stage_values.LEAVES - 1, "invented"), (stage_values.LEAVES, "wrong_value")):
        value: Json = [{"deep": ["Galdhoppen"]}] * known + ["nowhere"]
        assert stage_values.fill_detail(value, [["a"]], BFCL, BFCL, None) == detail


# --- counted ------------------------------------------------------------------------------------------

IDS = clean_ids({"bfcl_v3": 6, "apibank": 20, "rotbench": 4, "toolalpaca": 4, "tooleyes": 6})


def counted(folder: Path, subset: runs.Subset = "all", **how: Any) -> stages.Stages:
    run = runs.read_run(folder)
    [outcomes] = runs.align([run], subset=subset)
    return stages.stages(runs.within(run, outcomes), outcomes, **how)


def test_the_stages_add_up_to_the_wrong_answers_and_their_shifts_to_delta_matched(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", coin(1), pairs(IDS), repeats=2)
    run = runs.read_run(folder)
    [outcomes] = runs.align([run])
    found = stages.stages(run, outcomes)
    counts = outcomes.counts()
    for code, of_type in counts.items():
        assert (found.n[code], found.wrong(code)) == (of_type.n, of_type.n - of_type.correct)
    core = [counts[code] for code in taxonomy.codes()]
    assert found.wrong("perturbed") == sum(one.n - one.correct for one in core)
    for component in taxonomy.COMPONENTS:
        codes = [t.code for t in taxonomy.types() if t.component == component]
        assert found.wrong(component) == sum(found.wrong(code) for code in codes)
        shifts = found.shifts[component].values()
        lost, pairs_there = (outcomes.matched(codes)[side].sum() for side in (0, 1))
        assert sum(one.lost - one.gained for one in shifts) == lost
        assert {one.pairs for one in shifts} == {pairs_there}
    for code, of_stage in found.type_shifts.items():
        net = sum(one.lost - one.gained for one in of_stage.values())
        assert net == counts[code].lost - counts[code].gained


def test_types_beyond_the_core_enter_no_component(tmp_path: Path) -> None:
    rows = pairs(IDS) + [(one, "CD_AB_pref") for one in IDS[:9]]
    found = counted(write_run(tmp_path / "run", lambda c, t: False, rows))
    without = counted(write_run(tmp_path / "core", lambda c, t: False, pairs(IDS)))
    assert found.wrong("CD_AB_pref") == 9
    assert found.wrong("reward") == without.wrong("reward")
    assert found.shifts == without.shifts


def test_a_component_with_missing_rows_has_no_shift_unless_that_is_allowed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", lambda c, t: None if (c, t) == (IDS[0], "CD") else True, pairs(IDS))
    assert "reward" not in counted(folder).shifts
    found = counted(folder, allow_missing=True)
    assert "reward" in found.shifts
    asked = sum(code == "CD" for _, code in pairs(IDS))
    assert {one.pairs for one in found.type_shifts["CD"].values()} == {asked - 1}


def test_verdicts_without_stages_are_refused(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    folder = write_run(tmp_path / "run", coin(2), pairs(IDS))
    scores = folder / "scores.parquet"
    pq.write_table(pq.read_table(scores).drop_columns(["stage", "stage_detail"]), scores)
    with pytest.raises(UserError, match="is not a scored run: it has no column stage, stage_detail"):
        runs.read_run(folder)


def test_a_run_without_a_wrong_answer_has_stages_of_nothing(tmp_path: Path) -> None:
    found = counted(write_run(tmp_path / "run", lambda c, t: True, pairs(IDS)))
    assert all(found.wrong(line) == 0 for line in found.n)
    assert {one.delta_matched for of in found.shifts.values() for one in of.values()} == {0.0}
    assert stages.table(found).note.endswith("nothing.")


@pytest.mark.parametrize(
    ("scorer", "any_value", "other_spelling"), [("bfcl_v3", False, True), ("tooleyes", True, False)]
)
def test_each_scorer_has_its_own_word_on_a_value(scorer: str, any_value: bool, other_spelling: bool) -> None:
    call, text = Call("f", {"a": ["x"]}), {"type": "string"}
    assert stage_values.value_fits(scorer, "x", [schema.ANY], {}, call) is any_value
    assert stage_values.value_fits(scorer, "X ", ["x"], text, call) is other_spelling


def test_the_wording_of_a_steering_call_is_free_where_rotbench_scores_alone() -> None:
    steering = Call(sorted(CONTROL_TOOLS)[0], {"question": ["Which city?"]})
    for scorer in ("rotbench", "tooleyes"):
        fits = stage_values.value_fits(scorer, "Where to?", ["Which city?"], {}, steering)
        assert fits is (scorer == "rotbench")
