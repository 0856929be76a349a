"""ToolEyes: the golden tool names, in any order and as often as there (calls.md section 4)."""

from collections import Counter
from collections.abc import Sequence

from robustbench_tc.schema import CONTROL_TOOLS, Call, GoldenAnswer, Tool

from .result import Score, best, wrong


def score_tooleyes(
    calls: Sequence[Call], category: str, golden_answers: Sequence[GoldenAnswer], tools: Sequence[Tool]
) -> Score:
    """The answer that fits best decides; parameters are ignored, control tools count on neither side."""
    found = _names(calls)
    if not found:
        return wrong("no_call")
    return best([_answer(found, _names(golden)) for golden in golden_answers])


def _names(calls: Sequence[Call]) -> Counter[str]:
    return Counter(call.name for call in calls if call.name not in CONTROL_TOOLS)


def _answer(found: Counter[str], wanted: Counter[str]) -> Score:
    """The share of names in common (the Dice coefficient of the two multisets).

    The stage `one_surplus_call` says whether at most one call more than gold was made: reported beside the
    accuracy, never as accuracy.
    """
    shared = (wanted & found).total()
    share = 2 * shared / (wanted.total() + found.total())
    stages = {
        "names_found": shared,
        "one_surplus_call": shared == wanted.total() and found.total() - shared <= 1,
    }
    if found == wanted:
        return Score(1.0, True, None, stages)
    if shared == wanted.total() or shared == found.total():
        return Score(share, False, "call_count", stages)
    return Score(share, False, "wrong_name", stages)
