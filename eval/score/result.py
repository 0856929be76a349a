"""What a scorer says about one prediction."""

from collections.abc import Callable, Sequence

import msgspec

from robustbench_tc.schema import Call, GoldenAnswer, Json, Tool


class Score(msgspec.Struct, frozen=True):
    """The verdict on the calls of one prediction.

    `reason` is null when correct, else the first thing found wrong: `no_call`, `call_count`, `wrong_name`,
    `missing_parameter`, `unexpected_parameter`, `wrong_type`, `wrong_value`, `no_match` (of several golden
    calls one has no partner), `unknown_tool` (the golden name is not in the registry), `unexpected_call` (no
    call is due), `unparsable` (no call is due, and the reply is broken), `no_question` (the reply has to ask,
    and does not).
    """

    score: float
    """In [0, 1]; less than 1 and more than 0 only for ToolEyes."""
    correct: bool
    """score == 1: what every accuracy counts."""
    reason: str | None
    stages: dict[str, Json] = {}
    """Finer marks of the source's own scorer, for diagnosis only."""


Scorer = Callable[[Sequence[Call], str, Sequence[GoldenAnswer], Sequence[Tool]], Score]
"""calls, the source's category, the acceptable answers, the tools to judge against."""

RIGHT = Score(1.0, True, None)

_WRONG = {
    reason: Score(0.0, False, reason)
    for reason in (
        "no_call call_count wrong_name missing_parameter unexpected_parameter wrong_type wrong_value "
        "no_match unknown_tool unexpected_call unparsable no_question"
    ).split()
}


def wrong(reason: str) -> Score:
    """The score of a wrong prediction. Raises KeyError for a reason outside `_WRONG`."""
    return _WRONG[reason]


def best(scores: list[Score]) -> Score:
    """The best of the scores against several acceptable answers; the first of equals."""
    return max(scores, key=lambda score: score.score) if scores else wrong("no_match")
