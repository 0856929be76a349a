"""Rows one by one: plain columns, diff, new texts, schemas of tools, and whom a judge is asked about."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from robustbench_tc.audits.checks import HOLDS, verdict
from robustbench_tc.audits.hygiene import schemas
from robustbench_tc.audits.hygiene.texts import Flagged, Leaf, Texts, finds, known
from robustbench_tc.audits.invariants import allowed
from robustbench_tc.audits.rows import NewTool, RowChecks
from robustbench_tc.builders import answerable
from robustbench_tc.builders.plain import row_dict
from robustbench_tc.schema import Call, Change, Json, Message, Sample, Tool, dumps, loads

from ..builders.perturb import cases

CLEAN = cases.CLEAN["table"]
ASKED = CLEAN.messages[0]


def new_tools(row: Sample) -> list[NewTool]:
    checks = RowChecks()
    checks.check("clean", 0, [row_dict(CLEAN)])
    return list(checks.check(row.type_code, 0, [row_dict(row)]).new_tools)


@pytest.mark.parametrize(
    "messages",
    [
        (ASKED,),
        (Message("user", "Hello."), Message("assistant", "What do you need?"), ASKED),
        (Message("system", "Be brief."), ASKED, Message("assistant", "One moment.")),
    ],
    ids=["alone", "after-another", "before-an-answer"],
)
def test_the_judge_of_a_new_tool_is_shown_the_last_thing_that_the_user_said(
    messages: tuple[Message, ...],
) -> None:
    made = cases.row_of("redundant")
    shown = new_tools(msgspec.structs.replace(made, messages=messages))
    brought = [tool for tool in made.tools if tool not in CLEAN.tools]
    assert {(tool.name, tool.description) for tool in shown} == {(t.name, t.description) for t in brought}
    assert {tool.query for tool in shown} == {"Book 2 seats at Luna tonight."}
    assert {tool.clean_id for tool in shown} == {CLEAN.clean_id}
    assert {msgspec.json.decode(tool.gold, type=Tool).name for tool in shown} == {"reserve"}


def flag_verdict(clean: Sample, row: Sample | None = None) -> str:
    """What the check of the flag says of a row, or of its clean row."""
    checks = RowChecks()
    found = checks.check("clean", 0, [row_dict(clean)])
    if row is not None:
        found = checks.check(row.type_code, 0, [row_dict(row)])
    return str(found.rows["flag_says_what_the_golds_say"][-1])


def golden(tool: Tool, parameters: dict[str, list[Json]], said: str) -> Sample:
    """A clean row of the sample's whose golden call is another one."""
    return msgspec.structs.replace(
        CLEAN,
        messages=(Message("user", said),),
        tools=(tool,),
        golden_answers=((Call(tool.name, parameters),),),
        gold_tool_index=0,
    )


CODE = "Only needed for the first call."
UNREACHED = {
    "a key that the tool does not declare": golden(
        Tool("switch", "Switches.", {"type": "object", "properties": {"on": {"type": "boolean"}}}),
        {"on": [True], "device_id": [1234]},
        "Switch 1234 on.",
    ),
    "a value that only an example gives": golden(
        Tool(
            "record",
            "Records.",
            {"type": "object", "properties": {"value": {"type": "string", "description": "e.g. '120/80'"}}},
        ),
        {"value": ["120/80"]},
        "Record my blood pressure.",
    ),
    "a key that another call needs": golden(
        Tool(
            "reset",
            "Resets.",
            {
                "type": "object",
                "properties": {
                    "user": {"type": "string", "description": CODE},
                    "code": {"type": "integer", "description": CODE.replace("first", "second")},
                },
            },
        ),
        {"user": ["Ann"], "code": [77]},
        "Ann, 77.",
    ),
}


@pytest.mark.parametrize("name", UNREACHED)
def test_the_gate_names_a_gold_that_cannot_be_reached_and_has_no_flag(name: str) -> None:
    planted = UNREACHED[name]
    assert "no flag 'gold_not_stated'" in flag_verdict(planted)
    flagged_row = answerable.flagged(planted, True)
    assert flag_verdict(flagged_row) == HOLDS
    declining = msgspec.structs.replace(
        flagged_row, type_code="gold_removed", golden_answers=((),), gold_tool_index=None
    )
    assert "though its golden answer can be taken" in flag_verdict(flagged_row, declining)
    assert flag_verdict(flagged_row, answerable.flagged(declining, False)) == HOLDS


def test_a_row_of_another_type_brings_nothing_to_judge() -> None:
    made = cases.row_of("redundant")
    assert new_tools(msgspec.structs.replace(made, type_code="same_name_A")) == []


# --- The diff of a row whose messages were added or removed, and what it may not leave out


SMALL_TALK = (Message("user", "Hello."), Message("assistant", "Hello! What do you need?"))


def replay(row: Sample, clean: Sample) -> str | None:
    of_a_type = msgspec.structs.replace(row, type_code="context_2k")
    return verdict(allowed.diff_explains_the_row, of_a_type, clean)


def row(*messages: Message, changes: list[Change]) -> Sample:
    return msgspec.structs.replace(CLEAN, messages=messages, changes=tuple(changes))


def added(index: int, message: Message) -> Change:
    return Change(f"/messages/{index}", None, msgspec.to_builtins(message))


def removed(index: int, message: Message) -> Change:
    return Change(f"/messages/{index}", msgspec.to_builtins(message), None)


FIRST, SECOND = SMALL_TALK
NEXT = Message(ASKED.role, ASKED.content + " Please.")
POLITE = Change("/messages/0/content", "", " Please.", len(ASKED.content))


def test_messages_that_were_added_or_removed_are_explained_by_naming_each() -> None:
    both = [added(0, FIRST), added(1, SECOND)]
    assert replay(row(FIRST, SECOND, ASKED, changes=both), CLEAN) == HOLDS
    assert replay(row(FIRST, ASKED, SECOND, changes=[both[0], added(2, SECOND)]), CLEAN) == HOLDS
    longer = msgspec.structs.replace(CLEAN, messages=(*SMALL_TALK, ASKED))
    assert replay(row(ASKED, changes=[removed(0, FIRST), removed(1, SECOND)]), longer) == HOLDS
    # The text of a message is addressed by its place in the clean row, beside messages that came.
    assert replay(row(FIRST, SECOND, NEXT, changes=[*both, POLITE]), CLEAN) == HOLDS


HIDDEN = "the messages hold a change that the diff does not name"


@pytest.mark.parametrize(
    ("messages", "changes", "said"),
    [
        ((FIRST, SECOND, ASKED), [added(0, FIRST)], HIDDEN),
        ((FIRST, ASKED), [], HIDDEN),
        ((FIRST, NEXT), [added(0, FIRST)], HIDDEN),
        ((ASKED,), [removed(0, ASKED)], HIDDEN),
        ((FIRST, FIRST, ASKED), [added(0, FIRST), added(0, FIRST)], HIDDEN),
        ((ASKED,), [Change("/messages/0", msgspec.to_builtins(ASKED), msgspec.to_builtins(FIRST))], HIDDEN),
        ((ASKED, FIRST), [added(0, FIRST)], "/messages/0 is not that in its row"),
        ((FIRST, ASKED), [added(0, Message("system", FIRST.content))], "/messages/0 is not that in its row"),
        ((FIRST, ASKED), [Change("/messages/0", None, FIRST.content)], "/messages/0 is not that in its row"),
        ((FIRST, ASKED), [added(2, FIRST)], "/messages/2 is not that in its row"),
        ((ASKED,), [Change("/messages/0")], "/messages/0 is not that in its row"),
        ((ASKED,), [Change("/flags/0", None, "new")], "/flags/0 is not a place in a row"),
    ],
)
def test_what_the_diff_says_of_messages_has_to_be_so(
    messages: tuple[Message, ...], changes: list[Change], said: str
) -> None:
    assert replay(row(*messages, changes=changes), CLEAN) == said


@pytest.mark.parametrize("role", ["system", "assistant", "tool"])
def test_a_role_that_changed_is_not_explained_by_its_text(role: Json) -> None:
    other = Message(role, ASKED.content)
    assert replay(row(other, changes=[]), CLEAN) == HIDDEN


@pytest.mark.parametrize("before", ["Aook", "book", "zook", "Book 2 seatz"])
def test_a_text_that_was_not_there_before_explains_nothing(before: str) -> None:
    """Whichever of the two texts comes first in the alphabet."""
    after = "Reserve" + ASKED.content[len(before) :]
    said = Change("/messages/0/content", before, "Reserve", 0)
    assert replay(row(Message("user", after), changes=[said]), CLEAN) == HIDDEN


@pytest.mark.parametrize("place", ["Aria", "Zenith"])
def test_golden_answers_other_than_the_diff_says_are_not_explained(place: str) -> None:
    (call,) = CLEAN.golden_answers[0]
    named = ((Call(call.name, {**call.parameters, "place": ["Nova"]}),),)
    other = ((Call(call.name, {**call.parameters, "place": [place]}),),)
    plain = [msgspec.to_builtins(one) for one in (CLEAN.golden_answers, named)]
    changes = (Change("/golden_answers", *plain),)
    sound = msgspec.structs.replace(CLEAN, golden_answers=named, changes=changes)
    assert replay(sound, CLEAN) == HOLDS
    said = "/golden_answers is not that in its row"
    assert replay(msgspec.structs.replace(sound, golden_answers=other), CLEAN) == said


# --- What of a perturbed row's texts is new, held against the clean row's


BOLD, TWICE = "Book <b>two</b> seats.", "Book <b>two</b> seats, and <b>two</b> more."


def flagged(text: str) -> Flagged:
    return Flagged("query", text, finds(Leaf(text)))


def test_what_the_clean_row_holds_as_often_is_not_brought_in() -> None:
    texts = Texts(frozenset())
    before = known([flagged(BOLD)], BOLD)
    assert before.texts == {BOLD}
    assert [find.rule for _, find in texts.brought_in([flagged(f"Hi. {BOLD}")], before)] == []
    assert {find.rule for _, find in texts.brought_in([flagged(TWICE)], before)} == {"markup"}
    assert list(texts.brought_in([flagged(BOLD)], known([], ""))) != []


# --- Schemas of tools


VALUES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(("", "string", "#/a"))
)

SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    VALUES | st.just({}),
    lambda inner: st.dictionaries(
        st.sampled_from("type required enum minimum minLength pattern $ref default x".split()),
        VALUES | st.lists(VALUES, max_size=2),
        max_size=3,
    ).flatmap(
        lambda plain: st.dictionaries(
            st.sampled_from(("properties", "items", "$defs", "anyOf", "not", "propertyNames")),
            inner
            | st.lists(inner, max_size=2)
            | st.dictionaries(st.sampled_from(("a", "type", "$id")), inner, max_size=2),
            max_size=2,
        ).map(lambda nested: {**plain, **nested})
    ),
    max_leaves=12,
)


@given(SCHEMAS)
def test_a_schema_is_refused_where_the_metaschema_refuses_it(schema: Any) -> None:
    refused = next(schemas._validator().iter_errors(loads(dumps(schema))), None) is not None
    assert schemas.invalid(schema).startswith("not a JSON Schema") == refused


def test_what_is_wrong_is_named_with_its_place() -> None:
    inner = {"type": "object", "properties": {"type": {"type": "text"}, "properties": {"enum": [1]}}}
    assert schemas.invalid({"properties": {"a": inner}}) == (
        "not a JSON Schema: anyOf at /properties/a/properties/type/type"
    )
