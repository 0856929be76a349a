"""RoTBench: tool selection, parameter identification, content filling (scoring.md section 5.1)."""

from collections.abc import Sequence

from robustbench_tc.schema import ANY, CONTROL_TOOLS, Call, GoldenAnswer, Json, Tool

from .result import Score, wrong
from .values import is_number, is_text_of, json_equal, may_be_left_out

_STAGES = ("tool_selection", "parameter_identification", "content_filling")


def score_rotbench(
    calls: Sequence[Call], category: str, golden_answers: Sequence[GoldenAnswer], tools: Sequence[Tool]
) -> Score:
    """Exactly one call; the acceptable answer that gets farthest decides."""
    if len(calls) != 1:
        return wrong("call_count" if calls else "no_call")
    passed = 0
    reason = "wrong_name"
    for golden in golden_answers:
        if len(golden) == 1:
            reached, why = _stages(calls[0], golden[0])
            if reached > passed:
                passed, reason = reached, why
    stages = {name: index < passed for index, name in enumerate(_STAGES)}
    if passed == len(_STAGES):
        return Score(1.0, True, None, stages)
    return Score(0.0, False, reason, stages)


def _stages(call: Call, golden: Call) -> tuple[int, str]:
    """How many stages the call passes, and what is wrong at the next."""
    if call.name != golden.name:
        return 0, "wrong_name"
    if any(
        key not in call.parameters and not may_be_left_out(item) for key, item in golden.parameters.items()
    ):
        return 1, "missing_parameter"
    if not call.parameters.keys() <= golden.parameters.keys():
        return 1, "unexpected_parameter"
    if is_control(golden):
        return 3, ""
    filled = all(
        any(equal(value, answer) for answer in golden.parameters[key])
        for key, value in call.parameters.items()
    )
    return (3, "") if filled else (2, "wrong_value")


def is_control(golden: Call) -> bool:
    """Whether a golden call steers the dialogue: its wording is free. (Under the same name a noisy tool list
    may have another tool, which its parameters tell.)"""
    return golden.name in CONTROL_TOOLS and golden.parameters.keys() <= {"question", "answer"}


def equal(value: Json, golden: Json) -> bool:
    """Equal as JSON, or a number and its decimal text."""
    if golden == ANY or json_equal(value, golden):
        return True
    if is_number(value) and isinstance(golden, str):
        return is_text_of(golden, value)
    return is_number(golden) and isinstance(value, str) and is_text_of(value, golden)
