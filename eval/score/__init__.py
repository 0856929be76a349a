"""One scorer per source, chosen by the sample's explicit source. A scorer is pure: calls in, a score out."""

from collections.abc import Sequence

from robustbench_tc.errors import unknown
from robustbench_tc.eval.parse import parse
from robustbench_tc.schema import Call, GoldenAnswer, Prediction, Sample, Tool, Verdict

from .apibank import score_apibank
from .bfcl import score_bfcl
from .error_modes import error_mode
from .result import Score, Scorer
from .rotbench import score_rotbench
from .toolalpaca import score_toolalpaca
from .tooleyes import score_tooleyes
from .tools import scoring_tools

__all__ = ["SCORERS", "Score", "error_mode", "judge", "score", "scoring_tools"]

SCORERS: dict[str, Scorer] = {
    "bfcl_v3": score_bfcl,
    "apibank": score_apibank,
    "rotbench": score_rotbench,
    "toolalpaca": score_toolalpaca,
    "tooleyes": score_tooleyes,
}


def score(
    calls: Sequence[Call],
    *,
    source: str,
    category: str,
    golden_answers: Sequence[GoldenAnswer],
    tools: Sequence[Tool],
) -> Score:
    """The verdict on parsed calls. `category` is upstream's, `tools` are those to judge against.

    Raises UserError for an unknown source, and nothing for any calls.
    """
    scorer = SCORERS.get(source)
    if scorer is None:
        raise unknown("source", source, SCORERS)
    return scorer(calls, category, golden_answers, tools)


def judge(prediction: Prediction, row: Sample, clean: Sample) -> Verdict:
    """Parses and scores one prediction for `row`, whose clean row is `clean`.

    A prediction that the server rejected or found too long is wrong for that reason. Raises ValueError for a
    `request_error`: there is no answer to judge.
    """
    if prediction.status == "request_error":
        raise ValueError(f"{prediction.id}: no answer was had, so there is none to judge")
    if prediction.status != "ok":
        return Verdict(
            calls=(), variant=None, score=0.0, correct=False, reason=prediction.status, error_mode="other"
        )
    parsed = parse(
        prediction.raw_output, source=row.source, tools=row.tools, tool_calls=prediction.tool_calls
    )
    found = score(
        parsed.calls,
        source=row.source,
        category=row.category,
        golden_answers=row.golden_answers,
        tools=scoring_tools(row, clean),
    )
    return Verdict(
        calls=parsed.calls,
        variant=parsed.variant,
        score=found.score,
        correct=found.correct,
        reason=found.reason,
        error_mode=error_mode(parsed, found, row, clean),
        flags=parsed.flags,
    )
