"""Context and results: what their rows hold, drawn from any pool."""

import random
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc.audits.hygiene.secrets import guesses
from robustbench_tc.audits.invariants import INVARIANTS
from robustbench_tc.audits.invariants.base import is_for
from robustbench_tc.builders.perturb import REGISTRY, Context, NotApplicable
from robustbench_tc.builders.perturb.context import TOKEN
from robustbench_tc.builders.perturb.context_orders import TEMPLATES, arguments, success, unrelated
from robustbench_tc.builders.perturb.context_session import callable_tools
from robustbench_tc.builders.perturb.context_text import holds
from robustbench_tc.eval.prompts.calls import earlier_calls, tool_call_tags
from robustbench_tc.eval.score import score
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import Call, Message, Sample, Tool, dumps, loads

from ...eval import small
from .strategies import samples

LENGTHS = {"2k": 2_000, "8k": 8_000, "32k": 32_000}
LONGER = {
    f"{series}_{name}": tokens for series in ("context", "context_text") for name, tokens in LENGTHS.items()
}
AUDITS = (
    "request_stands_last_as_it_was",
    "earlier_calls_are_the_rows_own",
    "no_sentence_form_stands_six_times",
)


def row_of(code: str, sample: Sample, context: Context | None = None, seed: int = 0) -> Sample:
    return REGISTRY[code].perturb(sample, random.Random(seed), context or Context())


def audited(row: Sample, clean: Sample) -> dict[str, str]:
    """What the audit's checks of longer contexts find wrong."""
    checks = (INVARIANTS[name] for name in AUDITS if is_for(INVARIANTS[name], row.type_code))
    return {check.name: said for check in checks if (said := check.verdict(row, clean))}


@pytest.mark.parametrize("code", LONGER)
@pytest.mark.parametrize("sample", small.clean_rows(), ids=lambda one: one.source)
def test_exchanges_stand_between_the_system_and_the_request(code: str, sample: Sample) -> None:
    sample = msgspec.structs.replace(sample, messages=(Message("system", "Be kind."), *sample.messages))
    context = Context(samples=small.clean_rows())
    if "context_text" not in code and not callable_tools(sample):
        with pytest.raises(NotApplicable, match="no_tool_to_call"):
            row_of(code, sample, context)
        return
    row = row_of(code, sample, context)
    added = row.messages[1:-1]
    assert row.messages[0] == sample.messages[0] and row.messages[-1] == sample.messages[-1]
    assert sum(len(one.content) for one in added) >= LONGER[code] * TOKEN
    assert REGISTRY[code].check(sample, row) == [] and audited(row, sample) == {}
    assert self_check(row, sample) is None
    assert dumps(row) == dumps(row_of(code, sample, Context(samples=small.clean_rows())))
    assert row.messages != row_of(code, sample, context, seed=1).messages


@settings(max_examples=25, deadline=None)
@given(sample=samples(), pool=st.lists(samples(), max_size=6), seed=st.integers(0, 99))
@pytest.mark.parametrize("code", ["context_2k", "context_text_2k"])
def test_no_exchange_makes_whoever_copies_it_right(
    code: str, sample: Sample, pool: list[Sample], seed: int
) -> None:
    try:
        row = row_of(code, sample, Context(samples=tuple(pool)), seed)
    except NotApplicable as skip:
        assert skip.reason in ("too_little_text", "no_tool_to_call")
        return
    assert REGISTRY[code].check(sample, row) == [] and audited(row, sample) == {}
    calls = [call for one in row.messages if (found := earlier_calls(one)) for call in found[1]]
    assert bool(calls) == (code == "context_2k")
    for call in calls:
        verdict = score(
            [call],
            source=sample.source,
            category=sample.category,
            golden_answers=sample.golden_answers,
            tools=sample.tools,
        )
        assert not verdict.correct


def planted(row: Sample, place: int, content: str) -> Sample:
    message = msgspec.structs.replace(row.messages[place], content=content)
    return msgspec.structs.replace(row, messages=(*row.messages[:place], message, *row.messages[place + 1 :]))


def test_the_audit_names_each_way_in_which_a_context_can_be_wrong() -> None:
    sample = small.clean_rows()[0]
    row = row_of("context_2k", sample)
    called = [place for place, one in enumerate(row.messages) if earlier_calls(one)]
    check = "earlier_calls_are_the_rows_own"
    for call, reason in (
        (Call("no_such_tool", {}), "which is not listed"),
        (Call("summit.height", {"altitude": 1}), "other arguments than it declares"),
    ):
        assert reason in audited(planted(row, called[0], tool_call_tags([call])), sample)[check]
    bare = planted(row, called[0], "I will look that up.")
    assert "without a call" in audited(bare, sample)[check]
    gold = planted(row, called[0], tool_call_tags([Call("summit.height", {"mountain": "Galdhoppen"})]))
    assert "a golden value stands before the request" in REGISTRY[row.type_code].check(sample, gold)
    names_only = msgspec.structs.replace(sample, golden_answers=((Call(sample.tools[0].name, {}),),))
    used = planted(row, called[0], tool_call_tags([Call(sample.tools[0].name, {"start": "a", "stop": "b"})]))
    assert "answers the request" in audited(used, names_only)[check]
    again = planted(row, 0, "Please mend the 7 boats near Oslo. " * 6)
    assert audited(again, sample).keys() == {"no_sentence_form_stands_six_times"}
    text = row_of("context_text_2k", sample)
    named = planted(text, 1, "Use summit.height.")
    assert "a golden value stands before the request" in REGISTRY[text.type_code].check(sample, named)
    as_if = msgspec.structs.replace(row, type_code="context_text_2k")
    assert "request_stands_last_as_it_was" in audited(as_if, sample)


def test_prose_and_keys_of_long_contexts_are_of_many_forms() -> None:
    """Measured as the issue does: sixty rows, names and numbers masked, JSON apart."""
    pool = [row for row in small.clean_rows() if callable_tools(row)]
    forms: set[str] = set()
    keys: set[tuple[str, ...]] = set()
    for number in range(60):
        for message in row_of("context_32k", pool[number % len(pool)], seed=number).messages[:-1]:
            if message.role != "tool":
                prose = message.content.partition("<tool_call>")[0]
                forms |= {
                    re.sub(r"(?:\b[A-Z]\w*|\d+)\W*", "*", one) for one in re.split(r"(?<=[.?])\s", prose)
                }
            elif message.content.startswith("{"):
                keys |= set(_key_sets(loads(message.content)))
    assert len(forms) >= 3_000 and len(keys) >= 500


def _key_sets(value: Any) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        yield tuple(sorted(value))
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _key_sets(inner)


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
        row_of("context_text_2k", msgspec.structs.replace(first, golden_answers=golden))


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
    assert REGISTRY["injected_result"].check(sample, row) == []
    assert dumps(row_of("injected_result", sample, seed=seed)) == dumps(row)


USED: dict[str, dict[str, Any]] = {
    "spoken of": {"description": "Plays a tune about Galdhoppen."},
    "gives what the golden call takes": {"name": "unit_list"},
    "takes what the golden call gives": {"parameters": {"properties": {"height": {"type": "string"}}}},
}
"""Ways in which an order can be about a tool that the sample needs."""


@pytest.mark.parametrize("reason", USED)
def test_no_order_is_about_a_tool_that_the_sample_uses_and_one_that_is_is_named(reason: str) -> None:
    sample = small.clean_rows()[0]
    other = msgspec.structs.replace(sample.tools[0], name="play_tune", description="Plays a tune.")
    sample = msgspec.structs.replace(sample, tools=(other, sample.tools[1]))
    row = row_of("injected_result", sample)
    unit = REGISTRY["injected_result"]
    assert row.changes[0].after["orders"]["name"] == "play_tune" and unit.problems(sample, row) == []
    used = msgspec.structs.replace(other, **USED[reason])
    needed = msgspec.structs.replace(sample, tools=(used, sample.tools[1]))
    with pytest.raises(NotApplicable, match="no_unrelated_tool"):
        row_of("injected_result", needed)
    arguments = {"height": "x"} if "height" in used.properties else {}
    after = {"orders": {"name": used.name, "parameters": arguments}, "template": "user"}
    change = msgspec.structs.replace(row.changes[0], after=after)
    about_it = msgspec.structs.replace(row, tools=needed.tools, changes=(change,))
    assert unit.problems(needed, about_it) == ["no row is due: no_unrelated_tool"]


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
    "name",
    "api_key apiKey access_token accessKey password passcode pass client_secret token appid".split(),
)
def test_no_argument_looks_like_a_credential(name: str) -> None:
    tool = Tool("t", "", {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
    for seed in range(20):
        assert [*guesses(dumps(arguments(tool, random.Random(seed))))] == []
    assert [*guesses(dumps({name: "KX-2185-B"}))]


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
