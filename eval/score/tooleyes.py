"""ToolEyes: the golden tool names, in any order, surplus calls allowed (scoring.md section 5.3)."""

from collections import Counter
from collections.abc import Sequence

from robustbench_tc.schema import Call, GoldenAnswer, Tool

from .result import RIGHT, Score, best, wrong


def score_tooleyes(
    calls: Sequence[Call], category: str, golden_answers: Sequence[GoldenAnswer], tools: Sequence[Tool]
) -> Score:
    if not calls and all(golden_answers):
        return wrong("no_call")
    return best([_answer(calls, golden) for golden in golden_answers])


def _answer(calls: Sequence[Call], golden: GoldenAnswer) -> Score:
    """The share of the golden names that were called; parameters are ignored."""
    if not golden:
        return RIGHT if not calls else wrong("call_count")
    wanted = Counter(call.name for call in golden)
    found = (wanted & Counter(call.name for call in calls)).total()
    share = found / len(golden)
    if found == len(golden):
        return Score(1.0, True, None, {"names_found": found})
    return Score(share, False, "wrong_name", {"names_found": found})
