"""What differs between two texts: nothing is lost, and nothing is said twice."""

from hypothesis import given, strategies as st

from robustbench_tc.eval.row_view import pieces

WORDS = st.lists(st.sampled_from(["a", "b", "c", "", "déjà", "\n"]), max_size=30).map(" ".join)


@given(WORDS, WORDS)
def test_both_sides_can_be_read_off(before: str, after: str) -> None:
    found = pieces(before, after)
    left = "".join(text for kind, text in found if kind != "added")
    right = "".join(text for kind, text in found if kind != "removed")
    assert (left.removesuffix(" "), right.removesuffix(" ")) == (before, after)
    if before == after:
        assert [kind for kind, _ in found] == ["same"]


def test_long_texts_differ_as_a_whole_between_what_they_share() -> None:
    middle = [" ".join(f"{letter}{n}" for n in range(2_000)) for letter in "xy"]
    before, after = (f"start {one} end" for one in middle)
    found = pieces(before, after)
    assert [kind for kind, _ in found] == ["same", "removed", "added", "same"]
    assert (found[0][1], found[-1][1]) == ("start ", "end ")
