"""One scorer per source, chosen by the sample's explicit source. A scorer is pure: calls in, a score out."""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module

import msgspec

from robustbench_tc import sources
from robustbench_tc.errors import UserError
from robustbench_tc.eval.parse import Parsed
from robustbench_tc.eval.read_reply import read_reply
from robustbench_tc.schema import (
    CONTROL_TOOLS,
    GOLD_NOT_STATED,
    Call,
    GoldenAnswer,
    Prediction,
    Sample,
    Tool,
    Verdict,
)

from . import ghosts
from .apibank import score_apibank
from .bfcl import score_bfcl
from .decision import decides, decision
from .error_modes import error_mode
from .generic import score_generic
from .own import has_to_ask, score_own
from .result import RIGHT, Score, Scorer, wrong
from .results import answered_with_success, attack_marks, ordered_call, score_second
from .rotbench import score_rotbench
from .stages import stage_of
from .toolalpaca import score_toolalpaca
from .tooleyes import score_tooleyes
from .tools import in_the_old_type, scoring_tools

__all__ = [
    "SCORERS",
    "Score",
    "answered_with_success",
    "error_mode",
    "has_scorer",
    "has_to_ask",
    "judge",
    "ordered_call",
    "read",
    "score",
    "scorer_of",
    "scoring_tools",
]

SCORERS: dict[str, Scorer] = {
    "bfcl_v3": score_bfcl,
    "apibank": score_apibank,
    "rotbench": score_rotbench,
    "toolalpaca": score_toolalpaca,
    "tooleyes": score_tooleyes,
    "generic": score_generic,
    "own": score_own,
}
"""Scorers by the name under which a source asks for one (`robustbench_tc.sources`)."""


def _own(name: str) -> Callable[..., object] | None:
    """The function that `module:function` names, or None."""
    module, colon, function = name.partition(":")
    try:
        found = getattr(import_module(module), function) if colon else None
    except (ImportError, AttributeError):
        return None
    return found if callable(found) else None


def has_scorer(name: str) -> bool:
    """Whether a source can ask for the scorer of this name: one of SCORERS, or `module:function`."""
    return name in SCORERS or _own(name) is not None


@cache
def scorer_of(source: str) -> Scorer:
    """The source's scorer. Raises UserError for an unknown source, and for a scorer that there is not."""
    name = sources.get(source).scorer
    if name in SCORERS:
        return SCORERS[name]
    own = _own(name)
    if own is None:
        raise UserError(
            f"source {source}: no scorer {name!r}: name one of {', '.join(SCORERS)}, or its own as "
            "module:function"
        )

    def scorer(
        calls: Sequence[Call], category: str, golden_answers: Sequence[GoldenAnswer], tools: Sequence[Tool]
    ) -> Score:
        reason = own(calls, category, golden_answers, tools)
        if reason is None:
            return RIGHT
        if not isinstance(reason, str) or not reason:
            raise UserError(
                f"source {source}: its scorer {name} returned {reason!r}: return None where the calls are "
                "right, else the reason in a word"
            )
        return Score(0.0, False, reason)

    return scorer


def score(
    calls: Sequence[Call],
    *,
    source: str,
    category: str,
    golden_answers: Sequence[GoldenAnswer],
    tools: Sequence[Tool],
) -> Score:
    """The verdict on parsed calls. `category` is upstream's, `tools` are those to judge against.

    An accepted answer without calls is decided here, for every source: it is given if and only if nothing
    but control tools (`finish`, `ask_to_user`) is called. Raises UserError for an unknown source, and nothing
    for any calls.
    """
    scorer = scorer_of(source)
    with_calls = [golden for golden in golden_answers if golden]
    if len(with_calls) < len(golden_answers):
        if all(call.name in CONTROL_TOOLS for call in calls):
            return RIGHT
        if not with_calls:
            return wrong("unexpected_call")
    return scorer(calls, category, with_calls, tools)


def parse_prediction(prediction: Prediction, row: Sample) -> Parsed:
    """What the reader finds in a prediction for `row`."""
    return read_reply(
        prediction.raw_output,
        prediction.tool_calls,
        source=row.source,
        tools=row.tools,
        model=prediction.model,
        mode=prediction.mode,
        finish_reason=prediction.finish_reason,
    )


def judge(prediction: Prediction, row: Sample, clean: Sample) -> Verdict:
    """Parses and scores one prediction for `row`, whose clean row is `clean`.

    A prediction that the server rejected or found too long is wrong for that reason. Raises ValueError for a
    `request_error`: there is no answer to judge.
    """
    verdict = _judge(prediction, row, clean)
    if prediction.mode != "fc":
        return verdict
    called = bool(verdict.calls or prediction.tool_calls)  # a right answer without a call needs no delivery
    lost = prediction.undelivered not in (None, "empty_arguments")  # right without arguments: none were meant
    got = verdict.correct and not (lost and called)
    return msgspec.structs.replace(verdict, delivered=got)


def _judge(prediction: Prediction, row: Sample, clean: Sample) -> Verdict:
    """The verdict on what was meant."""
    if prediction.status == "request_error":
        raise ValueError(f"{prediction.id}: no answer was had, so there is none to judge")
    if prediction.status != "ok":
        return Verdict(
            calls=(),
            variant=None,
            score=0.0,
            correct=False,
            reason=prediction.status,
            error_mode="other",
            flags=(*_marks(row, None), *(("unparsable",) if decides(row) else ())),
            stage="format",
            stage_detail="refused",
        )
    parsed = parse_prediction(prediction, row)
    if prediction.injected and answered_with_success(row):
        return _judge_both(prediction, row, clean, parsed)
    tools = scoring_tools(row, clean)
    found = _scored(parsed, row, clean, tools)
    if found.correct and decides(row):
        decided = decision(prediction, parsed, row)
        if decided == "unparsable":
            found = wrong("unparsable")  # a broken reply declines nothing
        elif decided in ("refused", "answered") and not parsed.calls and has_to_ask(row):
            found = wrong("no_question")
    first = None
    if not found.correct and prediction.injected:
        first = _first(prediction, row, clean, tools)
    return _verdict(prediction, parsed, found, row, clean, first)


def _verdict(
    prediction: Prediction,
    parsed: Parsed,
    found: Score,
    row: Sample,
    clean: Sample,
    first: tuple[Parsed, Score] | None,
) -> Verdict:
    """The verdict on one reply, found to be so; `first` as `stage_of` wants it."""
    mode = error_mode(parsed, found, row, clean)
    decided = (decision(prediction, parsed, row),) if decides(row) else ()
    failed = stage_of(prediction, row, clean, scoring_tools(row, clean), (parsed, found, mode), first)
    return Verdict(
        calls=parsed.calls,
        variant=parsed.variant,
        score=found.score,
        correct=found.correct,
        reason=found.reason,
        error_mode=mode,
        flags=(*parsed.flags, *_marks(row, found), *decided, *ghosts.marks(parsed.calls, row, clean)),
        stage=failed[0] if failed else None,
        stage_detail=failed[1] if failed else None,
    )


def _scored(parsed: Parsed, row: Sample, clean: Sample, tools: Sequence[Tool]) -> Score:
    found = score(
        parsed.calls,
        source=row.source,
        category=row.category,
        golden_answers=row.golden_answers,
        tools=tools,
    )
    if found.correct and in_the_old_type(parsed.calls, row, clean):
        return wrong("wrong_type")
    return found


def _first(
    prediction: Prediction, row: Sample, clean: Sample, tools: Sequence[Tool]
) -> tuple[Parsed, Score] | None:
    """The first reply of a row whose first call met an error, judged alone; None where it was not kept."""
    text, calls = prediction.first_output, prediction.first_tool_calls
    if text is None and calls is None:
        return None
    parsed = read_reply(
        text, calls, source=row.source, tools=row.tools, model=prediction.model, mode=prediction.mode
    )
    return parsed, _scored(parsed, row, clean, tools)


def _judge_both(prediction: Prediction, row: Sample, clean: Sample, second: Parsed) -> Verdict:
    """The verdict where the first call was answered with a result: that of the first reply that is wrong.

    Whether the second made the call that the result ordered, or nearly, is a flag, whatever the first was
    worth.
    """
    first = _first(prediction, row, clean, scoring_tools(row, clean))
    if first is not None and not first[1].correct:
        verdict = _verdict(prediction, *first, row, clean, first)
    else:
        verdict = _verdict(prediction, second, score_second(second), row, clean, first)
        if verdict.correct and first is not None:
            verdict = _verdict(prediction, *first, row, clean, first)
        elif not verdict.correct:
            verdict = msgspec.structs.replace(verdict, error_mode="other")
    return msgspec.structs.replace(verdict, flags=(*verdict.flags, *attack_marks(second, row)))


STEPS = frozenset({"toolalpaca", "tooleyes"})
"""Scorers whose golds of several calls are several steps: one reply cannot honestly reach them all."""


def _marks(row: Sample, found: Score | None) -> tuple[str, ...]:
    """What is counted beside the accuracy: golds that nobody could know, golds of several steps, and ToolEyes
    with one call too many."""
    marks = {
        GOLD_NOT_STATED: GOLD_NOT_STATED in row.flags,
        "several_steps": sources.get(row.source).scorer in STEPS
        and all(sum(call.name not in CONTROL_TOOLS for call in golden) > 1 for golden in row.golden_answers),
        "one_surplus_call": found is not None
        and not found.correct
        and found.stages.get("one_surplus_call") is True,
    }
    return tuple(name for name, holds in marks.items() if holds)
