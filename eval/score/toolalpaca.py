"""ToolAlpaca: every golden call is a subset of a predicted call of its own (scoring.md section 5.2).

Surplus calls are tolerated up to as many as gold has: whoever calls the whole registry is not right
(calls.md section 4).
"""

from collections.abc import Sequence

from robustbench_tc.schema import ANY, Call, GoldenAnswer, Json, Tool

from .matching import all_matched
from .result import RIGHT, Score, best, wrong
from .values import decimal, folded, is_number

SURPLUS = 2
"""At most so many calls for each golden one."""

FREE = (None, "", "None")
"""Golden values that accept anything, absence included."""


def score_toolalpaca(
    calls: Sequence[Call], category: str, golden_answers: Sequence[GoldenAnswer], tools: Sequence[Tool]
) -> Score:
    """A `Scorer`; `category` and `tools` are not looked at."""
    return best([_answer(calls, golden) for golden in golden_answers])


def _answer(calls: Sequence[Call], golden: GoldenAnswer) -> Score:
    fits = [
        [index for index, call in enumerate(calls) if _mismatch(call, expected) is None]
        for expected in golden
    ]
    if not calls:
        return wrong("no_call")
    if all_matched(fits):
        return RIGHT if len(calls) <= SURPLUS * len(golden) else wrong("call_count")
    if len(golden) > 1:
        return wrong("no_match")
    return wrong(_nearest(calls, golden[0]))


def _nearest(calls: Sequence[Call], golden: Call) -> str:
    """The reason of the first call of the right name, else that there is none."""
    reasons = [_mismatch(call, golden) for call in calls]
    return next((reason for reason in reasons if reason and reason != "wrong_name"), "wrong_name")


def _mismatch(call: Call, golden: Call) -> str | None:
    if call.name != golden.name:
        return "wrong_name"
    for key, accepted in golden.parameters.items():
        if any(answer in FREE for answer in accepted):
            continue
        if key not in call.parameters:
            return "missing_parameter"
        if not any(answer == ANY or equal(call.parameters[key], answer) for answer in accepted):
            return "wrong_value"
    return None


def equal(value: Json, golden: Json) -> bool:
    """Loose equality: text without case and spacing, numbers and booleans also as text, objects by subset."""
    if golden in FREE:
        return True
    if isinstance(golden, dict):
        return isinstance(value, dict) and all(
            (key in value and equal(value[key], inner)) or equal(None, inner) for key, inner in golden.items()
        )
    if isinstance(golden, list):
        return isinstance(value, list) and len(value) == len(golden) and all(map(equal, value, golden))
    if isinstance(golden, bool) or isinstance(value, bool):
        word = _word(value)
        return word is not None and word == _word(golden)
    if is_number(golden) or is_number(value):
        left = decimal(value)
        return left is not None and decimal(golden) == left
    return isinstance(value, str) and isinstance(golden, str) and folded(value) == folded(golden)


def _word(value: Json) -> str | None:
    """true and false as their words, text folded; None for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return folded(value) if isinstance(value, str) else None
