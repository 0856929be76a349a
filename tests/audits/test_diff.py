"""The diff of a row whose messages were added or removed, and what it may not leave out."""

import msgspec
import pytest

from robustbench_tc.audits.invariants.allowed import replay
from robustbench_tc.audits.invariants.base import HOLDS
from robustbench_tc.builders.perturb import cases
from robustbench_tc.schema import Call, Change, Json, Message, Sample

CLEAN = cases.CLEAN["table"]
SMALL_TALK = (Message("user", "Hello."), Message("assistant", "Hello! What do you need?"))


def row(*messages: Message, changes: list[Change]) -> Sample:
    return msgspec.structs.replace(CLEAN, messages=messages, changes=tuple(changes))


def added(index: int, message: Message) -> Change:
    return Change(f"/messages/{index}", None, msgspec.to_builtins(message))


def removed(index: int, message: Message) -> Change:
    return Change(f"/messages/{index}", msgspec.to_builtins(message), None)


FIRST, SECOND = SMALL_TALK
ASKED = CLEAN.messages[0]
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


@pytest.mark.parametrize(
    ("messages", "changes", "said"),
    [
        ((FIRST, SECOND, ASKED), [added(0, FIRST)], "the messages hold a change that the diff does not name"),
        ((FIRST, ASKED), [], "the messages hold a change that the diff does not name"),
        ((FIRST, NEXT), [added(0, FIRST)], "the messages hold a change that the diff does not name"),
        ((ASKED,), [removed(0, ASKED)], "the messages hold a change that the diff does not name"),
        ((ASKED, FIRST), [added(0, FIRST)], "/messages/0 is not that message"),
        ((FIRST, ASKED), [added(0, Message("system", FIRST.content))], "/messages/0 is not that message"),
        ((FIRST, FIRST, ASKED), [added(0, FIRST), added(0, FIRST)], "/messages/0 is not that message"),
        ((FIRST, ASKED), [Change("/messages/0", None, FIRST.content)], "/messages/0 is not that message"),
        ((FIRST, ASKED), [added(2, FIRST)], "/messages/2 is not a message that was added or removed"),
        ((ASKED,), [Change("/messages/0")], "/messages/0 is not a message that was added or removed"),
        (
            (ASKED,),
            [
                Change(
                    "/messages/0", {"role": "user", "content": ASKED.content}, {"role": "user", "content": ""}
                )
            ],
            "/messages/0 is not a message that was added or removed",
        ),
    ],
)
def test_what_the_diff_says_of_messages_has_to_be_so(
    messages: tuple[Message, ...], changes: list[Change], said: str
) -> None:
    assert replay(row(*messages, changes=changes), CLEAN) == said


@pytest.mark.parametrize("role", ["system", "assistant", "tool"])
def test_a_role_that_changed_is_not_explained_by_its_text(role: Json) -> None:
    other = Message(role, ASKED.content)
    assert replay(row(other, changes=[]), CLEAN) == "the messages hold a change that the diff does not name"


@pytest.mark.parametrize("before", ["Aook", "book", "zook", "Book 2 seatz"])
def test_a_text_that_was_not_there_before_explains_nothing(before: str) -> None:
    """Whichever of the two texts comes first in the alphabet."""
    after = "Reserve" + ASKED.content[len(before) :]
    said = Change("/messages/0/content", before, "Reserve", 0)
    assert replay(row(Message("user", after), changes=[said]), CLEAN) == (
        "/messages/0/content was not that text in the clean row"
    )


@pytest.mark.parametrize("place", ["Aria", "Zenith"])
def test_golden_answers_other_than_the_diff_says_are_not_explained(place: str) -> None:
    (call,) = CLEAN.golden_answers[0]
    named = ((Call(call.name, {**call.parameters, "place": ["Nova"]}),),)
    other = ((Call(call.name, {**call.parameters, "place": [place]}),),)
    plain = [msgspec.to_builtins(one) for one in (CLEAN.golden_answers, named)]
    changes = (Change("/golden_answers", *plain),)
    sound = msgspec.structs.replace(CLEAN, golden_answers=named, changes=changes)
    assert replay(sound, CLEAN) == HOLDS
    said = "the golden answers hold a change that the diff does not name"
    assert replay(msgspec.structs.replace(sound, golden_answers=other), CLEAN) == said
