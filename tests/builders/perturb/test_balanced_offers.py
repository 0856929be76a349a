"""Balanced offers: counterparts of core rows, and rows whose halves are exactly halves."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc import seeding, taxonomy
from robustbench_tc.audits.invariants import INVARIANTS
from robustbench_tc.audits.invariants.base import is_for
from robustbench_tc.builders.perturb import REGISTRY, Context, NotApplicable
from robustbench_tc.builders.perturb.balanced import offer_in
from robustbench_tc.builders.perturb.moot import kinds
from robustbench_tc.builders.perturb.offers import annotation
from robustbench_tc.builders.perturb.swapped import SWAPPED
from robustbench_tc.builders.plan import Plan, Skip
from robustbench_tc.builders.sources import BUNDLED, read_pool
from robustbench_tc.builders.toolrl_spec import offers
from robustbench_tc.eval.agents import POLICIES, try_blind
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import Call, Sample, Tool, dumps

from . import cases
from .planted import defects_of
from .strategies import samples

CORE = tuple(SWAPPED)
DESIGNS = {name: (f"CD_{name}", f"TD_{name}") for name in ("inv", "unit", "moot")}
BALANCED = tuple(code for codes in DESIGNS.values() for code in codes)
OURS = (*(unit.code for unit in SWAPPED.values()), *BALANCED)
FERRY = cases.CLEAN["ferry"]
READS_NO_OFFER = tuple(name for name in POLICIES if name != "picks-best-offer")


def row_of(sample: Sample, code: str, seed: int = 0) -> Sample | None:
    """The row as a build draws it."""
    unit = REGISTRY[code]
    try:
        row = unit.perturb(sample, seeding.rng(seed, unit.draws_as or code, sample.clean_id), Context())
    except NotApplicable as skip:
        assert skip.reason
        return None
    return msgspec.structs.replace(row, seed=seed)


def made(sample: Sample, code: str, seed: int = 0) -> Sample:
    row = row_of(sample, code, seed)
    assert row is not None
    return row


@pytest.fixture(scope="module")
def bundled() -> tuple[Sample, ...]:
    return read_pool(BUNDLED, "bundled", checked=True).samples


def both(found: tuple[Sample, ...], first: str, second: str) -> Iterator[tuple[Sample, Sample, Sample]]:
    """Sample, and its rows of both types; in the end some were there."""
    n = 0
    for sample in found:
        one, other = row_of(sample, first), row_of(sample, second)
        if one is not None and other is not None:
            n += 1
            yield sample, one, other
    assert n >= 10


# --- swapped ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("core", CORE)
def test_a_counterpart_is_the_core_row_with_annotations_and_gold_exchanged(
    core: str, bundled: tuple[Sample, ...]
) -> None:
    for sample, row, swapped in both(bundled, core, SWAPPED[core].code):
        assert swapped.messages == row.messages
        assert [tool.name for tool in swapped.tools] == [tool.name for tool in row.tools]
        changed = [i for i, (a, b) in enumerate(zip(row.tools, swapped.tools, strict=True)) if a != b]
        assert len(changed) == 2 and {row.gold_tool_index, swapped.gold_tool_index} == set(changed)
        one, two = changed
        assert row.tools[one].description == swapped.tools[two].description
        assert row.tools[two].description == swapped.tools[one].description
        assert swapped.tools[one].parameters == row.tools[one].parameters
        names = {row.tools[row.gold_tool_index or 0].name: swapped.tools[swapped.gold_tool_index or 0].name}
        assert swapped.golden_answers == tuple(
            tuple(Call(names[call.name], call.parameters) for call in answer) for answer in row.golden_answers
        )
        assert self_check(swapped, sample) is None


def test_rules_that_read_no_annotation_are_right_in_half_of_core_and_swapped_rows_and_in_no_pair(
    bundled: tuple[Sample, ...],
) -> None:
    right: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    n = 0
    for core in CORE:
        for _, row, swapped in both(bundled, core, SWAPPED[core].code):
            found = try_blind(row).right, try_blind(swapped).right
            n += 1
            for name in POLICIES:
                right[name] += found[0][name] + found[1][name]
                pairs[name] += found[0][name] and found[1][name]
    assert n == 4 * 57 + 2 * 53
    assert {name: Fraction(right[name], 2 * n) for name in READS_NO_OFFER} == dict.fromkeys(
        READS_NO_OFFER, Fraction(1, 2)
    )
    assert {pairs[name] for name in READS_NO_OFFER} == {0}
    assert (right["picks-best-offer"], pairs["picks-best-offer"]) == (2 * n, n)


def test_a_sample_that_calls_two_tools_has_no_counterpart_and_says_why(bundled: tuple[Sample, ...]) -> None:
    plan = Plan(samples=bundled, seed=0)
    found = [row.reason for row in plan.rows("CD_swap") if isinstance(row, Skip)]
    assert Counter(found) == {"several_gold_tools": 3, "no_single_gold_tool": 13}
    two = next(one for one in plan.rows("CD_swap") if isinstance(one, Skip) and one.reason.startswith("sev"))
    sample = next(one for one in bundled if one.clean_id == two.clean_id)
    swapped = SWAPPED["CD"].drawn(sample, random.Random(0))  # training may have it
    assert SWAPPED["CD"].check(sample, swapped) == []
    assert len({call.name for call in swapped.golden_answers[0]}) > 1


def test_a_transcript_that_calls_the_worse_tool_is_flagged() -> None:
    dialogue = cases.CLEAN["dialogue"]
    assert made(dialogue, "CD_swap").flags == ("history_names_distractor",)
    assert made(dialogue, "CD_AB_swap").flags == ()
    assert made(dialogue, "CD_AB").flags == ("history_names_distractor",)
    row = msgspec.structs.replace(made(dialogue, "CD_swap"), flags=())
    assert REGISTRY["CD_swap"].check(dialogue, row) != []
    assert INVARIANTS["telling_history_is_flagged"].verdict(row, dialogue) == "it is not flagged"


# --- half of the rows ---------------------------------------------------------------------------------------


def renamed(sample: Sample, row: Sample) -> bool:
    return row.golden_answers[0][0].name != sample.golden_answers[0][0].name


@pytest.mark.parametrize("design", DESIGNS)
def test_the_suffixed_name_is_the_gold_in_exactly_half_of_both_types_rows(
    design: str, bundled: tuple[Sample, ...]
) -> None:
    suffixed = []
    for sample, cost, time in both(bundled, *DESIGNS[design]):
        assert renamed(sample, cost) != renamed(sample, time)
        suffixed.append(renamed(sample, cost))
        assert self_check(cost, sample) is None and self_check(time, sample) is None
    assert 0 < sum(suffixed) < len(suffixed)


@pytest.mark.parametrize("design", ["inv", "unit"])
def test_rules_over_both_types_of_a_design(design: str, bundled: tuple[Sample, ...]) -> None:
    found = [
        (try_blind(cost).right, try_blind(time).right) for _, cost, time in both(bundled, *DESIGNS[design])
    ]
    for name in READS_NO_OFFER if design == "unit" else POLICIES:
        assert all(one[name] != other[name] for one, other in found), name
    if design == "unit":
        assert all(one["picks-best-offer"] and other["picks-best-offer"] for one, other in found)


def test_opposed_offers_of_a_sample_have_one_registry_and_opposite_golds(bundled: tuple[Sample, ...]) -> None:
    for sample, cheap_wish, fast_wish in both(bundled, "TD_inv", "CD_inv"):
        assert cheap_wish.tools == fast_wish.tools
        assert cheap_wish.gold_tool_index != fast_wish.gold_tool_index
        gold = fast_wish.tools[fast_wish.gold_tool_index or 0].description
        other = cheap_wish.tools[cheap_wish.gold_tool_index or 0].description
        for quality, sign in (("time", 1), ("cost", -1)):
            mine, theirs = offer_in(gold, quality), offer_in(other, quality)
            assert mine is not None and theirs is not None
            best, worst = sorted((mine.value, theirs.value))
            assert worst >= 4 * best * (1 - 1e-9) and (mine.value < theirs.value) == (sign == 1)
        assert sample.messages != cheap_wish.messages != fast_wish.messages


def test_the_gold_has_the_smaller_bare_number_in_one_of_both_types(bundled: tuple[Sample, ...]) -> None:
    smaller = []
    for _, cost, time in both(bundled, "CD_unit", "TD_unit"):
        found = [bare_numbers(row) for row in (cost, time)]
        assert (found[0][0] < found[0][1]) != (found[1][0] < found[1][1])
        smaller.append(found[0][0] < found[0][1])
    assert 0 < sum(smaller) < len(smaller)


def bare_numbers(row: Sample) -> tuple[float, float]:
    """The number in the gold tool's offer and in the other one's, without units."""
    gold = row.tools[row.gold_tool_index or 0]
    names = [tool.name for tool in row.tools]
    first = next(tool.name for tool in row.tools if f"{tool.name}_1" in names)
    (other,) = (t for t in row.tools if t is not gold and t.name in (first, f"{first}_1"))
    numbers = [
        float(tool.description.rstrip(".").replace(" ms", "").replace(" s", "").split()[-1].lstrip("$"))
        for tool in (gold, other)
    ]
    return numbers[0], numbers[1]


def test_the_complete_tool_is_the_gold_in_one_of_both_types(bundled: tuple[Sample, ...]) -> None:
    for sample, cost, time in both(bundled, "CD_moot", "TD_moot"):
        whole = [len(row.tools[row.gold_tool_index or 0].properties) for row in (cost, time)]
        assert abs(whole[0] - whole[1]) == 1
        assert max(whole) == len(sample.tools[sample.gold_tool_index or 0].properties)


# --- moot ---------------------------------------------------------------------------------------------------


def of_ferry(**parameters: object) -> Sample:
    call = Call(
        "ferries", {name: [value] if value is not None else ["", "x"] for name, value in parameters.items()}
    )
    return msgspec.structs.replace(FERRY, golden_answers=((call,),))


@pytest.mark.parametrize(
    ("sample", "found"),
    [
        (FERRY, (("day",), ("bikes",))),
        (of_ferry(port="Mallow Quay"), (("port",), ("day", "bikes"))),
        (of_ferry(port="Mallow Quay", bikes=None), (("port",), ("day", "bikes"))),
        (of_ferry(port="MALLOW QUAY", day="Friday", bikes=True), "no_unused_optional_parameter"),
        (of_ferry(port="elsewhere", day="tomorrow"), "no_needed_parameter"),
    ],
)
def test_which_parameters_can_be_taken_away(sample: Sample, found: object) -> None:
    if isinstance(found, str):
        with pytest.raises(NotApplicable, match=found):
            kinds(sample)
    else:
        assert tuple(kinds(sample)) == found


def test_a_default_or_an_omitted_value_that_is_said_decides_nothing() -> None:
    tool = FERRY.tools[0]
    properties = tool.properties | {"day": {"type": "string", "default": "Friday"}}
    defaulted = msgspec.structs.replace(
        FERRY, tools=(Tool(tool.name, tool.description, tool.parameters | {"properties": properties}),)
    )
    assert kinds(defaulted).needed == ("port",)
    said = msgspec.structs.replace(
        FERRY, golden_answers=((Call("ferries", {"port": ["Mallow Quay"], "day": ["Friday", ""]}),),)
    )
    assert kinds(said) == (("port",), ("bikes",))  # the day may be left out, but it is said


def test_an_answer_of_the_tool_without_a_parameter_does_not_give_it() -> None:
    sample = of_ferry(port="Mallow Quay", day="Friday", bikes=None)
    for seed in range(20):
        for code in DESIGNS["moot"]:
            row = made(sample, code, seed)
            gold = row.tools[row.gold_tool_index or 0]
            (answer,) = row.golden_answers
            assert answer[0].parameters.keys() <= gold.properties.keys()
            assert REGISTRY[code].check(sample, row) == [] and self_check(row, sample) is None


@st.composite
def with_an_unused_parameter(draw: st.DrawFn) -> Sample:
    """A sample whose gold tool has a parameter that nobody asks for, and whose values are all said."""
    sample = draw(samples(sources=("bfcl_v3", "toolalpaca", "rotbench")))
    place = sample.gold_tool_index or 0
    tool = sample.tools[place]
    schema = {
        **tool.parameters,
        "properties": {**tool.properties, "extra": {"type": "boolean"}},
        "required": [],
    }
    tools = (*sample.tools[:place], Tool(tool.name, tool.description, schema), *sample.tools[place + 1 :])
    answer = tuple(call for call in sample.golden_answers[0] if call.name == tool.name)[:1]
    said = " ".join(str(v[0]) for v in answer[0].parameters.values())
    last = sample.messages[-1]
    messages = (*sample.messages[:-1], msgspec.structs.replace(last, content=f"{last.content} {said}"))
    return msgspec.structs.replace(sample, tools=tools, golden_answers=(answer,), messages=messages)


# --- every type ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", OURS)
@settings(max_examples=40)
@given(sample=with_an_unused_parameter(), seed=st.integers(0, 99))
def test_a_row_changes_what_it_may_and_no_rule_is_against_it(code: str, sample: Sample, seed: int) -> None:
    row = row_of(sample, code, seed)
    if row is None:
        return
    assert dumps(made(sample, code, seed)) == dumps(row)
    assert REGISTRY[code].check(sample, row) == []
    for name, one in INVARIANTS.items():
        if is_for(one, code):
            assert not one.verdict(row, sample), name
    if self_check(sample) is None:  # where the scorer takes the clean gold, it takes the row's
        assert self_check(row, sample) is None
    for _, spoil in defects_of(code):
        assert REGISTRY[code].check(sample, spoil(sample, row)) != []


def test_the_types_can_be_trained_on_and_are_in_no_default() -> None:
    for code in OURS:
        kind = taxonomy.get(code)
        assert kind.train_augmentable and kind.static and kind.pack == "offers" and kind.status == "extension"
        assert kind.prior_art and kind.rows.full is not None


# --- what a description offers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "quality", "value"),
    [
        ("Books. Price per call: $0.025.", "cost", 0.025),
        ("Books. Price per 1,000 calls: $25.00.", "cost", 0.025),
        ("Books. Typical response time: 0.08 s.", "time", 80.0),
        ("Books. Typical response time: 80 ms. Price per call: $0.100.", "time", 80.0),
        ("Books. Typical response time: 80 ms. Price per call: $0.100.", "cost", 0.1),
    ],
)
def test_offers_are_read_in_one_unit(text: str, quality: str, value: float) -> None:
    found = offer_in(text, quality)
    assert found is not None and found.value == value and text[: found.start] == "Books. "


def test_a_description_without_an_offer_offers_nothing() -> None:
    assert offer_in("Books a table for $5.", "cost") is None
    assert offer_in("Books. Price per call: $0.025.", "time") is None
    assert annotation("Books. Price per 1,000 calls: $25.00.") is None
    assert offer_in("Price per call: $5.000. Books. Typical response time: 80 ms.", "cost") is None


@pytest.mark.parametrize("code", ["CD", "TD", "CD_AB", "TD_NT", "CD_swap", "CD_unit", "TD_inv"])
def test_what_a_tool_says_of_its_own_price_is_no_offer(code: str) -> None:
    own = "Price per call: $5.000. Typical response time: 9 ms. Sails at any hour."
    tools = [msgspec.structs.replace(tool, description=own) for tool in FERRY.tools]
    other = msgspec.structs.replace(tools[0], name="stamp_book")
    row = row_of(msgspec.structs.replace(FERRY, tools=(*tools, other)), code)
    assert row is not None and "stamp_book" in {tool.name for tool in row.tools}
    (found,) = offers(row)
    assert len(found) == 2 and row.golden_answers[0][0].name in found and "stamp_book" not in found


# --- What two offers of the same thing cost or take, and which of the tools beside them are annotated


TABLE = cases.CLEAN["table"]
TWO_WAYS = msgspec.structs.replace(
    TABLE, golden_answers=(*TABLE.golden_answers, (Call("find_menu", {"dish": ["soup"]}),))
)
"""A sample that accepts a call of its other tool, too."""


def described(row: Sample, name: str, text: str) -> Sample:
    tools = (msgspec.structs.replace(t, description=text) if t.name == name else t for t in row.tools)
    return msgspec.structs.replace(row, tools=tuple(tools))


def offer(row: Sample, tool: Tool) -> float:
    found = annotation(tool.description)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("code", "values"),
    [("CD", {0.002, 0.005, 0.01, 0.02, 0.025, 0.05}), ("TD", {80, 120, 150, 200, 250, 400})],
)
def test_the_other_offer_is_four_to_ten_times_worse(code: str, values: set[float]) -> None:
    prices, factors = set(), set()
    for seed in range(300):
        row = made(TABLE, code, seed)
        gold = row.tools[row.gold_tool_index or 0]
        (other,) = (t for t in row.tools if t is not gold and t.parameters == gold.parameters)
        prices.add(offer(row, gold))
        factors.add(round(offer(row, other) / offer(row, gold), 6))
    assert prices == values
    assert factors == {4, 5, 6, 8, 10}


@pytest.mark.parametrize(
    ("code", "wording"),
    [
        ("CD_NT", r"Books a table\. Price per call: \$0\.\d{3}\."),
        ("TD_NT", r"Books a table\. Typical response time: \d+ ms\."),
    ],
)
def test_an_offer_is_the_description_and_one_sentence(code: str, wording: str) -> None:
    row = made(TABLE, code)
    offers = [tool.description for tool in row.tools if tool.name.startswith("reserve")]
    assert len(offers) == 2 and all(re.fullmatch(wording, text) for text in offers), offers


@pytest.mark.parametrize("code", ["CD", "TD", "CD_AB", "TD_AB"])
def test_a_tool_that_is_accepted_no_longer_is_a_worse_offer_than_the_gold(code: str) -> None:
    unit, row = REGISTRY[code], made(TWO_WAYS, code)
    menu = next(tool for tool in row.tools if tool.name == "find_menu")
    gold = row.tools[row.gold_tool_index or 0]
    assert len(row.golden_answers) == 1
    assert offer(row, menu) >= 4 * offer(row, gold)
    assert unit.check(TWO_WAYS, row) == []
    better = gold.description.removeprefix("Books a table. ")
    (said,) = unit.check(TWO_WAYS, described(row, "find_menu", f"Shows a menu. {better}"))
    assert said == "find_menu is not worse than the gold by a factor of 4, 5, 6, 8, 10"
