"""How often a row is asked: once; again after a call that its text answers; and, where a case of one's own
wants its calls in order, again after each reply with calls until there are as many as gold has.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from robustbench_tc import sources
from robustbench_tc.eval.score.category import read_category
from robustbench_tc.own.cases import NO_RESULT
from robustbench_tc.schema import Call, Json, Sample, dumps

from . import wire
from .defend.base import Said, Scene, Turn
from .parse import Parsed
from .read_reply import read_reply
from .record import Answer, Settings

Results = Mapping[str, Sequence[Json]]
"""By tool name: what it answers, used in turn, the last repeats."""


def in_order(row: Sample) -> int:
    """As many calls as are waited for, over several replies; 0 where only one reply counts."""
    if row.source != sources.OWN or not read_category(row.category).ordered:
        return 0
    return max((len(golden) for golden in row.golden_answers), default=0)


def most(row: Sample) -> int:
    """The most passes that a row can have."""
    return wire.answered(row) + max(1, in_order(row))


def goes_on(row: Sample, settings: Settings, answers: Sequence[Answer]) -> bool:
    """Whether the row is asked again after these answers, of which there is one at least."""
    last = answers[-1]
    if last.status != "ok":
        return False
    if len(answers) <= wire.answered(row):
        return bool(last.has_call)
    wanted = in_order(row)
    if not wanted or not calls_of(row, settings, last):
        return False
    return sum(len(calls_of(row, settings, one)) for one in answers[wire.answered(row) :]) < wanted


def parsed(row: Sample, settings: Settings, answer: Answer) -> Parsed:
    """One answer, as the run's replies are read."""
    return read_reply(
        row,
        answer.text,
        answer.tool_calls,
        model=settings.model,
        mode=settings.mode,
        finish_reason=answer.finish_reason,
        reasoning=answer.reasoning,
    )


def calls_of(row: Sample, settings: Settings, answer: Answer) -> tuple[Call, ...]:
    """The calls of one answer."""
    return parsed(row, settings, answer).calls


def scene(
    row: Sample,
    settings: Settings,
    before: Sequence[Said],
    results: Sequence[Sequence[str] | None] | None = None,
) -> Scene:
    """Where a row stands after these replies. `results` as of `result_texts`; without them what was answered
    to calls is left open, which only a request needs to know."""
    if results is None:
        results = [None if number < wire.answered(row) else () for number in range(len(before))]
    turns = tuple(
        Turn(said, None if texts is None else tuple(texts))
        for said, texts in zip(before, results, strict=True)
    )
    return Scene(row, row, turns, lambda row, answer: calls_of(row, settings, answer))


def native_calls(row: Sample, settings: Settings, answers: Sequence[Answer]) -> Json:
    """The calls of several replies as those of one, in the form of native calls."""
    found: list[dict[str, Json]] = []
    for answer in answers:
        if answer.tool_calls:
            found += answer.tool_calls
            continue
        for call in calls_of(row, settings, answer):
            found.append({"id": f"call_{len(found)}", "name": call.name, "arguments": dumps(call.parameters)})
    return found or None


def result_texts(
    row: Sample, settings: Settings, answers: Sequence[Answer], results: Results
) -> list[list[str] | None]:
    """For each answer what its calls are answered with, in their order; None where the row's own text is."""
    used: Counter[str] = Counter()
    found: list[list[str] | None] = [None] * min(len(answers), wire.answered(row))
    for answer in answers[len(found) :]:
        if answer.tool_calls:
            names = [str(call["name"]) for call in answer.tool_calls]
        else:
            names = [call.name for call in calls_of(row, settings, answer)]
        texts = []
        for name in names:
            texts.append(result_text(results, name, used[name]))
            used[name] += 1
        found.append(texts)
    return found


def result_text(results: Results, name: str, number: int) -> str:
    """What a tool answers to its `number`th call, from 0: results in turn, the last repeats."""
    stated = results.get(name, ())
    found = stated[min(number, len(stated) - 1)] if stated else NO_RESULT
    return found if isinstance(found, str) else dumps(found)
