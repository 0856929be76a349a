"""Texts that are rewritten or added: what may be touched, a text's key, tools in their registry's form."""

import itertools
from typing import Any

import pytest
from hypothesis import given, strategies as st

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
from robustbench_tc.builders.perturb.query import rewritten, wish_span
from robustbench_tc.builders.perturb.registry import accepts, in_form_of, near_duplicates
from robustbench_tc.builders.sources import BUNDLED, read_pool as read_samples
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


def test_a_rewriting_keeps_what_stands_on_both_sides_of_the_query() -> None:
    clean = sample("  Any ferry?  ")
    assert rewritten(clean, sample("  Any boat?  ")) == ("Any boat?", [])
    assert rewritten(clean, sample("   "))[1] == ["text outside the query changed"], "one blank for two sides"


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


def test_the_registry_gives_its_form_and_no_parameter() -> None:
    new = in_form_of([LIST], TOLL, LIST)
    assert new == tool(
        "BridgeToll",
        "the toll of a bridge",
        {
            "axles": {"type": "string", "description": "number of axles"},
            "bridge": text("name of the bridge"),
            "harbour": text("Where the bridge is"),
        },
    )
    assert "required" not in new.parameters


def test_a_number_takes_the_word_for_numbers_of_the_registry() -> None:
    count = tool("Count", "Counts.", {"km": {"type": "number"}}, required=[])
    new = in_form_of([count], TOLL, count)
    assert new is not None and new.properties["axles"]["type"] == "number"
    assert new.properties["bridge"]["type"] == "string" and new.required == ()


def test_where_the_registry_names_no_type_a_parameter_is_a_text() -> None:
    bare = tool("Bare", "Bare.", {"x": {"description": "Anything."}})
    new = in_form_of([bare], tool("Open", "Opens.", {"open": {"type": "boolean"}}), bare)
    assert new is not None and new.properties == {"open": {"type": "string"}}


def test_an_array_is_written_with_the_keys_of_the_registry() -> None:
    days = {"type": "array", "items": {"type": "number"}, "description": "The days."}
    new = in_form_of([tool("A", "a", {"days": days})], tool("B", "b", {"x": {"type": "array"}}), PLAIN)
    assert new is not None and new.properties["x"] == {"type": "array", "items": {"type": "number"}}
    same = in_form_of([tool("A", "a", {"days": days})], tool("B", "b", {"x": days}), PLAIN)
    assert same is not None and same.properties["x"] == days, "what has the registry's keys and words stays"


@pytest.mark.parametrize(
    "inner", [{"type": "string", "enum": ["m"]}, {"type": "array", "items": {"type": "string"}}]
)
def test_a_tool_that_could_only_be_reshaped_is_left_out(inner: dict[str, Any]) -> None:
    assert in_form_of([LIST], tool("New", "Does.", {"x": inner}), LIST) is None


WRITTEN = st.builds(
    lambda name, said, inner, needs: tool(
        name, said, inner, required=[one for one, need in zip(inner, needs, strict=False) if need]
    ),
    st.text("abc", min_size=1),
    st.text("ab. "),
    st.dictionaries(
        st.text("abcde", min_size=1, max_size=2),
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(("string", "integer", "number", "boolean", "array")),
                "description": st.text("xY."),
            }
        ),
        max_size=5,
    ),
    st.lists(st.booleans(), min_size=5, max_size=5),
)


@given(st.lists(WRITTEN, min_size=1, max_size=3), WRITTEN)
def test_nothing_is_copied_padded_or_cut(registry: list[Tool], written: Tool) -> None:
    new, beside = in_form_of(registry, written, registry[0]), registry[0]
    assert new is not None and (new.name, new.description) == (written.name, written.description)
    assert list(new.properties) == list(written.properties)
    words = {inner["type"] for one in registry for inner in one.properties.values()} | {"string"}
    for name, inner in new.properties.items():
        assert inner["description"] == written.properties[name]["description"] and inner["type"] in words
    for share in (0, 1):  # none required stays none, all stays all
        if beside.properties and len(beside.required) == share * len(beside.properties):
            assert len(new.required) == share * len(new.properties)


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
