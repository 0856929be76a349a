"""What differs between a clean row and its perturbed one: nothing is lost, and nothing is said twice."""

from collections import Counter

import msgspec
from hypothesis import given, strategies as st

from robustbench_tc.eval import changed
from robustbench_tc.schema import Change, Message, Tool

from . import small

WORDS = st.lists(st.sampled_from(["a", "b", "c", "", "déjà", "\n"]), max_size=30).map(" ".join)


@given(WORDS, WORDS)
def test_both_sides_can_be_read_off(before: str, after: str) -> None:
    found = changed.pieces(before, after)
    left = "".join(one.text for one in found if one.kind != "added")
    right = "".join(one.text for one in found if one.kind != "removed")
    assert (left.removesuffix(" "), right.removesuffix(" ")) == (before, after)
    if before == after:
        assert [one.kind for one in found] == ["same"]


def test_long_texts_differ_as_a_whole_between_what_they_share() -> None:
    middle = [" ".join(f"{letter}{n}" for n in range(2_000)) for letter in "xy"]
    before, after = (f"start {one} end" for one in middle)
    found = changed.pieces(before, after)
    assert [one.kind for one in found] == ["same", "removed", "added", "same"]
    assert (found[0].text, found[-1].text) == ("start ", "end ")


def test_every_row_of_a_small_release_is_told_from_its_clean_row() -> None:
    clean = {row.clean_id: row for row in small.clean_rows()}
    rows = [row for row in small.rows() if row.type_code != "clean"]
    assert len({row.type_code for row in rows}) > 10
    for row in rows:
        anchor = clean[row.clean_id]
        pairs = changed.registries(anchor, row)
        assert [one.after for one in pairs if one.after is not None] == list(row.tools)
        left = Counter(msgspec.json.encode(one.before) for one in pairs if one.before is not None)
        assert left == Counter(map(msgspec.json.encode, anchor.tools))
        said = changed.conversations(anchor, row)
        assert [one.after for one in said if one.after is not None] == list(row.messages)
        assert [one.before for one in said if one.before is not None] == list(anchor.messages)
        moved = any(one.kind != "same" for one in pairs) or any(one.before != one.after for one in said)
        assert moved == (row.tools != anchor.tools or row.messages != anchor.messages)


def test_a_renamed_tool_stands_beside_what_it_was() -> None:
    old, other = Tool("weather.today", "The weather.", {}), Tool("clock", "The time.", {})
    clean = msgspec.structs.replace(small.clean_rows()[0], tools=(old, other))
    new = Tool("wea.tod", "The weather, 3 USD.", {})
    row = msgspec.structs.replace(
        clean, tools=(other, new), changes=(Change("/tools/1/name", old.name, new.name),)
    )
    found = changed.registries(clean, row)
    assert found == [changed.ToolPair(other, other), changed.ToolPair(old, new)]
    assert [one.kind for one in found] == ["same", "changed"]
    without = changed.registries(clean, msgspec.structs.replace(row, changes=()))
    assert [one.kind for one in without] == ["same", "added", "removed"]


def test_messages_that_came_and_went_have_no_partner() -> None:
    clean = small.clean_rows()[0]
    first = clean.messages[0]
    before = Message("assistant", "Certainly.")
    row = msgspec.structs.replace(clean, messages=(Message("user", "Hello."), before, first))
    found = changed.conversations(clean, row)
    assert [one.before for one in found] == [None, None, first]
    assert changed.conversations(row, clean) == [changed.MessagePair(b, a) for a, b in found]
