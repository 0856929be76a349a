"""What reading costs of a reply's allowance, and how deep the short way looks.

Which hostile texts are given up depends on it, so a change is another reader: it needs a READER_VERSION of
its own.
"""

import pytest

from robustbench_tc.eval.parse import around, elements, lenient, parse, python_literals
from robustbench_tc.eval.parse.context import ALLOWANCE, ParseContext
from robustbench_tc.eval.parse.cues import _alternatives


def cost(text: str) -> int:
    """Of reading a list loosely."""
    context = ParseContext("bfcl_v3", ())
    assert lenient.read(text, 0, context) is not None
    return ALLOWANCE - context.left


@pytest.mark.parametrize(("characters", "units"), [(127, 1), (128, 1), (255, 2), (1279, 10)])
def test_a_loose_string_costs_a_unit_for_128_characters(characters: int, units: int) -> None:
    """The closing quote counts."""
    assert cost(f'["{"a" * characters}"]') - cost('[""]') == units


def test_an_attribute_costs_six_units() -> None:
    context = ParseContext("bfcl_v3", ())
    opening = elements.opening_at(' host="a" port="b" path="c"/>', 0, context)
    assert opening is not None and opening.attributes == {"host": "a", "port": "b", "path": "c"}
    assert ALLOWANCE - context.left == 3 * 6
    context.left = 2 * 6
    assert elements.opening_at(' host="a" port="b" path="c"/>', 0, context) is None


@pytest.mark.parametrize(("depth", "short"), [(1, True), (8, True), (9, False)])
def test_the_short_way_reads_eight_levels_and_leaves_more_to_the_general_way(depth: int, short: bool) -> None:
    text = f"f(a={'[' * depth}1{']' * depth})"
    assert (python_literals.calls(text) is not None) == short
    (call,) = parse(text, source="bfcl_v3").calls
    if short:
        assert python_literals.calls(text) == [call]


@pytest.mark.parametrize("words", [0, 1, 40])
def test_code_in_front_of_a_call_is_left_out_of_the_words_there(words: int) -> None:
    front = "word " * words + "Please call "
    text = front + "result = "
    assert around.lead_of(text, len(text)) == around.lead_of(front, len(front))


def test_alternatives_in_groups_and_classes_stay_together() -> None:
    assert _alternatives(r"(a|b)c|[|]d|\|e|((f|g)|h)|i") == ["(a|b)c", "[|]d", r"\|e", "((f|g)|h)", "i"]
