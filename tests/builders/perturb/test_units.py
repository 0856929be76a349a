"""Every unit on generated samples: its own invariants hold, its input is left alone, and it can be wrong.

And on whole pools.
"""

import copy
import random
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc.builders.build import BuildSpec, prepare
from robustbench_tc.builders.perturb import REGISTRY, Context, NotApplicable, Text, TextRequest
from robustbench_tc.builders.plan import Skip
from robustbench_tc.builders.sources import Profile
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import Call, Message, Sample, Tool, dumps
from robustbench_tc.taxonomy import get

from ...conftest import NIGHTLY, nightly
from . import cases
from .planted import defects_of, spoil
from .strategies import rewritten, samples

LONG = () if NIGHTLY else tuple(code for code in REGISTRY if re.fullmatch(r"context_.*(8k|32k)", code))
"""By day `test_context.py` has them, over five samples: they differ from the shortest by length alone."""
CODES = [code for code in REGISTRY if code not in LONG]
POOL = [
    Tool("lend", "Lends a boat.", {"type": "object", "properties": {"boat": {"type": "string"}}}),
    Tool("mend", "Mends a net.", {"type": "object", "properties": {"net": {"type": "string"}}}),
]
NEW = {"type": "object", "properties": {"reason": {"type": "string"}}}


def answer(request: TextRequest) -> object:
    """What a rule-abiding writer would answer."""
    if request.kind == "redundant":
        return [
            {"name": f"{request.tool}_log", "description": "Lists past calls.", "parameters": NEW},
            {"name": f"{request.tool}_price", "description": "What a call costs.", "parameters": NEW},
        ]
    return rewritten(request.input)


def context_for(sample: Sample, code: str) -> Context:
    texts = {r.key: Text(answer(r), "hand-written") for r in REGISTRY[code].requests(sample)}
    return Context(texts, {sample.source: POOL})


def row_of(sample: Sample, code: str, seed: int = 0) -> Sample | None:
    try:
        return REGISTRY[code].perturb(sample, random.Random(seed), context_for(sample, code))
    except NotApplicable as skip:
        assert skip.reason
        return None


def _spoiled(row: Sample) -> dict[str, Sample]:
    """The row with one defect each, by what it is."""
    replace = msgspec.structs.replace
    other = Message(row.messages[-1].role, row.messages[-1].content + " 404")
    renamed = tuple(Call(call.name + "x", call.parameters) for call in row.golden_answers[0])
    without_gold = tuple(tool for at, tool in enumerate(row.tools) if at != row.gold_tool_index)
    return {
        "a message more": replace(row, messages=(*row.messages, other)),
        "the gold tool left out": replace(row, tools=without_gold),
        "a tool more": replace(row, tools=(*row.tools, Tool("extra", "", {}))),
        "another gold": replace(row, golden_answers=(renamed, *row.golden_answers[1:])),
    }


# A sample costs more to draw than a row to make: each one is drawn for every type.


@settings(max_examples=40)
@given(sample=samples(), seed=st.integers(0, 99))
def test_a_row_keeps_its_types_invariants_and_its_sample_and_a_spoiled_one_is_seen(
    sample: Sample, seed: int
) -> None:
    for code in CODES:
        the_row_holds(code, sample, seed)


def the_row_holds(code: str, sample: Sample, seed: int) -> None:
    before = copy.deepcopy(sample)
    row = row_of(sample, code, seed)
    assert sample == before
    if row is None:
        return
    assert REGISTRY[code].check(sample, row) == []
    assert row.id == f"s::{code}" and row.clean_id == "s" and row.component == REGISTRY[code].component
    again = row_of(sample, code, seed)
    assert again is not None and dumps(again) == dumps(row)
    names = [tool.name for tool in row.tools]
    assert all(call.name in names for one in row.golden_answers for call in one)
    assert row.gold_tool_index is not None
    assert row.tools[row.gold_tool_index].name == row.golden_answers[0][0].name
    gold = sample.tools[sample.gold_tool_index or 0]
    lost = set(gold.properties) - set(row.tools[row.gold_tool_index].properties)
    assert len(lost) <= (code in ("CD_moot", "TD_moot"))
    assert set(row.tools[row.gold_tool_index].properties) == set(gold.properties) - lost
    for defect, spoiled in _spoiled(row).items():
        assert REGISTRY[code].check(sample, spoiled), f"check() of {code} lets a row pass with {defect}"


@settings(max_examples=40)
@given(sample=samples())
def test_swapped_annotations_and_other_defects_of_offers_are_seen(sample: Sample) -> None:
    for code in (c for c in CODES if get(c).component == "reward"):
        if (row := row_of(sample, code)) is None:
            continue
        for defect, plant in defects_of(code):
            spoiled = plant(sample, row)
            assert dumps(spoiled) == dumps(row) or REGISTRY[code].check(sample, spoiled), (code, defect)


@given(sample=samples(sources=("tooleyes",)))
def test_a_source_without_a_single_gold_tool_takes_no_type_that_needs_one(sample: Sample) -> None:
    for code in CODES:
        if code.startswith(("same_name", "CD", "TD")):
            with pytest.raises(NotApplicable, match="no_single_gold_tool"):
                REGISTRY[code].perturb(sample, random.Random(0), context_for(sample, code))


@pytest.mark.parametrize("code", ["CD_unit", "TD_unit"])
def test_offers_in_one_unit_are_named_by_the_type_itself(code: str) -> None:
    clean, row = cases.pair(code)
    assert REGISTRY[code].check(clean, row) == []
    assert REGISTRY[code].check(clean, spoil(code, clean, row, 1)) == ["both offers are in one unit"]


# --- the rows of whole pools are those that every type states, and what has none has a stated reason -----


REASONS = cases.read("reasons.yaml", dict[str, dict[str, dict[str, int]]])


BY_NIGHT = [pytest.param(profile, marks=nightly) for profile in ("paper", "full")]


@pytest.mark.parametrize("profile", ["bundled", *BY_NIGHT])
def test_types_have_the_rows_that_they_state_and_reasons_for_others(profile: Profile, shared: Path) -> None:
    """Of the whole pools those of the packs whose pages explain the numbers."""
    explained = {"abstention", "registry", "offers"}
    codes = tuple(code for code in REGISTRY if profile != "full" or REGISTRY[code].pack in explained)
    plan = prepare(BuildSpec(profile=profile, sources=shared / "sources", codes=codes)).plan
    context = plan.context()
    for code in codes:
        unit, kind = REGISTRY[code], get(code)
        found = list(zip(plan.samples, plan.rows(code, context), strict=True))
        rows = [(clean, row) for clean, row in found if isinstance(row, Sample)]
        assert (code, len(rows)) == (code, getattr(unit.rows, profile))
        skips = Counter(row.reason for _, row in found if isinstance(row, Skip))
        stated = REASONS[profile].get(code, {})
        assert "" not in skips and {reason: skips[reason] for reason in stated} == stated, code
        sources = {row.source for _, row in rows}
        # Not every sample of a source holds words that other languages have a form of their own for.
        assert sources <= set(kind.sources), code
        assert sources == set(kind.sources) or profile != "paper" or kind.pack == "language" or not rows, code
        judged = profile == "bundled" or (profile == "paper" and kind.pack == "core")
        for clean, row in rows if judged else ():
            assert row.id == f"{clean.clean_id}::{code}" and unit.problems(clean, row) == []
            assert self_check(row, clean) is None and not any("**Think" in tool.name for tool in row.tools)
            assert kind.channel == "result" or row.injected_error == kind.injected_error
