"""What two offers of the same thing cost or take, and which of the tools beside them are annotated."""

import random
import re

import msgspec
import pytest

from robustbench_tc.builders.perturb import REGISTRY, Context, cases
from robustbench_tc.builders.perturb.offers import annotation
from robustbench_tc.schema import Call, Sample, Tool

TABLE = cases.CLEAN["table"]
TWO_WAYS = msgspec.structs.replace(
    TABLE, golden_answers=(*TABLE.golden_answers, (Call("find_menu", {"dish": ["soup"]}),))
)
"""A sample that accepts a call of its other tool, too."""


def row_of(clean: Sample, code: str, seed: int = 0) -> Sample:
    return REGISTRY[code].perturb(clean, random.Random(seed), Context({}, {}))


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
        row = row_of(TABLE, code, seed)
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
    row = row_of(TABLE, code)
    offers = [tool.description for tool in row.tools if tool.name.startswith("reserve")]
    assert len(offers) == 2 and all(re.fullmatch(wording, text) for text in offers), offers


@pytest.mark.parametrize("code", ["CD", "TD", "CD_AB", "TD_AB"])
def test_a_tool_that_is_accepted_no_longer_is_a_worse_offer_than_the_gold(code: str) -> None:
    unit, row = REGISTRY[code], row_of(TWO_WAYS, code)
    menu = next(tool for tool in row.tools if tool.name == "find_menu")
    gold = row.tools[row.gold_tool_index or 0]
    assert len(row.golden_answers) == 1
    assert offer(row, menu) >= 4 * offer(row, gold)
    assert unit.check(TWO_WAYS, row) == []
    better = gold.description.removeprefix("Books a table. ")
    (said,) = unit.check(TWO_WAYS, described(row, "find_menu", f"Shows a menu. {better}"))
    assert said == "find_menu, no longer accepted, is not worse than the gold by a factor of 4"
