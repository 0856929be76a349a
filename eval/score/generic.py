"""The scorer for a source without one of its own: names, argument sets and values, calls in any order.

A reply is right if it fulfils one acceptable answer: as many calls as that has, each golden call met by a
call of its own, with the same name, no argument that gold lacks, and every value among the accepted ones as
JSON sees them.
"""

from collections.abc import Sequence

from robustbench_tc.schema import ANY, Call, GoldenAnswer, Tool

from .matching import all_matched
from .result import RIGHT, Score, best, wrong
from .values import json_equal, may_be_left_out


def score_generic(
    calls: Sequence[Call], category: str, golden_answers: Sequence[GoldenAnswer], tools: Sequence[Tool]
) -> Score:
    """A `Scorer`; `category` and `tools` are not looked at."""
    return best([_answer(calls, golden) for golden in golden_answers])


def _answer(calls: Sequence[Call], golden: GoldenAnswer) -> Score:
    if len(calls) != len(golden):
        return wrong("call_count" if calls else "no_call")
    if len(golden) == 1:
        reason = _mismatch(calls[0], golden[0])
        return RIGHT if reason is None else wrong(reason)
    fits = [[i for i, call in enumerate(calls) if _mismatch(call, one) is None] for one in golden]
    return RIGHT if all_matched(fits) else wrong("no_match")


def _mismatch(call: Call, golden: Call) -> str | None:
    """The first thing wrong with a call, or None."""
    if call.name != golden.name:
        return "wrong_name"
    for key, accepted in golden.parameters.items():
        if key not in call.parameters:
            if not may_be_left_out(accepted):
                return "missing_parameter"
        elif not any(value == ANY or json_equal(call.parameters[key], value) for value in accepted):
            return "wrong_value"
    return None if call.parameters.keys() <= golden.parameters.keys() else "unexpected_parameter"
