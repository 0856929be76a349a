"""Abstention when asked and judged: the open words, the classes of replies, balanced decision accuracy."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from robustbench_tc import api, taxonomy
from robustbench_tc.builders.plan import Plan
from robustbench_tc.eval import prompts, wire
from robustbench_tc.eval.prompts import MAY_DECLINE
from robustbench_tc.eval.score import judge
from robustbench_tc.eval.score.decision import _LOOKED_AT, DECISIONS, _of_words
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.packs import Table, abstention, tables
from robustbench_tc.schema import Json, Prediction, Sample, content_hash
from robustbench_tc.sql.query import Inputs, query

from ..builders.perturb import cases
from . import small
from .small import prediction
from .synthetic_runs import pack_input

CODES = taxonomy.codes_of("abstention")
TABLE, DIALOGUE = cases.CLEAN["table"], cases.CLEAN["dialogue"]


def row_of(code: str, clean: Sample = TABLE) -> Sample:
    (row,) = Plan(samples=(clean,), seed=0, loans=cases.LENT).rows(code)
    assert isinstance(row, Sample)
    return row


def reply(row: Sample, text: str | None, native: Json = None, **fields: Any) -> Prediction:
    fields = {"raw_output": text, "tool_calls": native, "sample_hash": content_hash(row), **fields}
    return prediction(row, mode="fc" if native else "prompt", **fields)


# --- the words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", CODES)
def test_the_sentence_reaches_the_model_once_in_both_modes(code: str) -> None:
    row = row_of(code)
    for mode in ("prompt", "fc"):
        words = "\n".join(str(message["content"]) for message in wire.first(row, mode).messages)
        assert words.count(MAY_DECLINE) == 1
        assert prompts.ONE_CALL not in words


def test_a_type_that_only_states_it_is_asked_in_the_same_words() -> None:
    """The sentence stands in the rows of the pack; to another type's rows it is added when they are asked."""
    row = row_of("call_due")
    bare = msgspec.structs.replace(row, messages=row.messages[1:])
    for mode in ("prompt", "fc"):
        assert wire.first(bare, mode) == wire.first(row, mode)
    own = msgspec.structs.replace(
        bare, messages=(msgspec.structs.replace(row.messages[0], content="Be kind."),)
    )
    assert prompts.own_messages(own)[0].content == f"Be kind.\n\n{MAY_DECLINE}"


def test_a_source_of_one_call_is_not_asked_for_one() -> None:
    clean, due = wire.first(DIALOGUE, "prompt"), wire.first(row_of("call_due", DIALOGUE), "prompt")
    assert prompts.ONE_CALL in clean.messages[0]["content"]
    assert prompts.ONE_CALL not in due.messages[0]["content"]
    assert "\n\n\n" not in due.messages[0]["content"] and " \n" not in due.messages[0]["content"]
    assert "one tool call" in clean.messages[-1]["content"]
    assert "one tool call" not in due.messages[-1]["content"]


def test_the_words_of_other_rows_and_their_keys_stay() -> None:
    assert prompts.prompt_version() == "2-d670f8ec"
    assert prompts.wording(TABLE) is None
    assert prompts.wording(row_of("call_due")) == prompts.open_version()
    settings = small.settings(mode="fc")
    assert settings.key("a", 0, 1) == settings.key("a", 0, 1, None)
    assert settings.key("a", 0, 1) != settings.key("a", 0, 1, prompts.open_version())


# --- the classes ----------------------------------------------------------------------------------------

TAGGED = '<tool_call>\n{"name": "ListBerths", "parameters": {"harbour": "Brunt Ness"}}\n</tool_call>'


def test_what_a_reply_decides(subtests: pytest.Subtests) -> None:
    cases = [
        ("I am sorry, none of the tools books a table.", "refused"),
        ("There is no tool for that.", "refused"),
        ("No hay ninguna herramienta para eso, no puedo llamar a ninguna.", "refused"),
        ("Please tell me for how many people.", "refused"),
        ("Which place do you mean?", "asked"),
        ("你想订哪一家餐厅？", "asked"),
        ("أي مطعم تقصد؟", "asked"),
        ('I would need its name. **Which one is it?**"', "asked"),
        ("Which place? I cannot book without one.", "refused"),
        ("Rayleigh scattering: short waves are scattered more.", "answered"),
        ("You could use reserve(place, seats) once you know where.", "answered"),
        ("<think>\nreserve(place='Luna')?\n</think>\nThe sky is blue because of scattering.", "answered"),
        ("[]", "refused"),
        ("[find_menu(dish='soup')]", "called"),
        (TAGGED, "called"),
        ("", "unparsable"),
        ("  \n", "unparsable"),
        ("<think>\nNone of them fits", "unparsable"),
        ('<tool_call>\n{"name": "find_menu", "para', "unparsable"),
        ("<tool_call>\n</tool_call>", "unparsable"),
        ('{"name": "find_menu", "parameters": {"dish": "so', "unparsable"),
        ("...", "unparsable"),
        ("<|im_end|>", "unparsable"),
        ("```python\n```", "unparsable"),
        ("Which place do you mean?<|im_end|>", "asked"),
        ("<tool_call>\n[]\n</tool_call>", "refused"),
        ("[TOOL_CALLS][]</s>", "refused"),
        ("```json\n[]\n```", "refused"),
        ("<tool_call>None</tool_call>", "refused"),
        ('Sure:\n```json\n{"name": "find_menu", "arguments": {"dish"', "unparsable"),
        ('find_menu\n{"dish": "so', "unparsable"),
        ('Function: find_menu\nParameters: {"dish": ', "unparsable"),
        ("```python\nresult = find_menu(dish=", "unparsable"),
        ("<start_function_call>call:find_menu{", "unparsable"),
        ("<minimax:tool_call>", "unparsable"),
        ("<|START_ACTION|>[", "unparsable"),
        ("I looked at find_menu(dish=...), but it lists soups :(", "answered"),
        ('[find_menu(dish="so', "unparsable"),
        ('[dream(of="so', "answered"),
        ("find_menu (the list) names soups.", "answered"),
        ('{"use": "find_menu", "on": {"dish": "soup"}}', "unparsable"),
        ('{"answer": "The sky is blue because of scattering."}', "answered"),
    ]
    for text, decided in cases:
        with subtests.test(text):
            row = row_of("gold_removed")
            verdict = judge(reply(row, text), row, TABLE)
            assert [flag for flag in verdict.flags if flag in DECISIONS] == [decided]
            assert verdict.correct == (decided not in ("called", "unparsable"))
            if not verdict.correct:
                assert verdict.reason == ("unexpected_call" if decided == "called" else "unparsable")
                unregistered = any(call.name == "ListBerths" for call in verdict.calls)
                assert verdict.error_mode in (("ghost",) if unregistered else ("other", "empty"))


@pytest.mark.parametrize("text", ["Thought: none fits.\nAction: None\nAction Input: {}", "Action: N/A"])
def test_an_action_that_is_none_declines(text: str) -> None:
    row = msgspec.structs.replace(row_of("gold_removed"), source="rotbench", output_format="react")
    verdict = judge(reply(row, text), row, TABLE)
    assert verdict.correct and "refused" in verdict.flags


@pytest.mark.parametrize(
    "text", ['Thought: I look.\nAction: find_menu\nAction Input: {"dish": "so', "Action:"]
)
def test_an_action_that_breaks_off_is_no_refusal(text: str) -> None:
    row = msgspec.structs.replace(row_of("gold_removed"), source="rotbench", output_format="react")
    verdict = judge(reply(row, text), row, TABLE)
    assert not verdict.correct and "unparsable" in verdict.flags


def test_what_its_server_cut_or_refused_decides_nothing() -> None:
    row = row_of("missing_value")
    for one in (
        reply(row, "None of the tools fits, because", finish_reason="length"),
        reply(row, "None of", finish_reason="content_filter"),
        reply(row, None, status="rejected"),
        reply(row, None, status="too_long"),
    ):
        verdict = judge(one, row, TABLE)
        assert not verdict.correct and "unparsable" in verdict.flags


@pytest.mark.parametrize(
    ("name", "arguments", "decided"),
    [
        ("ask_to_user", '{"question": "Where?"}', "asked"),
        ("finish", '{"answer": "No tool can do that."}', "refused"),
        ("finish", '{"answer": "Because of scattering."}', "answered"),
        ("find_menu", '{"dish": "soup"}', "called"),
        ("find_menu", '{"dish": ', "called"),
    ],
)
def test_control_tools_call_nothing(name: str, arguments: str, decided: str) -> None:
    row = row_of("gold_removed")
    verdict = judge(reply(row, None, [{"id": "1", "name": name, "arguments": arguments}]), row, TABLE)
    assert decided in verdict.flags
    assert verdict.correct == (decided != "called")


def test_rows_of_the_core_have_no_class() -> None:
    assert judge(reply(TABLE, "Where?"), TABLE, TABLE).flags == ()
    due = row_of("call_due")
    right = judge(reply(due, "[reserve(place='Luna', seats=2)]"), due, TABLE)
    assert right.correct and right.flags == ("called",)
    declined = judge(reply(due, "No tool fits."), due, TABLE)
    assert not declined.correct and declined.flags == ("refused",) and declined.error_mode == "omitted"


@given(st.text(max_size=60), st.sampled_from(["stop", "length", None]))
def test_every_text_has_one_class_and_never_a_wrong_one_of_them(text: str, finish: str | None) -> None:
    row = row_of("gold_removed")
    verdict = judge(reply(row, text, finish_reason=finish), row, TABLE)
    (decided,) = (flag for flag in verdict.flags if flag in DECISIONS)
    assert verdict.correct == (decided in ("asked", "refused", "answered"))
    if not any(sign.isalnum() for sign in text.replace("[]", "x")) or (
        finish == "length" and decided != "called"
    ):
        assert decided == "unparsable"


# --- the numbers ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("abstention") / "robustbench-tc"
    api.build(folder, profile="bundled", types="abstention")
    return folder


def measured(folder: Path) -> dict[str, Table]:
    return {one.name: one for one in tables(pack_input(folder))}


def headline(found: dict[str, Table]) -> float:
    value = found["abstention_decisions"].rows[0][-1]
    assert isinstance(value, Interval) and value.low <= value.value <= value.high
    return value.value


@pytest.mark.parametrize(
    ("name", "mode", "balanced"),
    [
        ("always-calls", "prompt", 0.5),
        ("always-calls", "fc", 0.5),
        ("never-calls", "prompt", 0.5),
        ("never-calls", "fc", 0.5),
        ("oracle", "prompt", 1.0),
        ("silent", "fc", 0.0),
        ("invents-values", "prompt", 0.9),
        ("takes-what-is-left", "fc", 0.7),
    ],
)
def test_balanced_decision_accuracy_of_the_agents(
    release: Path, tmp_path: Path, name: str, mode: str, balanced: float
) -> None:
    done = api.evaluate(str(release), agent=name, mode=mode, samples=15, out=tmp_path / "run")
    assert done.unexpected == []
    assert headline(measured(tmp_path / "run")) == balanced
    mart = query("abstention", Inputs(runs=(str(tmp_path / "run"),))).to_pylist()
    assert {row["balanced_accuracy"] for row in mart} == {balanced}
    shown = {row[0]: row for row in measured(tmp_path / "run")["abstention_outcomes"].rows}
    for row in mart:
        assert [row[name] / row["n"] for name in DECISIONS] == list(shown[row["type_code"]][2:])


def test_unparsable_replies_are_wrong_on_both_sides() -> None:
    ids = [f"bfcl_v3__{n}" for n in range(4)]
    decided = {
        "call_due": ["called", "called", "unparsable", "refused"],
        "gold_removed": ["asked", "refused", "unparsable", "called"],
        "missing_value": ["answered", "unparsable", "unparsable", "unparsable"],
    }

    def counts(code: str) -> abstention.Decided:
        due = code == "call_due"
        right = [one == "called" if due else one in abstention.DECLINES for one in decided[code]]
        outcomes: dict[str, int] = {name: decided[code].count(name) for name in DECISIONS}
        return abstention.Decided(np.ones(len(ids), np.int64), np.array(right, np.int64), outcomes)

    both, due, none = abstention.balanced({code: counts(code) for code in decided})
    assert both is not None and due is not None and none is not None
    assert due.value == 0.5 and none.value == float((Fraction(2, 4) + Fraction(1, 4)) / 2)
    assert both.value == (due.value + none.value) / 2
    assert both.low < both.value < both.high
    assert abstention.balanced({"call_due": counts("call_due")})[0] is None


def test_words_across_the_middle_of_what_is_looked_at_are_seen() -> None:
    before = ("a " * _LOOKED_AT)[: _LOOKED_AT - 4] + "I cannot do that"
    said = before + " b" * ((2 * _LOOKED_AT - len(before)) // 2)
    assert len(said) == 2 * _LOOKED_AT and _of_words(said) == "refused"
    assert _of_words(said[:_LOOKED_AT] + "\n" + said[_LOOKED_AT:]) == "answered"
