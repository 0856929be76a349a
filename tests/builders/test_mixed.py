"""Mixed types: what is built, how a row is taken apart again, and what is refused."""

import random
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc import sources, taxonomy
from robustbench_tc.audits.invariants import INVARIANTS
from robustbench_tc.audits.invariants.base import is_for, verdict_on
from robustbench_tc.builders.build import BuildSpec, factorial, prepare, select_types
from robustbench_tc.builders.perturb import REGISTRY, Context, NotApplicable, Text
from robustbench_tc.builders.perturb.facts import facts
from robustbench_tc.builders.perturb.mixed import DESIGN, mixture
from robustbench_tc.builders.steps import TYPE_CODE, steps
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import Change, Sample
from robustbench_tc.taxonomy import Rows

from ..refusals import refuses
from .perturb import cases
from .perturb.planted import defects_of
from .perturb.strategies import rewritten, samples
from .perturb.test_units import POOL

MIXED = [kind.code for kind in taxonomy.types("all") if kind.pack == "mixed"]
ALL = taxonomy.MIX + "__".join(DESIGN)


def test_the_default_design_and_the_factorial_one() -> None:
    assert [len(taxonomy.parts(code)) for code in select_types(["mixed"])] == [2] * 6 + [4]
    cells = select_types(factorial())
    assert [len(taxonomy.parts(code)) for code in cells] == [0] * 4 + [2] * 6 + [3] * 4 + [4]
    assert set(cells) == {*DESIGN, *MIXED}


def test_a_mixture_is_named_by_its_parts_in_any_order() -> None:
    assert select_types(["mix:CD+realistic_typos"]) == ("mix__realistic_typos__CD",)
    assert select_types(["mix:" + "+".join(reversed(DESIGN))]) == (ALL,)
    refuses("unknown perturbation type 'CDD'", select_types, ["mix:CDD+realistic_typos"])
    assert select_types(["mix:typos_1+gold_removed", "CD"]) == ("CD", "mix__typos_1__gold_removed")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mix:", "mix:: a mixture has two types or more"),
        ("mix:CD", "mix:CD: a mixture has two types or more"),
        ("mix:CD+CD", "mix:CD+CD: CD stands there twice"),
        ("mix:CD+TD", "mix:CD+TD: CD and TD are both of the component reward"),
        (f"mix:{ALL}+CD", f"mix:{ALL}+CD: {ALL} is a mixture itself: name its parts"),
        ("mix:CD+injected_result", "mix:CD+injected_result: injected_result cannot be mixed: the transition"),
        ("mix:CD+gold_removed", "mix:CD+gold_removed: gold_removed and CD cannot be mixed: no call is right"),
        ("mix:CD+type_shift", "mix:CD+type_shift: type_shift and CD cannot be mixed: calls are held against"),
        ("mix:CD_inv+same_name_A", "mix:CD_inv+same_name_A: same_name_A and CD_inv cannot be mixed: CD_inv"),
        ("mix:missing_value+prerequisite", "mix:missing_value+prerequisite: no source has samples for all"),
        ("mix__CD__realistic_typos", "mix__CD__realistic_typos: parts are in the order observation, action"),
        ("mix__CD", "mix:CD: a mixture has two types or more"),
    ],
)
def test_what_cannot_be_mixed_is_refused_in_a_line(name: str, said: str) -> None:
    refused = refuses(".", select_types, [name])
    assert refused.startswith(said) and "\n" not in refused
    assert name.startswith("mix:") or not taxonomy.known(name)


@pytest.mark.parametrize(
    "code",
    [
        "mix__typos_1__near_miss",
        "mix__query_paraphrase__same_name_A",
        "mix__answer_directly__flood_3",
        "mix__context_2k__flood_10__TD_inv",
        "mix__language_zh__ghost_tool_2__CD_AB_swap__transient_timeout",
    ],
)
def test_a_mixture_that_no_module_states_comes_into_being_by_its_name(code: str) -> None:
    kind, unit = taxonomy.get(code), REGISTRY[code]
    assert code not in list(REGISTRY) and kind not in taxonomy.types("known")
    assert (
        taxonomy.among(["CD", code, "language_de", "mix__x"])[-1] == kind
        and kind.order == 2 * taxonomy.AFTER_ALL
    )
    stated = facts(unit, [one for one in sources.sources() if one.name in kind.sources])
    assert stated == kind, "the builder's facts are those of the other rooms"
    plan = prepare(BuildSpec(profile="bundled", codes=(code,), allow_missing=True)).plan
    found = zip(plan.samples, plan.rows(code), strict=True)
    pairs = [(clean, row) for clean, row in found if isinstance(row, Sample)]
    assert pairs
    for anchor, row in pairs:
        assert unit.check(anchor, row) == [] and self_check(row, anchor) is None
        said = {n: verdict_on(one, row, anchor) for n, one in INVARIANTS.items() if is_for(one, code)}
        assert not {name: words for name, words in said.items() if words}
    for defect in defects_of(code):
        assert unit.check(anchor, defect.plant(anchor, row))


def test_a_mixed_type_is_of_no_component() -> None:
    for code in MIXED:
        kind = taxonomy.get(code)
        assert kind.component == "mixed" and kind.status == "extension"
        assert not any(kind.code in taxonomy.codes_of(name) for name in taxonomy.COMPONENTS)


@pytest.mark.parametrize("code", MIXED)
def test_a_row_is_taken_apart_into_the_rows_of_its_parts(code: str) -> None:
    clean, row = cases.pair(code)
    found = steps(row, clean)
    parts = taxonomy.parts(code)
    assert tuple(after.type_code for _, after in found) == parts
    assert found[0].before is clean
    for (_, after), following in pairwise(found):
        assert following.before.tools == after.tools and following.before.messages == after.messages
        assert following.before.gold_tool_index == after.gold_tool_index
        assert following.before.golden_answers == after.golden_answers
    assert found[-1].after.tools == row.tools
    for part, (before, after) in zip(parts, found, strict=True):
        assert REGISTRY[part].check(before, after) == []


@pytest.mark.parametrize("code", MIXED)
@settings(max_examples=25, deadline=None)
@given(sample=samples(), seed=st.integers(0, 99))
def test_any_sample_is_taken_apart_again_or_skipped_for_a_reason_of_a_part(
    code: str, sample: Sample, seed: int
) -> None:
    unit = REGISTRY[code]
    texts = {r.key: Text(rewritten(r.input), "hand-written") for r in unit.requests(sample)}
    context = Context(texts, {sample.source: POOL})
    try:
        row = unit.perturb(sample, random.Random(seed), context)
    except NotApplicable as skip:
        assert skip.reason and ":" not in skip.reason
        return
    assert unit.check(sample, row) == []
    assert [one.after.type_code for one in steps(row, sample)] == list(taxonomy.parts(code))
    assert unit.perturb(sample, random.Random(seed), context) == row
    assert self_check(row, sample) is None or self_check(sample, None) is not None


def test_a_part_that_did_something_else_is_named() -> None:
    clean, row = cases.pair("mix__realistic_typos__CD")
    dearer = tuple(
        msgspec.structs.replace(t, description=t.description.replace("$0.002", "$0.020")) for t in row.tools
    )
    changes = tuple(
        msgspec.structs.replace(c, after=str(c.after).replace("$0.002", "$0.020"))
        if c.path.endswith("/description")
        else c
        for c in row.changes
    )
    spoiled = msgspec.structs.replace(row, tools=dearer, changes=changes)
    (wrong,) = REGISTRY[row.type_code].check(clean, spoiled)
    assert wrong == "CD: reserve_Budget is not worse than the gold by a factor of 4, 5, 6, 8, 10"


@pytest.mark.parametrize(
    ("parts", "sample"),
    [
        (("typos_2", "same_name_E", "abbreviated_1", "transient_schema_drift"), "letter"),
        (("query_paraphrase", "redundant", "TD_AB"), "table"),
        (("paraphrase_parameter_description", "same_name_A"), "table"),
        (("paraphrase_tool_description", "factor_100", "transient_timeout"), "dialogue"),
        (("realistic_typos", "same_name_C", "CD_AB_pref"), "dialogue"),
    ],
)
def test_other_mixtures_are_taken_apart_too(parts: tuple[str, ...], sample: str) -> None:
    unit = mixture(parts, order=799, rows=Rows(paper=0, bundled=0))
    clean = cases.CLEAN[sample]
    empty = {"type": "object", "properties": {}}
    new = [
        {"name": f"{what}_it", "description": f"{what} it.", "parameters": empty}
        for what in ("Paint", "Sell")
    ]
    texts = {
        r.key: Text(new if r.kind == "redundant" else rewritten(r.input), "hand-written")
        for r in unit.requests(clean)
    }
    row = unit.perturb(clean, random.Random(3), Context(texts, {clean.source: POOL}))
    assert unit.check(clean, row) == []
    assert [after.type_code for _, after in steps(row, clean)] == list(parts)
    for check, plant in defects_of(unit.code):
        assert unit.check(clean, plant(clean, row)), check


@pytest.mark.parametrize(
    "changed",
    [
        (),
        (Change(TYPE_CODE, "clean", "CD"),),
        (Change(TYPE_CODE, "clean", "realistic_typos"), Change(TYPE_CODE, "realistic_typos", "CD")),
        (
            Change(TYPE_CODE, "clean", "realistic_typos"),
            Change("/messages/7/content", "a", "b", 0),
            Change(TYPE_CODE, "realistic_typos", "CD"),
            Change("/tools/x", None, {}),
            Change("/tools", ["a"], ["b"]),
        ),
        (Change("", "a", "b"), Change(TYPE_CODE, "clean", "realistic_typos")),
    ],
)
def test_a_diff_that_leads_nowhere_is_refused_in_words(changed: tuple[Change, ...]) -> None:
    clean, row = cases.pair("mix__realistic_typos__CD")
    (wrong,) = REGISTRY[row.type_code].check(clean, msgspec.structs.replace(row, changes=changed))
    assert wrong


HOSTILE = st.one_of(
    st.none(), st.integers(-3, 3), st.text(max_size=3), st.lists(st.text(max_size=2), max_size=2)
)


@settings(max_examples=300, deadline=None)
@given(
    at=st.integers(0, 9),
    path=st.sampled_from(
        ["", "x", "/", "/messages", "/messages/0", "/messages/9", "/messages/0/content", "/tools", "/tools/0",
         "/tools/-1", "/tools/1/description", "/tools/0/parameters/x/y", "/golden_answers", "/type_code"]
    ),
    before=HOSTILE | st.just({"role": "user", "content": "x"}) | st.just([["reserve"]]),
    after=HOSTILE,
    place=st.none() | st.integers(-9, 10**6),
)  # fmt: skip
def test_a_hostile_diff_is_refused_in_words(
    at: int, path: str, before: object, after: object, place: int | None
) -> None:
    clean, row = cases.pair(ALL)
    changes = (*row.changes[:at], Change(path, before, after, place), *row.changes[at:])
    for spoiled in (changes, (*row.changes[:at], Change(path, before, after, place), *row.changes[at + 1 :])):
        found = REGISTRY[ALL].check(clean, msgspec.structs.replace(row, changes=spoiled))
        assert all(isinstance(one, str) for one in found)
    with pytest.raises(ValueError, match="not known"):
        steps(msgspec.structs.replace(row, type_code="mix__evil"), clean)


def test_a_mixture_alone_has_its_parts_texts_written(tmp_path: Path) -> None:
    spec = BuildSpec(profile="bundled", codes=("mix__realistic_typos__CD",))
    prepared = prepare(spec)
    assert [one.kind for one in prepared.recordings] == ["realistic_typos"]
    rows = list(prepared.plan.rows("mix__realistic_typos__CD"))
    made = [row for row in rows if isinstance(row, Sample)]
    assert len(made) == 60 and {row.generator for row in made} == {"hand-written"}
    reasons = {row.reason for row in rows if not isinstance(row, Sample)}
    assert reasons == {"no_single_gold_tool"}
