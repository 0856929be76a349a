"""Cases as clean rows, one for each turn, with the gold history of the turns before it."""

from collections.abc import Iterator, Mapping, Sequence

from robustbench_tc import sources
from robustbench_tc.builders.sources import KnownIssue, Pool
from robustbench_tc.eval.prompts.history import as_text
from robustbench_tc.eval.score.category import Category
from robustbench_tc.eval.score.matchers import example
from robustbench_tc.own.cases import NO_RESULT, Answer, Case, CaseFile, CaseTurn, ChatMessage
from robustbench_tc.schema import OMIT, Call, GoldenAnswer, Json, Message, Sample, Tool, dumps, loads

DONE = "Done."
"""What the gold history says at the end of a turn."""

ASKED = "Could you tell me more about what you need?"
"""What it says instead where asking is right."""

_WHY = {
    "dropped": "This case was proposed, and a review dropped it.",
    "not_buildable": "This case was proposed, and it cannot be built as it stands.",
}


def pool(cases: CaseFile) -> Pool:
    """The clean rows of all cases, in their order."""
    tools = tuple(one.tool for one in cases.tools)
    samples = tuple(row for case in cases.cases for row in rows(case, tools))
    # Proposed cases that make no rows have their reason alone, as what they say is not looked at.
    issues = tuple(
        KnownIssue(
            source=sources.OWN,
            file=cases.files[0].name if cases.files else "",
            record=str(one.line),
            clean_id=f"{sources.OWN}__{one.id}",
            reason=one.reason,
            detail=_WHY[one.reason],
        )
        for one in cases.left_out
    )
    return Pool(samples, issues)


def rows(case: Case, tools: tuple[Tool, ...]) -> Iterator[Sample]:
    """One row a turn."""
    history: list[Message] = []
    for number, turn in enumerate(case.turns, 1):
        history += _messages(turn.messages)
        own_id = clean_id(case, number)
        first = turn.answers[0]
        yield Sample(
            id=f"{own_id}::clean",
            clean_id=own_id,
            type_code="clean",
            source=sources.OWN,
            category=Category(
                kinds=tuple(dict.fromkeys(answer.kind for answer in turn.answers)),
                ordered=turn.ordered,
                extra=turn.extra,
                turn=len(case.turns) > 1,
            ).text,
            messages=tuple(history),
            tools=tools,
            golden_answers=tuple(golden(answer) for answer in turn.answers),
            output_format=sources.get(sources.OWN).output_format,
            gold_tool_index=first.places[0] if first.places else None,
        )
        history += _gold_history(first, turn, tools)


def clean_id(case: Case, number: int) -> str:
    """The clean id of a turn, counted from 1."""
    turn = f".{number}" if len(case.turns) > 1 else ""
    return f"{sources.OWN}__{case.id}{turn}"


def golden(answer: Answer) -> GoldenAnswer:
    """An answer as the row contract wants it: for each parameter a list with the one thing expected."""
    return tuple(
        # An empty text stands in a matcher: alone it is the row contract's mark of what may be left out.
        Call(
            call.name, {key: [{"exact": one} if one == OMIT else one] for key, one in call.parameters.items()}
        )
        for call in answer.calls
    )


def _messages(messages: Sequence[ChatMessage]) -> Iterator[Message]:
    """A turn's chat messages as text: calls in the canonical form of the rows."""
    for message in messages:
        content = message.get("content") or ""
        if calls := message.get("tool_calls"):
            functions = [call["function"] for call in calls]
            written = as_text([Call(one["name"], loads(one["arguments"])) for one in functions])
            content = f"{content}\n{written}" if content else written
        yield Message(message["role"], content)


def _gold_history(answer: Answer, turn: CaseTurn, tools: Sequence[Tool]) -> Iterator[Message]:
    """What a right agent leaves of a turn: its calls, a result for each, and a closing word."""
    if answer.calls:
        places = zip(answer.calls, answer.places, strict=True)
        made = [
            Call(call.name, {key: example(one, tools[at].properties.get(key, {})) for key, one in given})
            for call, at in places
            for given in [call.parameters.items()]
        ]
        yield Message("assistant", as_text(made))
        used: dict[str, int] = {}
        for call in answer.calls:
            yield Message("tool", result(turn.results, call.name, used.get(call.name, 0)))
            used[call.name] = used.get(call.name, 0) + 1
    yield Message("assistant", ASKED if answer.kind == "ask" else DONE)


def result(results: Mapping[str, tuple[Json, ...]], name: str, number: int) -> str:
    """What a tool answers to its `number`th call, from 0: the last result repeats."""
    stated = results.get(name, ())
    found = stated[min(number, len(stated) - 1)] if stated else NO_RESULT
    return found if isinstance(found, str) else dumps(found)
