"""The registry pack: ghosts, type shift, prerequisite, floods, RoTBench's noise."""

import random
import re
from functools import cache
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc import taxonomy
from robustbench_tc.builders.build import BuildSpec, prepare
from robustbench_tc.builders.perturb import REGISTRY, Context, NotApplicable
from robustbench_tc.builders.perturb.base import Perturbation
from robustbench_tc.builders.perturb.registry import accepts
from robustbench_tc.builders.perturb.registry_flood import OVERLAP, name_words, overlap
from robustbench_tc.builders.perturb.registry_shift import as_text, shift, typed
from robustbench_tc.builders.plan import Plan, borrowed
from robustbench_tc.builders.sources import Pool
from robustbench_tc.builders.sources.bfcl import no_call_file
from robustbench_tc.errors import UserError
from robustbench_tc.schema import CONTROL_TOOLS, Call, Json, Message, Sample, Tool, dumps

from ...refusals import refuses
from . import cases
from .strategies import samples

CODES = tuple(kind.code for kind in taxonomy.types("all") if kind.pack == "registry")
TABLE, LOGIN = cases.CLEAN["table"], cases.CLEAN["login"]


@cache
def bundled() -> Plan:
    return prepare(BuildSpec(profile="bundled", codes=CODES)).plan


def skipped(unit: Perturbation, sample: Sample, context: Context | None = None) -> str:
    with pytest.raises(NotApplicable) as skip:
        unit.perturb(sample, random.Random(0), context or Context(loans=cases.LENT))
    return skip.value.reason


def login(text: str) -> Sample:
    return msgspec.structs.replace(LOGIN, messages=(Message("user", text),))


# --- floods ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["flood_1", "flood_3", "flood_10", "flood_30"])
def test_nothing_that_enters_can_be_meant(code: str) -> None:
    found = zip(bundled().samples, bundled().rows(code), strict=True)
    for clean, row in ((clean, row) for clean, row in found if isinstance(row, Sample)):
        new = [tool for tool in row.tools if all(tool is not mine for mine in clean.tools)]
        assert len(new) == int(code.removeprefix("flood_"))
        assert len({tool.name for tool in row.tools}) == len({t.name for t in clean.tools}) + len(new)
        calls = [call for answer in clean.golden_answers for call in answer]
        for tool in new:
            assert tool.name not in CONTROL_TOOLS
            assert not accepts(tool, calls)
            assert all(overlap(name_words(tool.name), name_words(call.name)) < OVERLAP for call in calls)


def test_no_tool_that_would_serve_as_well_enters_and_one_that_does_is_named() -> None:
    """By its description against the request's words, and against the gold tool's."""
    flood = REGISTRY["flood_1"]
    about_gold = Tool("tavern_desk", "Books a table at a tavern, by its place and seats.", {})
    gold = msgspec.structs.replace(
        TABLE.tools[1], description="Books a table at a tavern, by the place and the seats."
    )
    sample = msgspec.structs.replace(TABLE, tools=(TABLE.tools[0], gold))
    about_request = Tool("moon_desk", "Luna seats tonight.", {})
    for tool in (about_gold, about_request):
        assert skipped(flood, sample, pool_of(tool)) == "too_few_donors"
    apart = Tool(
        "paint_fence", "Paints the fence of a garden.", {"properties": {"colour": {}}, "required": ["colour"]}
    )
    row = flood.perturb(sample, random.Random(0), pool_of(apart))
    assert flood.check(sample, row) == []
    planted = tuple(about_gold if tool == apart else tool for tool in row.tools)
    said = "a new tool is named like an accepted one, or a golden call fits it"
    assert said in flood.check(sample, msgspec.structs.replace(row, tools=planted))


@pytest.mark.parametrize(
    ("said", "stays"),
    [
        ("Thank you, I have your token. Now, what is the date?", "Now, what is the date?"),
        ("Now that I have your user token, let me book it.", None),
        ("One moment, please.", "One moment, please."),
    ],
)
def test_the_assistant_claims_no_token_that_it_has_not_fetched(said: str, stays: str | None) -> None:
    unit = REGISTRY["prerequisite"]
    content = LOGIN.messages[0].content.replace("I will book it.", said)
    sample = login(content)
    row = unit.perturb(sample, random.Random(0), Context())
    found = re.findall("<response>(.*?)</response>", row.messages[0].content)
    assert found == ([] if stays is None else [stays]) and unit.check(sample, row) == []
    claiming = f"{row.messages[0].content}<response>I have your token.</response>"
    planted = msgspec.structs.replace(row, messages=(Message("user", claiming),))
    assert "the assistant claims to have the token" in unit.check(sample, planted)
    late = login(f"{content}<response>I have your token.</response>")
    assert skipped(unit, late, Context()) == "token_claimed_later"


def pool_of(tool: Tool) -> Context:
    return Context(loans={"pool": (msgspec.structs.replace(TABLE, tools=(tool,)),)})


@settings(max_examples=60)
@given(sample=samples(), seed=st.integers(0, 9), dose=st.sampled_from(["flood_1", "flood_3"]))
def test_a_flood_changes_the_set_of_tools_and_nothing_else(sample: Sample, seed: int, dose: str) -> None:
    names = [f"{one}_{two}" for one in ("paint", "send", "find") for two in ("boat", "invoice", "kite")]
    schema = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
    lent = msgspec.structs.replace(sample, tools=tuple(Tool(name, "", schema) for name in names))
    unit, context = REGISTRY[dose], Context(loans={"pool": (lent,)})
    row = unit.perturb(sample, random.Random(seed), context)
    assert unit.check(sample, row) == []
    assert tuple(tool for tool in row.tools if tool in sample.tools) == sample.tools
    assert (row.messages, row.golden_answers) == (sample.messages, sample.golden_answers)
    assert dumps(unit.perturb(sample, random.Random(seed), context)) == dumps(row)


def test_names_of_the_same_words_overlap_however_they_are_written() -> None:
    assert name_words("getCurrentWeather2") == name_words("get_current.weather-2")
    assert overlap(name_words("get_weather"), name_words("getWeatherNow")) == 2 / 3
    assert overlap(name_words("reserve"), name_words("cancel")) == 0.0
    assert overlap(frozenset(), frozenset()) == 0.0


def test_a_pool_without_enough_tools_is_a_reason() -> None:
    flood = REGISTRY["flood_3"]
    assert skipped(flood, TABLE, Context()) == "too_few_donors"
    named_alike = msgspec.structs.replace(TABLE, tools=tuple(Tool(f"reserve_{n}", "", {}) for n in "ab"))
    assert skipped(flood, TABLE, Context(loans={"pool": (named_alike,)})) == "too_few_donors"
    free = msgspec.structs.replace(TABLE, golden_answers=((Call("reserve", {}),),))
    schema = {"type": "object", "properties": {"key": {"type": "string"}}}
    fitting = msgspec.structs.replace(TABLE, tools=tuple(Tool(f"paint_{n}", "", schema) for n in "abcd"))
    assert skipped(flood, free, Context(loans={"pool": (fitting,)})) == "golden_call_fits_donors"


def test_what_lies_in_the_sources_only_is_asked_for_in_one_line() -> None:
    pool = Pool((TABLE,), ())
    assert borrowed(["flood_1"], None, "full", pool) == {"pool": (TABLE,)}
    for code, profile in (("flood_1", "paper"), ("rot_slight", "full")):
        with pytest.raises(UserError, match=f"{code}.*--sources") as error:
            borrowed([code], None, profile, pool)  # type: ignore[arg-type]
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("code", "file"),
    [("rot_slight", "rotbench/Data/First_Turn/slight.json"), ("irrelevant", no_call_file("irrelevance"))],
)
def test_a_file_that_is_missing_or_another_is_named(code: str, file: str, tmp_path: Path) -> None:
    place, pool = tmp_path / file, Pool((TABLE,), ())
    missing = rf"missing source file {re.escape(file)}.*rbtc data fetch"
    refuses(missing, borrowed, [code], tmp_path, "full", pool)
    place.parent.mkdir(parents=True)
    place.write_text("[]")
    refuses(
        rf"{place.stem}\.json: wrong checksum: .*`rbtc data fetch`", borrowed, [code], tmp_path, "full", pool
    )


# --- type shift -----------------------------------------------------------------------------------------


def typed_sample(kind: str, value: object, text: str = "Do it.", schema: Json = None) -> Sample:
    inner = {"type": kind, **(schema or {})}
    tool = Tool("f", "", {"type": "object", "properties": {"x": inner}, "required": ["x"]})
    messages = (msgspec.structs.replace(TABLE.messages[0], content=text),)
    golden = ((Call("f", {"x": [value]}),),)
    return msgspec.structs.replace(
        TABLE, messages=messages, tools=(tool,), golden_answers=golden, gold_tool_index=0
    )


@pytest.mark.parametrize(
    ("kind", "value", "texts"),
    [
        ("integer", 3, ["3"]),
        ("integer", "970420", ["970420"]),
        ("number", 2.5, ["2.5"]),
        ("number", 4.0, ["4.0", "4"]),
        ("boolean", True, ["yes"]),
        ("boolean", "False", ["no"]),
        ("array", ["a", "b c"], ["a, b c", "a,b c"]),
        ("array", [40.7, -74], ["40.7, -74", "40.7,-74"]),
        ("array", "['Ann', 'Bo']", ["Ann, Bo", "Ann,Bo"]),
        ("number", -74.006, ["-74.006", "-74.0060"]),  # also as the request writes it
    ],
)
def test_a_value_becomes_its_text_and_back(kind: str, value: object, texts: list[str]) -> None:
    sample = typed_sample(kind, value, text="Near 40.71 and -74.0060, please.")
    row = REGISTRY["type_shift"].perturb(sample, random.Random(0), Context())
    assert row.golden_answers[0][0].parameters["x"] == texts
    assert row.tools[0].properties["x"]["type"] == "string"


@pytest.mark.parametrize(
    ("kind", "value", "schema", "reason"),
    [
        ("string", "a", {}, "no_parameter_to_shift"),
        ("integer", "", {}, "no_parameter_to_shift"),
        ("array", [{"a": 1}], {}, "no_lossless_form"),
        ("array", ["a, b"], {}, "no_lossless_form"),
        ("array", ["a", True], {}, "no_lossless_form"),
        ("array", [], {}, "no_lossless_form"),
        ("array", "[1, ", {}, "no_lossless_form"),
        ("number", 1e-9, {}, "no_lossless_form"),
        ("integer", "many", {}, "no_lossless_form"),
        ("integer", 3, {"enum": [3, None]}, "no_lossless_form"),
        ("boolean", True, {"description": "True if wanted."}, "description_names_the_type"),
        ("array", ["a"], {"description": "A list of names."}, "description_names_the_type"),
        ("integer", 3, {"description": "An integer."}, "description_names_the_type"),
    ],
)
def test_what_has_no_text_is_left_out(
    kind: str, value: object, schema: dict[str, object], reason: str
) -> None:
    sample = typed_sample(kind, value, schema=schema)
    if value == "":  # may be left out
        sample = msgspec.structs.replace(sample, golden_answers=((Call("f", {"x": ["", 3]}),),))
    assert skipped(REGISTRY["type_shift"], sample) == reason


def test_choices_and_defaults_follow_the_type() -> None:
    assert as_text({"type": "integer", "enum": [1, 2], "default": 2, "minimum": 0, "description": "D."}) == {
        "type": "string",
        "pattern": "^-?[0-9]+$",
        "description": "D.",
        "enum": ["1", "2"],
        "default": "2",
    }
    assert as_text({"type": "array", "items": {"type": "string"}, "description": "Names"}) == {
        "type": "string",
        "pattern": "^[^,]+(, ?[^,]+)*$",
        "description": "Names. Separated by commas.",
    }


@settings(max_examples=200)
@given(
    value=st.one_of(
        st.integers(-(10**6), 10**6),
        st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 4)),
        st.booleans(),
        st.lists(st.integers(-99, 99) | st.sampled_from(["a", "b c", "é"]), min_size=1, max_size=4),
    )
)
def test_nothing_is_lost(value: object) -> None:
    kinds = {int: "integer", float: "number", bool: "boolean", list: "array"}
    sample = typed_sample(kinds[type(value)], value)
    (place,) = typed(sample)
    try:
        found = shift(sample, *place)
    except NotApplicable as skip:
        assert skip.reason == "no_lossless_form"
        return
    for text in found.golden[0][0].parameters["x"]:
        if isinstance(value, bool):
            assert {"yes": True, "no": False}[text] is value
        elif isinstance(value, list):
            assert [part.strip() for part in text.split(",")] == [str(item) for item in value]
        else:
            assert float(text) == value


# --- prerequisite ---------------------------------------------------------------------------------------


def test_what_keeps_a_token_call_from_leaving() -> None:
    unit, text = REGISTRY["prerequisite"], LOGIN.messages[0].content
    assert skipped(unit, TABLE) == "no_token_call"
    assert skipped(unit, login(text.replace("q7w8e9", "other1"))) == "gold_needs_no_token"
    assert skipped(unit, login(text + "<response>Your token is q7w8e9.</response>")) == "token_still_shown"
    assert skipped(unit, login(text.replace("my password is tide9", "log me in"))) == "credentials_not_stated"
    unlisted = msgspec.structs.replace(LOGIN, tools=LOGIN.tools[:1])
    assert skipped(unit, unlisted) == "token_tool_not_listed"
    broken = text.replace('{"name": "GetUserToken"', '{"name": "GetUserToken')
    assert skipped(unit, login(broken)) == "no_token_call"


def test_a_check_sees_another_tool_in_the_place_of_the_token_tool() -> None:
    unit = REGISTRY["prerequisite"]
    row = cases.row_of(unit.code)
    assert unit.check(LOGIN, row) == []
    for index in (None, -1, 0, 2):
        wrong = unit.check(LOGIN, msgspec.structs.replace(row, gold_tool_index=index))
        assert "gold_tool_index does not point at the tool of the token call" in wrong, index


# --- ghosts ---------------------------------------------------------------------------------------------


def test_a_ghost_is_a_recorded_sibling_that_nobody_has_named() -> None:
    unit = REGISTRY["ghost_tool_2"]
    (sibling,) = cases.LENT["siblings"]
    assert skipped(unit, TABLE, Context()) == "no_recorded_sibling"
    registered = msgspec.structs.replace(TABLE, tools=(*TABLE.tools, *sibling.tools))
    assert skipped(unit, registered) == "no_recorded_sibling"
    said = (Message("user", "Book 2 seats at Luna tonight, or cancel_table."),)
    assert skipped(unit, msgspec.structs.replace(TABLE, messages=said)) == "no_recorded_sibling"


@pytest.mark.parametrize("code", ["ghost_tool_1", "ghost_tool_2", "ghost_tool_3"])
def test_other_words_and_a_registered_ghost_are_wrong(code: str) -> None:
    row = cases.row_of(code)

    def wrong(**fields: object) -> list[str]:
        return REGISTRY[code].check(TABLE, msgspec.structs.replace(row, **fields))

    last = row.messages[-1]
    assert wrong(messages=(*row.messages[:-1], Message(last.role, last.content + " Now.")))
    assert wrong(messages=TABLE.messages)
    ghost = Tool("cancel_table", "Cancels a table.", {})
    assert "the ghost is registered" in wrong(tools=(*row.tools, ghost))


def test_golden_answers_that_an_erratum_changed_leave_no_noisy_row() -> None:
    unit = REGISTRY["rot_slight"]
    corrected = ((Call("reserve", {"place": ["Sol"], "seats": [2]}),),)
    assert skipped(unit, msgspec.structs.replace(TABLE, golden_answers=corrected)) == "gold_is_another_one"
    assert skipped(unit, LOGIN) == "not_of_rotbench"
    assert skipped(unit, msgspec.structs.replace(LOGIN, source="rotbench")) == "no_noisy_record"
    assert skipped(unit, TABLE, Context(loans={"rotbench_slight": (TABLE,)})) == "noisy_record_equals_clean"
