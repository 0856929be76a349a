"""What of a perturbed row's texts is new, held against the clean row's."""

from robustbench_tc.audits.hygiene.leaves import Leaf
from robustbench_tc.audits.hygiene.texts import Flagged, Texts, known

BOLD, TWICE = "Book <b>two</b> seats.", "Book <b>two</b> seats, and <b>two</b> more."


def flagged(texts: Texts, text: str) -> Flagged:
    return Flagged("query", text, texts.finds(Leaf(text)))


def test_what_the_clean_row_holds_as_often_is_not_brought_in() -> None:
    texts = Texts(frozenset())
    before = known([flagged(texts, BOLD)], BOLD)
    assert before.texts == {BOLD}
    assert [find.rule for _, find in texts.brought_in([flagged(texts, f"Hi. {BOLD}")], before)] == []
    assert {find.rule for _, find in texts.brought_in([flagged(texts, TWICE)], before)} == {"markup"}
    assert list(texts.brought_in([flagged(texts, BOLD)], known([], ""))) != []
