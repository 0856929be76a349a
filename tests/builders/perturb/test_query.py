"""Texts that are rewritten or added: what may be touched, a text's key, tools in their registry's form."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.builders.build import BuildSpec, prepare
from robustbench_tc.builders.perturb import (
    REGISTRY,
    NotApplicable,
    TextRequest,
    base,
    gold_texts,
    kept_values,
    query_span,
    query_text,
)
from robustbench_tc.builders.perturb.offers import abbreviate, annotation, free_name
from robustbench_tc.builders.perturb.query import wish_span
from robustbench_tc.builders.perturb.registry import accepts
from robustbench_tc.builders.perturb.style import like, near_duplicates, styled
from robustbench_tc.builders.sources import BUNDLED, read, read as read_samples
from robustbench_tc.schema import ANY, OMIT, Call, Message, Sample, Tool
from robustbench_tc.seeding import rng

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


# --- A text's key is asked for often and hashed once; where nobody writes, it is not asked for at all


def test_a_key_depends_on_kind_place_and_normalised_text_alone() -> None:
    one = TextRequest(kind="redundant", input="Books  a table. ", tool="reserve")
    same = TextRequest(kind="redundant", input="Books a table", tool="reserve", keep=("x",), context={"a": 1})
    assert one.key == same.key and len(one.key) == 32
    others = [
        TextRequest(kind="redundant", input="Books a table", tool="reserve", parameter="seats"),
        TextRequest(kind="query_paraphrase", input="Books a table", tool="reserve"),
        TextRequest(kind="redundant", input="Books a table"),
        TextRequest(kind="redundant", input="Books a table", tool="reserve", sample="a"),
        TextRequest(kind="redundant", input="Books a table", tool="reserve", sample="b"),
    ]
    assert len({one.key, *(other.key for other in others)}) == 6


def test_no_key_is_made_where_nobody_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*parts: str | None) -> str:
        raise AssertionError(f"a key was made for {parts}")

    pool = read_samples(BUNDLED, "bundled")
    codes = tuple(code for code, unit in REGISTRY.items() if unit.method == "llm")
    monkeypatch.setattr(base, "_key", refused)
    plan = prepare(BuildSpec(profile="bundled", codes=codes, generators=("none",)), pool=pool).plan
    context = plan.context()
    for code in codes:
        for sample in pool.samples:
            with pytest.raises(NotApplicable):
                REGISTRY[code].perturb(sample, rng(0, code, sample.clean_id), context)


# --- New tools in the form of their registry: keys, types, counts, habits of descriptions; near duplicates


def tool(name: str, description: str, properties: dict[str, Any], **more: Any) -> Tool:
    return Tool(name, description, {"type": "object", "properties": properties, **more})


def text(said: str) -> dict[str, Any]:
    return {"type": "string", "description": said}


LIST = tool("ListBerths", "Lists free berths.", {"harbour": text("The harbour."), "day": text("The day.")})
PLAIN = tool("Weather", "Tells the weather.", {})
TOLL = tool(
    "BridgeToll",
    "the toll of a bridge",
    {
        "axles": {"type": "integer", "description": "number of axles"},
        "bridge": text("name of the bridge"),
        "harbour": text("Where the bridge is"),
    },
    required=["axles", "bridge"],
)


def form(one: Tool) -> tuple[Any, ...]:
    kinds = [tuple((k, v) for k, v in p.items() if k != "description") for p in one.properties.values()]
    keys = [tuple(p) for p in one.properties.values()]
    return tuple(one.parameters), tuple(kinds), tuple(keys), len(one.required)


def test_a_new_tool_takes_the_form_of_a_tool_of_the_registry() -> None:
    (new,) = styled([(TOLL, LIST)], [LIST])
    assert form(new) == form(LIST) and "required" not in new.parameters
    assert new.name == "BridgeToll" and new.description == "The toll of a bridge."
    assert new.properties["bridge"] == text("Name of the bridge.")
    assert new.properties["harbour"] == text("The harbour."), "described as in the registry"


def test_forms_are_those_of_the_registry_each_twice_at_most() -> None:
    registry = [LIST, PLAIN]
    new = [(tool(f"t{i}", "Does.", {"a": text("An a."), "b": text("A b.")}), LIST) for i in range(4)]
    assert sorted(map(str, map(form, styled(new, registry)))) == sorted(map(str, map(form, registry * 2)))
    assert styled(new, registry) == styled(new, registry)


def test_what_the_form_lacks_comes_from_the_tool_it_stands_beside() -> None:
    (new,) = styled([(PLAIN, LIST)], [LIST])
    assert new.properties == LIST.properties
    (short,) = styled([(LIST, PLAIN)], [PLAIN])
    assert not short.properties and short.parameters == {"type": "object", "properties": {}}


def test_a_parameter_with_more_than_a_type_is_borrowed_whole() -> None:
    unit = {"type": "string", "description": "The unit.", "enum": ["m", "ft"], "default": "m"}
    model = tool("Depth", "Tells the depth.", {"place": text("The place."), "unit": unit}, required=["place"])
    (new,) = styled([(TOLL, model)], [model])
    assert form(new) == form(model) and new.properties["unit"] == unit and new.required == ("bridge",)


@pytest.mark.parametrize(
    ("own", "slot", "wanted"),
    [
        ({"axles": {"type": "integer"}}, {"place": {"type": "string"}}, {"axles": {"type": "string"}}),
        ({"km": {"type": "number"}}, {"count": {"type": "integer"}}, {"km": {"type": "integer"}}),
        ({"name": {"type": "string"}}, {"count": {"type": "integer"}}, {"count": {"type": "integer"}}),
        ({"open": {"type": "boolean"}}, {"count": {"type": "integer"}}, {"count": {"type": "integer"}}),
        (
            {"unit": {"type": "string", "enum": ["m", "ft"]}},
            {"place": {"type": "string"}},
            {"place": {"type": "string"}},
        ),
    ],
    ids=["number-as-text", "number-as-number", "text-as-number", "boolean-as-number", "choice-as-text"],
)
def test_a_parameter_takes_a_type_in_which_it_can_be_said_and_no_other(
    own: dict[str, Any], slot: dict[str, Any], wanted: dict[str, Any]
) -> None:
    """Where it cannot be said, the model's own parameter stands in its place."""
    (new,) = styled([(tool("New", "Does.", own), PLAIN)], [tool("Model", "Does.", slot)])
    assert new.properties == wanted


@pytest.mark.parametrize(
    ("said", "model", "wanted"),
    [
        ("lists it", "Finds it.", "Lists it."),
        ("Lists it.", "finds it", "lists it"),
        ("GPS position.", "finds it", "GPS position"),
        ("Is it?", "Finds it.", "Is it?"),
        ("Lists it.", "", "Lists it."),
    ],
)
def test_habits_of_a_description(said: str, model: str, wanted: str) -> None:
    assert like(said, model) == wanted


DUPLICATES = [
    (tool("get_split", "Past splits.", {}), tool("get_splits", "Dates and ratios of a stock.", {})),
    (tool("a", "Get the tides of a harbour.", {}), tool("b", "Returns the tides of one harbour", {})),
]


def test_near_duplicates() -> None:
    assert all(near_duplicates(one, other) and near_duplicates(other, one) for one, other in DUPLICATES)
    assert not any(
        near_duplicates(one, other) for one, other in itertools.permutations([LIST, PLAIN, TOLL], 2)
    )


@pytest.mark.parametrize(
    ("shared", "of", "duplicates"),
    [(3, 5, True), (13, 22, False), (5, 9, True), (6, 11, False)],
    ids=["60 in a hundred", "59 in a hundred", "half the name and 55", "half the name and 54"],
)
def test_how_many_words_make_near_duplicates(shared: int, of: int, duplicates: bool) -> None:
    """By the descriptions alone 60 of a hundred words; together with those of the names 105."""
    words = [f"word{number}x" for number in range(of)]
    names = ("tide", "tide_table") if of in (9, 11) else ("tide", "chart")
    one, other = tool(names[0], " ".join(words), {}), tool(names[1], " ".join(words[:shared]), {})
    assert near_duplicates(one, other) is duplicates
