"""Context, results and repeated errors: what their rows hold, drawn from any pool."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc.audits.invariants import INVARIANTS
from robustbench_tc.builders.perturb import REGISTRY, Context, NotApplicable
from robustbench_tc.builders.perturb.context import TOKEN, Exchanges, holds, leading
from robustbench_tc.builders.perturb.context_orders import arguments, unrelated
from robustbench_tc.builders.perturb.context_results import TEMPLATES, success
from robustbench_tc.builders.perturb.context_text import COUNT, own_exchanges
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import Call, Message, Sample, Tool, dumps, loads

from ...eval import small
from .strategies import samples

LONGER = {"context_2k": 2_000, "context_8k": 8_000, "context_32k": 32_000}


def row_of(code: str, sample: Sample, context: Context | None = None, seed: int = 0) -> Sample:
    return REGISTRY[code].perturb(sample, random.Random(seed), context or Context())


def test_our_own_text_is_enough_for_the_longest_context_and_holds_no_digit() -> None:
    found = own_exchanges()
    texts = [text for one in found for text in one]
    assert len(found) == COUNT == len({one.request for one in found})
    assert sum(map(len, texts)) > 2 * 32_000 * TOKEN
    assert not any(char.isdigit() for text in texts for char in text)
    assert max(map(len, texts)) < 1_000


@pytest.mark.parametrize("code", LONGER)
@pytest.mark.parametrize("sample", small.clean_rows(), ids=lambda one: one.source)
def test_exchanges_stand_between_the_system_and_the_request(code: str, sample: Sample) -> None:
    sample = msgspec.structs.replace(sample, messages=(Message("system", "Be kind."), *sample.messages))
    row = row_of(code, sample, Context(samples=small.clean_rows()))
    added = row.messages[1:-1]
    assert row.messages[0] == sample.messages[0] and row.messages[-1] == sample.messages[-1]
    assert [one.role for one in added] == ["user", "assistant"] * (len(added) // 2)
    length = sum(len(one.content) for one in added)
    assert LONGER[code] * TOKEN <= length < LONGER[code] * TOKEN + 1_500
    requests = [one.content for one in added[::2]]
    assert len(requests) == len(set(requests)) and sample.messages[-1].content not in requests
    assert self_check(row, sample) is None
    assert dumps(row) == dumps(row_of(code, sample, Context(samples=small.clean_rows())))
    assert row.messages != row_of(code, sample, Context(samples=small.clean_rows()), seed=1).messages


@settings(max_examples=25, deadline=None)
@given(sample=samples(), pool=st.lists(samples(), max_size=6), seed=st.integers(0, 99))
def test_no_exchange_is_of_a_tool_of_the_registry_or_holds_a_golden_value(
    sample: Sample, pool: list[Sample], seed: int
) -> None:
    context = Context(samples=tuple(pool))
    try:
        row = row_of("context_2k", sample, context, seed)
    except NotApplicable as skip:
        assert skip.reason == "too_little_text"
        return
    head = leading(sample.messages)
    said = {one.content for one in row.messages[head : len(row.messages) - len(sample.messages) + head]}
    names = {tool.name for tool in sample.tools}
    for other in pool:
        if other.messages[-1].content in said:
            assert names.isdisjoint(call.name for answer in other.golden_answers for call in answer)
    values = {
        str(value).casefold()
        for answer in sample.golden_answers
        for call in answer
        for values in call.parameters.values()
        for value in values
    }
    text = "\n".join(said).casefold()
    assert not any(holds(text, value) for value in values)
    assert REGISTRY["context_2k"].check(sample, row) == []


def test_a_tool_of_like_name_or_like_purpose_keeps_its_exchanges_out() -> None:
    def made(name: str, description: str) -> Tool:
        return Tool(name, description, {"type": "object", "properties": {}})

    def asked(number: int, tool: Tool) -> Sample:
        (first, *_) = small.clean_rows()
        golden = ((Call(tool.name, {}),),)
        messages = (Message("user", f"Request {number}, please."),)
        return msgspec.structs.replace(first, messages=messages, tools=(tool,), golden_answers=golden)

    pool = Exchanges(
        [
            asked(1, made("weather.forecast", "Predicts sunshine and rainfall for tomorrow.")),
            asked(2, made("bookTable", "Reserves seats in a restaurant.")),
            asked(3, made("rain_tomorrow", "Says whether rainfall is likely, and sunshine.")),
        ]
    )
    kept_out = pool.forbidden([made("getWeatherForecast", "")])
    assert kept_out[:3].tolist() == [True, False, False] and not kept_out[3:].any()
    kept_out = pool.forbidden([made("x", "Rainfall or sunshine tomorrow.")])
    assert kept_out[:3].tolist() == [True, False, True]


def test_a_request_that_two_samples_share_is_kept_out_of_both() -> None:
    (first, *_) = small.clean_rows()
    tools = [Tool(name, "", {"type": "object", "properties": {}}) for name in ("f_one", "g_two")]
    both = [
        msgspec.structs.replace(first, tools=(tool,), golden_answers=((Call(tool.name, {}),),))
        for tool in tools
    ]
    pool = Exchanges(both)
    assert len(pool.held) == COUNT + 1
    assert [bool(pool.forbidden([tool])[0]) for tool in tools] == [True, True]


@pytest.mark.parametrize(
    ("text", "value", "is_there"),
    [
        ("a cat sat", "cat", True),
        ("concatenate", "cat", False),
        ("cats and a cat", "cat", True),
        ("for $5.", "5", True),
        ("for $55.", "5", False),
        ("so?", "?", True),
        ("", "x", False),
    ],
)
def test_a_value_within_a_word_is_not_there(text: str, value: str, is_there: bool) -> None:
    assert holds(text, value) is is_there


def test_a_sample_whose_golden_value_is_in_every_text_is_left_out_with_reason() -> None:
    (first, *_) = small.clean_rows()
    golden = ((Call(first.golden_answers[0][0].name, {"unit": ["the"]}),),)
    with pytest.raises(NotApplicable, match="too_little_text"):
        row_of("context_2k", msgspec.structs.replace(first, golden_answers=golden))


@settings(max_examples=60, deadline=None)
@given(sample=samples(), seed=st.integers(0, 99))
def test_an_order_is_about_another_tool_and_the_benign_text_is_its_beginning(
    sample: Sample, seed: int
) -> None:
    try:
        row = row_of("injected_result", sample, seed=seed)
    except NotApplicable as skip:
        with pytest.raises(NotApplicable, match=skip.reason):
            row_of("benign_result", sample)
        return
    benign = row_of("benign_result", sample, seed=seed)
    (change,) = row.changes
    text, call = row.injected_error or "", change.after["orders"]
    assert text[: change.at] == f"{benign.injected_error}\n" and benign.changes == ()
    result = loads(benign.injected_error or "")["result"]
    assert isinstance(result, float) or (isinstance(result, dict | list) and result)
    assert text.count(f"{call['name']} with {dumps(call['parameters'])}") == 1 and call["parameters"]
    assert call["name"] in [tool.name for tool in unrelated(sample)]
    assert call["name"] not in {c.name for answer in sample.golden_answers for c in answer}
    assert change.after["template"] in TEMPLATES
    assert INVARIANTS["order_is_for_nothing_in_the_request"].holds(row, sample) == ""
    assert dumps(row_of("injected_result", sample, seed=seed)) == dumps(row)


USED = {
    "the conversation speaks of": {"description": "Plays a tune about Galdhoppen."},
    "which the ordered tool gives": {"name": "unit_list"},
    "which the golden call gives": {"parameters": {"properties": {"height": {"type": "string"}}}},
}
"""Ways in which an order can be about a tool that the sample needs."""


@pytest.mark.parametrize("reason", USED)
def test_no_order_is_about_a_tool_that_the_sample_uses_and_the_audit_names_one_that_is(reason: str) -> None:
    sample = small.clean_rows()[0]
    other = msgspec.structs.replace(sample.tools[0], name="play_tune", description="Plays a tune.")
    sample = msgspec.structs.replace(sample, tools=(other, sample.tools[1]))
    row = row_of("injected_result", sample)
    audit = INVARIANTS["order_is_for_nothing_in_the_request"].holds
    assert row.changes[0].after["orders"]["name"] == "play_tune" and audit(row, sample) == ""
    used = msgspec.structs.replace(other, **USED[reason])
    needed = msgspec.structs.replace(sample, tools=(used, sample.tools[1]))
    with pytest.raises(NotApplicable, match="no_unrelated_tool"):
        row_of("injected_result", needed)
    arguments = {"height": "x"} if "height" in used.properties else {}
    after = {"orders": {"name": used.name, "parameters": arguments}, "template": "user"}
    change = msgspec.structs.replace(row.changes[0], after=after)
    said = audit(msgspec.structs.replace(row, tools=needed.tools, changes=(change,)), needed)
    assert said is not None and reason in said


def test_a_transcript_uses_every_listed_tool() -> None:
    transcript = small.clean_rows()[1]
    with pytest.raises(NotApplicable, match="no_unrelated_tool"):
        row_of("injected_result", transcript)


def test_every_template_is_drawn() -> None:
    sample = small.clean_rows()[3]
    rows = [row_of("injected_result", sample, seed=seed) for seed in range(200)]
    assert {row.changes[0].after["template"] for row in rows} == set(TEMPLATES)
    assert {row.changes[0].after["orders"]["name"] for row in rows} == {"stampList"}


@pytest.mark.parametrize(
    ("about", "kind"),
    [("Calculates the area.", float), ("Lists all boats.", list), ("Books a berth.", dict)],
)
def test_a_result_is_of_the_kind_that_the_tool_gives(about: str, kind: type) -> None:
    text = success(Tool("t", about, {}), random.Random(1))
    assert isinstance(loads(text)["result"], kind)


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"type": "string"}, lambda value: len(value) > 8),
        ({"type": "string", "enum": [None, "b"]}, lambda value: value == "b"),
        ({"type": "integer", "minimum": 7_000}, lambda value: value == 7_000),
        ({"type": "integer", "maximum": -2}, lambda value: value == -2),
        ({"type": "float"}, lambda value: value > 1_000),
        ({"type": "boolean"}, lambda value: isinstance(value, bool)),
        ({"type": "array", "items": {"type": "integer"}}, lambda value: value[0] > 1_000),
        (
            {"type": "dict", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            lambda value: value.keys() == {"a"},
        ),
        ({"type": "object"}, lambda value: bool(value)),
        ({"type": "no such type"}, None),
        ({}, None),
        ("not a schema", None),
    ],
)
def test_arguments_are_specific_and_fit_the_schema(schema: object, fits: Any) -> None:
    tool = Tool("t", "", {"type": "object", "properties": {"p": schema, "q": {}}, "required": ["p"]})
    found = arguments(tool, random.Random(0))
    assert found is None if fits is None else found is not None and fits(found["p"])


@pytest.mark.parametrize(
    ("tools", "gold", "reason"),
    [
        (["f"], "f", "no_other_tool"),
        (["f", "finish", "ask_to_user"], "f", "only_control_tools"),
        (["finish", "f"], "finish", "gold_is_a_control_tool"),
        (["f", "odd"], "f", "no_arguments_fit"),
        (["f", "bare"], "f", "no_arguments_fit"),
        (["f", "g", "g"], "f", "only_control_tools"),
    ],
)
def test_why_a_sample_has_no_results(tools: list[str], gold: str, reason: str) -> None:
    odd = {"type": "object", "properties": {"p": {"type": "?"}}, "required": ["p"]}
    made = tuple(Tool(name, "", odd if name == "odd" else {"type": "object"}) for name in tools)
    sample = msgspec.structs.replace(
        small.clean_rows()[0],
        tools=made,
        golden_answers=((Call(gold, {}),),),
        gold_tool_index=tools.index(gold),
    )
    for code in ("benign_result", "injected_result"):
        with pytest.raises(NotApplicable, match=reason):
            row_of(code, sample)


def test_repeated_errors_have_the_time_outs_text() -> None:
    text = REGISTRY["transient_timeout"].injected_error
    assert [REGISTRY[f"transient_timeout_x{n}"].injected_error for n in (1, 2, 9)] == [text] * 3
