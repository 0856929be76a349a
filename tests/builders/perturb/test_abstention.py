"""The pack abstention: which samples have rows, why others have none, what a row is, and BFCL's records."""

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from robustbench_tc import taxonomy
from robustbench_tc.audits.checks import HOLDS, verdict
from robustbench_tc.audits.invariants import allowed
from robustbench_tc.builders.build import BuildSpec, prepare
from robustbench_tc.builders.perturb import (
    REGISTRY,
    Context,
    NotApplicable,
    abstention,
    query_text,
)
from robustbench_tc.builders.perturb.abstention import no_answer, opened, swapped
from robustbench_tc.builders.perturb.abstention_recorded import (
    Judged,
    Recorded,
    apply_edits,
    edits_between,
    names_hash,
    recorded,
)
from robustbench_tc.builders.plain import CLOSING_TURN, closing_order
from robustbench_tc.builders.plan import IRRELEVANT, Plan, borrowed
from robustbench_tc.builders.sources import BUNDLED, Pool, bfcl
from robustbench_tc.eval.prompts import MAY_DECLINE
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import CONTROL_TOOLS, Call, Message, Sample, clean_id_hash, dumps

from ...refusals import refuses
from . import cases
from .strategies import samples

CODES = taxonomy.codes_of("abstention")
NO_CALL = [code for code in CODES if taxonomy.get(code).no_call == "right"]


@pytest.fixture(scope="module")
def bundled() -> Plan:
    return prepare(BuildSpec(profile="bundled", codes=CODES)).plan


@pytest.fixture(scope="module")
def paper(shared: Path) -> Plan:
    return prepare(BuildSpec(sources=shared / "sources", codes=CODES)).plan


def rows(plan: Plan, code: str) -> list[Sample]:
    return [row for row in plan.rows(code) if isinstance(row, Sample)]


def test_each_question_is_put_to_one_sample_of_the_paper(paper: Plan) -> None:
    asked = [row.messages[-1].content for row in rows(paper, "answer_directly")]
    assert len(set(asked)) == len(asked) == 60
    assert not set(asked) & {query_text(sample) for sample in paper.samples}


@pytest.mark.parametrize("code", CODES)
def test_rows_are_asked_in_open_words_and_where_no_call_is_right_none_is(bundled: Plan, code: str) -> None:
    clean = {sample.clean_id: sample for sample in bundled.samples}
    for row in rows(bundled, code):
        assert row.messages[0].role == "system" and row.messages[0].content.endswith(MAY_DECLINE)
        assert sum(MAY_DECLINE in message.content for message in row.messages) == 1
        assert not any(CLOSING_TURN.search(message.content) for message in row.messages)
        if code in NO_CALL:
            assert row.golden_answers == ((),) and row.gold_tool_index is None
            assert self_check(row, clean[row.clean_id]) is None
            assert any(tool.name not in CONTROL_TOOLS for tool in row.tools)
        if code in ("gold_removed", "near_miss"):
            accepted = abstention.accepted_names(clean[row.clean_id])
            assert accepted.isdisjoint(tool.name for tool in row.tools)
            assert not recorded().judged[clean_id_hash(row.clean_id), names_hash(accepted)].another_serves


def test_the_value_stands_nowhere_in_its_row(paper: Plan) -> None:
    found = recorded()
    for row in rows(paper, "missing_value"):
        (one,) = found.missing[clean_id_hash(row.clean_id)]
        words = "\n".join(message.content for message in row.messages)
        assert one.value.casefold() not in words.casefold().split()
        assert row.tools and row.changes


def test_what_was_recorded_ships(shared: Path) -> None:
    found = recorded()
    read = msgspec.json.Decoder().decode_lines
    for said in read((shared / "recorded" / "abstention_judgments.jsonl").read_bytes()):
        judged = found.judged[clean_id_hash(said["clean_id"]), names_hash(said["removed"])]
        assert (judged.another_serves, judged.reason) == (said["another_tool_serves"], said["reason"])
    for said in read((shared / "recorded" / "missing_values.jsonl").read_bytes()):
        kept = [(one.parameter, one.value) for one in found.missing[clean_id_hash(said["clean_id"])]]
        assert (said["parameter"], said["value"]) in kept


# --- properties -----------------------------------------------------------------------------------------


def made(code: str, sample: Sample) -> Sample | str:
    try:
        return REGISTRY[code].perturb(sample, random.Random(0), Context())
    except NotApplicable as skip:
        return skip.reason


@given(samples())
def test_a_counterpart_differs_in_its_words_alone(sample: Sample) -> None:
    row = made("call_due", sample)
    assert isinstance(row, Sample) and row == made("call_due", sample)
    assert REGISTRY["call_due"].check(sample, row) == []
    same = ("tools", "golden_answers", "gold_tool_index", "output_format", "source", "category")
    assert all(getattr(row, name) == getattr(sample, name) for name in same)
    assert (self_check(row, sample) is None) == (self_check(sample) is None)
    assert closing_order(row.messages[-1].content) is None


@given(samples(), st.booleans())
def test_a_registry_is_judged_before_its_gold_leaves(sample: Sample, serves: bool) -> None:
    gone = abstention.accepted_names(sample)
    judged = Judged(clean_id_hash(sample.clean_id), names_hash(gone), serves, "")
    book = Recorded({(judged.sample, judged.removed): judged}, {}, {}, {}, {})
    with pytest.MonkeyPatch.context() as patch:
        others = any(tool.name not in gone for tool in sample.tools)
        assert made("gold_removed", sample) == ("not_judged" if others else "no_other_tool")
        patch.setattr(abstention, "recorded", lambda: book)
        row = made("gold_removed", sample)
        if not isinstance(row, Sample):
            assert row == ("another_tool_serves" if others else "no_other_tool")
            assert serves or not others
            return
        assert row == made("gold_removed", sample)
        assert REGISTRY["gold_removed"].check(sample, row) == []
        assert self_check(row, sample) is None
        assert [tool for tool in sample.tools if tool.name not in gone] == list(row.tools)


@given(st.text(), st.text())
def test_edits_make_the_text_again(before: str, after: str) -> None:
    edits = edits_between(before, after)
    assert apply_edits(before, edits) == after
    if any(old for _, old, _ in edits):
        assert apply_edits("", edits) is None


def test_an_order_to_make_one_call_is_found_in_the_last_turn_only() -> None:
    text = "<user>Make one tool call.</user>\n<response>Yes?</response>\n<user>Go on.</user>\n"
    assert closing_order(text) is None
    assert closing_order("<user> Answer with one tool call.</user>") is None, "the only turn is the request"
    ordered = text + "\n\n<user> Answer with one tool call.</user>\n"
    start, end = closing_order(ordered) or (0, 0)
    assert ordered[:start] + ordered[end:] == text.rstrip() + "\n"


def test_a_row_of_another_registry_is_not_taken_for_the_judged_one() -> None:
    table = cases.CLEAN["table"]
    menu = Call("find_menu", {"dish": ["soup"]})
    assert made("gold_removed", msgspec.structs.replace(table, golden_answers=((menu,),))) == "not_judged"
    other = msgspec.structs.replace(table, messages=(Message("user", "Book 2 seats at Mona tonight."),))
    assert made("missing_value", other) == "not_recorded"
    fewer = msgspec.structs.replace(table, tools=table.tools[1:], gold_tool_index=0)
    assert made("answer_directly", fewer) == "no_question_for_it"


# --- The type irrelevant: BFCL's own records in which no call is right, and where they are put


UNIT = REGISTRY["irrelevant"]
TABLE = cases.CLEAN["table"]


def plan_of(profile: str, sources: Path | None = None, seed: int = 0) -> Plan:
    spec = BuildSpec(profile=profile, sources=sources, codes=("irrelevant",), seed=seed)  # type: ignore[arg-type]
    return prepare(spec).plan


@pytest.fixture(scope="module")
def full(shared: Path) -> Plan:
    return plan_of("full", shared / "sources")


def irrelevant_rows(plan: Plan) -> Iterator[tuple[Sample, Sample]]:
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
    made = list(irrelevant_rows(full))
    assert len(made) == len(records) == UNIT.rows.full
    for clean, row in made:
        live = records.pop(dumps((row.messages, row.tools))).startswith("live_")
        assert clean.category.startswith("live_") == live and clean.source == bfcl.SOURCE
        assert not row.flags and UNIT.check(clean, row) == [] and self_check(row, clean) is None
    assert not records


def test_the_seed_puts_no_record_elsewhere() -> None:
    first, second = (
        {row.id: row.messages for _, row in irrelevant_rows(plan_of("bundled", seed=n))} for n in (0, 7)
    )
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
    assert verdict(allowed.diff_explains_the_row, row, clean) == HOLDS
    assert allowed.differences(row, clean) <= set(UNIT.may_change)
    assert (row.messages, row.tools) == (opened(record)[0], record.tools)
    assert self_check(row, clean) is None
    assert UNIT.perturb(clean, random.Random(1), Context(loans={IRRELEVANT: (record,)})) == row


def test_a_row_that_is_not_swapped_whole_is_refused() -> None:
    row = cases.row_of(UNIT.code)

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
    messages = opened(TABLE)[0]
    changes = (*swapped(TABLE, messages, TABLE.tools), no_answer(TABLE))
    kept = wrong(messages=messages, tools=TABLE.tools, changes=changes)
    assert kept == ["it is the clean row, whose request a tool serves"]


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
