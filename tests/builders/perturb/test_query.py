"""The passage that may be touched: the last substantive user turn."""

import json
import re
from pathlib import Path

import pytest

from robustbench_tc.builders.perturb import NotApplicable, gold_texts, kept_values, query_span, query_text
from robustbench_tc.builders.perturb.offers import abbreviate, annotation, free_name
from robustbench_tc.builders.perturb.query import wish_span
from robustbench_tc.builders.perturb.registry import accepts
from robustbench_tc.builders.sources import read
from robustbench_tc.schema import ANY, OMIT, Call, Message, Sample, Tool

CLOSING = "<user> With this in mind, answer with one tool call.</user>\n"


def sample(content: str, **parameters: list[object]) -> Sample:
    return Sample(
        id="s::clean",
        clean_id="s",
        type_code="clean",
        source="apibank",
        category="level1",
        messages=(Message("user", content),),
        tools=(Tool("f", "", {}),),
        golden_answers=((Call("f", dict(parameters)),),),
        output_format="tool_call_tags",
        gold_tool_index=0,
    )


def test_a_turn_of_bare_data_is_passed_over() -> None:
    text = (
        "<user>Could you put this on my list?</user>\n<response>What?</response>\n"
        f"<user>Buy oat milk and rye bread</user>\n{CLOSING}"
    )
    assert query_text(sample(text, item=["Buy oat milk and rye bread"])) == "Could you put this on my list?"
    assert query_text(sample(text, item=["other"])) == "Buy oat milk and rye bread"


def test_words_of_a_gold_value_that_stands_for_a_list_are_data_too() -> None:
    text = f"<user>It is today at ten, 2021.</user>\n<user>Pulse is 75 and weight is 80.</user>\n{CLOSING}"
    gold = "[{'name': 'pulse', 'value': '75'}, {'name': 'weight', 'value': '80'}]"
    assert query_text(sample(text, data=[gold])) == "It is today at ten, 2021."


def test_the_longest_turn_serves_where_none_is_substantive() -> None:
    assert query_text(sample(f"<user>Oslo</user><user> Stavanger </user>{CLOSING}")) == "Stavanger"


def test_the_span_is_exact_and_trimmed() -> None:
    text = "  Where is the nearest ferry now?\n"
    span = query_span(sample(text))
    assert text[span.start : span.end] == "Where is the nearest ferry now?"


def test_a_conversation_without_words_has_no_query() -> None:
    with pytest.raises(NotApplicable, match="no_user_text"):
        query_span(sample("  "))


def test_gold_texts_leave_markers_and_booleans_out() -> None:
    one = sample("x", a=["Oslo", OMIT], b=[3, 2.5, True], c=[ANY], d=[{"e": ["deep"]}])
    assert gold_texts(one) == ("Oslo", "3", "2.5", "deep")
    assert kept_values(one, "to Oslo by 3") == ("Oslo", "3")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("mutation_type.find", "mut_type.find"),
        ("country_info.capital", "cou_info.cap"),
        ("ip_more", "ip_more"),
        ("ask_to_user", "ask_to_user"),
        ("findCatByTag", "findCatByTag"),
        ("findCatWithText", "findCatWithText"),
        ("getCurrentHTTPStatus2", "getCurHTTPSta2"),
        ("Level200Info", "Lev200Info"),
        ("2findFerry2", "2findFer2"),
        ("", ""),
    ],
)
def test_names_are_cut_part_by_part(name: str, short: str) -> None:
    assert abbreviate(name) == short


def test_a_taken_suffix_takes_the_next_number() -> None:
    assert free_name("f_1", {"f"}) == "f_1"
    assert free_name("f_1", {"f_1", "f_2"}) == "f_3"
    assert free_name("f_Fast", {"f_Fast"}) == "f_Fast_2"


def test_annotations_are_read_back() -> None:
    assert annotation("Finds. Price per call: $0.020.") == 0.02
    assert annotation("Finds. Typical response time: 80 ms.") == 80
    assert annotation("Price per call: $0.020. Or more.") is None


def test_the_recorded_inputs_are_the_passages_found(shared: Path) -> None:
    lines = (shared / "recorded" / "generations.jsonl").read_text().splitlines()
    recorded = [json.loads(line) for line in lines]
    inputs = {r["clean_id"]: r["input"] for r in recorded if r["kind"] == "query_paraphrase"}
    found = {s.clean_id: query_text(s) for s in read(shared / "sources", "paper").samples}
    squeezed = {i: re.sub(r"\s+", " ", t) for i, t in found.items()}
    assert squeezed == {i: re.sub(r"\s+", " ", t) for i, t in inputs.items()}


def test_a_wish_stands_where_no_call_is_executed_after_it() -> None:
    call = '<tool_call>{"name": "f", "parameters": {}}</tool_call><obs>1</obs>'
    asked = f"<user>Book a table for us tonight.</user>{call}"
    closing = "With this in mind, answer with one tool call."
    said = {f"{asked}<user>Luna</user>{CLOSING}": "Luna", f"{asked}{CLOSING}": closing}
    for content, wanted in said.items():
        span = wish_span(sample(content))
        assert content[span.start : span.end] == wanted
    with pytest.raises(NotApplicable, match="call_after_last_user_turn"):
        wish_span(sample(f"<user>Book a table.</user>{call}"))


def test_a_call_fits_a_tool_that_declares_its_shortest_form_and_requires_no_more() -> None:
    one = Call("f", {"a": [1], "b": ["x", OMIT]})
    properties: dict[str, object] = {"a": {}, "c": {}}
    assert accepts(Tool("f", "", {"properties": properties}), [one])
    assert accepts(Tool("f", "", {"properties": properties, "required": ["a"]}), [one])
    assert not accepts(Tool("f", "", {"properties": properties, "required": ["c"]}), [one])
    assert not accepts(Tool("f", "", {"properties": {"b": {}}}), [one])
    assert not accepts(Tool("f", "", {}), [one]) and accepts(Tool("f", "", {}), [Call("f", {"b": [OMIT]})])
