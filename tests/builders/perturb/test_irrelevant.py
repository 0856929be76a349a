"""The type irrelevant: BFCL's own records in which no call is right, and where they are put."""

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given

from robustbench_tc import taxonomy
from robustbench_tc.audits.invariants import allowed
from robustbench_tc.audits.invariants.base import HOLDS
from robustbench_tc.builders.build import BuildSpec, prepare
from robustbench_tc.builders.loans import IRRELEVANT, borrowed
from robustbench_tc.builders.perturb import REGISTRY, Context, cases
from robustbench_tc.builders.perturb.abstention import opened
from robustbench_tc.builders.plan import Plan
from robustbench_tc.builders.sources import BUNDLED, Pool, bfcl
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import Message, Sample, dumps
from robustbench_tc.transcript import MAY_DECLINE

from ...refusals import refuses
from .strategies import samples

UNIT = REGISTRY["irrelevant"]
TABLE = cases.CLEAN["table"]


def plan_of(profile: str, sources: Path | None = None, seed: int = 0) -> Plan:
    spec = BuildSpec(profile=profile, sources=sources, codes=("irrelevant",), seed=seed)  # type: ignore[arg-type]
    return prepare(spec, accept=self_check).plan


@pytest.fixture(scope="module")
def full(shared: Path) -> Plan:
    return plan_of("full", shared / "sources")


def rows(plan: Plan) -> Iterator[tuple[Sample, Sample]]:
    """(clean row, row) of every row."""
    made = plan.rows("irrelevant")
    yield from ((c, row) for c, row in zip(plan.samples, made, strict=True) if isinstance(row, Sample))


def test_every_record_is_a_row_or_left_out_with_a_reason(shared: Path) -> None:
    """docs/packs/abstention.md explains each number."""
    found = {
        category: Counter(
            "row" if isinstance(one, Sample) else one
            for one in bfcl.no_call_records(shared / "sources", category)
        )
        for category in bfcl.NO_CALL_CATEGORIES
    }
    assert found == {
        "irrelevance": {"row": 240},
        "live_irrelevance": {
            "row": 868,
            "no_tool": 4,
            "identical_row": 3,
            "too_long": 3,
            "control_characters": 4,
        },
    }


def test_rows_are_the_records_as_they_are(shared: Path, full: Plan) -> None:
    root = shared / "sources"
    records = {
        dumps((opened(one)[0], one.tools)): one.category
        for category in bfcl.NO_CALL_CATEGORIES
        for one in bfcl.no_call_records(root, category)
        if isinstance(one, Sample)
    }
    made = list(rows(full))
    assert len(made) == len(records) == UNIT.rows.full
    for clean, row in made:
        live = records.pop(dumps((row.messages, row.tools))).startswith("live_")
        assert clean.category.startswith("live_") == live and clean.source == bfcl.SOURCE
        assert not row.flags and UNIT.check(clean, row) == [] and self_check(row, clean) is None
    assert not records


def test_skips_are_counted(full: Plan) -> None:
    reasons = Counter(one.reason for one in full.rows("irrelevant") if not isinstance(one, Sample))
    assert reasons == {"no_record_for_it": 1166, "other_source": 824}


def test_clean_rows_and_other_types_are_what_they_were(shared: Path, full: Plan) -> None:
    without = prepare(
        BuildSpec(profile="full", sources=shared / "sources", codes=("call_due",)), accept=self_check
    ).plan
    assert without.samples == full.samples
    assert list(without.rows("call_due")) == list(full.rows("call_due"))


def test_the_seed_puts_no_record_elsewhere() -> None:
    first, second = ({row.id: row.messages for _, row in rows(plan_of("bundled", seed=n))} for n in (0, 7))
    assert first == second and len(first) == UNIT.rows.bundled


def test_no_call_in_a_paper_build(shared: Path) -> None:
    assert borrowed(["irrelevant"], shared / "sources", "paper", Pool((), ())) == {IRRELEVANT: ()}
    assert UNIT.rows.paper == 0 and taxonomy.get("irrelevant").no_call == "right"


@given(samples(), samples())
def test_the_whole_row_is_swapped(clean: Sample, other: Sample) -> None:
    record = msgspec.structs.replace(other, clean_id=clean.clean_id, golden_answers=((),))
    (row,) = Plan(samples=(clean,), seed=0, loans={IRRELEVANT: (record,)}).rows("irrelevant")
    if clean.source != "bfcl_v3":
        assert not isinstance(row, Sample) and row.reason == "other_source"
        return
    assert isinstance(row, Sample)
    if (row.messages, row.tools) != (opened(clean)[0], clean.tools):
        assert UNIT.check(clean, row) == []
    assert allowed.replay(row, clean) == HOLDS
    assert allowed.differences(row, clean) <= set(UNIT.may_change)
    assert (row.messages, row.tools) == (opened(record)[0], record.tools)
    assert self_check(row, clean) is None
    assert UNIT.perturb(clean, random.Random(1), Context(loans={IRRELEVANT: (record,)})) == row


def test_a_row_that_is_not_swapped_whole_is_refused() -> None:
    row = cases.row_of(UNIT, UNIT.golden[0])

    def wrong(**fields: object) -> list[str]:
        return UNIT.check(TABLE, msgspec.structs.replace(row, **fields))

    assert wrong() == []
    hidden = "the diff does not swap the whole row"
    assert wrong(tools=()) == ["it lists no tool", hidden]
    assert wrong(tools=TABLE.tools) == [hidden]
    assert wrong(changes=row.changes[1:]) == [hidden]
    assert wrong(messages=row.messages[1:]) == [hidden, "it is not asked in open words"]
    twice = (*row.messages, Message("user", MAY_DECLINE))
    assert wrong(messages=twice) == [hidden, "it is not asked in open words"]
    assert UNIT.check(TABLE, UNIT.spoiled(TABLE, row)) == ["it is the clean row, whose request a tool serves"]


# --- files that are not as they should be ---------------------------------------------------------------


def test_a_file_that_is_missing_broken_or_another_is_named(shared: Path, tmp_path: Path) -> None:
    clean = Pool(plan_of("bundled").samples, ())
    refuses(
        r"missing source file bfcl/.*irrelevance\.json.*rbtc sources fetch",
        borrowed,
        ["irrelevant"],
        tmp_path,
        "full",
        clean,
    )
    file = tmp_path / bfcl.no_call_file("irrelevance")
    file.parent.mkdir(parents=True)
    own = (BUNDLED / bfcl.no_call_file("irrelevance")).read_bytes()
    file.write_bytes(own)
    refuses(
        r"irrelevance\.json: wrong checksum: .*`rbtc sources fetch`",
        borrowed,
        ["irrelevant"],
        tmp_path,
        "full",
        clean,
    )
    file.write_bytes(own + b'{"id": "x", "question": 3}\n')
    refuses(r"irrelevance\.json: line 8: ", borrowed, ["irrelevant"], tmp_path, "full", clean)
    file.write_bytes(b'{"id": "x", "question": [[], []], "function": []}\n')
    refuses(r"irrelevance\.json: record 0: it has 2 turns", borrowed, ["irrelevant"], tmp_path, "full", clean)


def test_more_records_than_clean_samples_are_refused(tmp_path: Path) -> None:
    samples = plan_of("bundled").samples
    for category in bfcl.NO_CALL_CATEGORIES:
        file = tmp_path / bfcl.no_call_file(category)
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BUNDLED / bfcl.no_call_file(category), file)
    few = [sample for sample in samples if sample.source == bfcl.SOURCE][:3]
    refuses(
        r"irrelevance: 7 records for 3 clean samples of BFCL",
        borrowed,
        ["irrelevant"],
        tmp_path,
        "bundled",
        Pool(tuple(few), ()),
    )
