"""A cases file as what a build is made of: clean rows, and the book of what rows have no column for.

Cases as clean rows, one for each turn, with the gold history of the turns before it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from robustbench_tc import sources
from robustbench_tc.builders.sources import KnownIssue, Pool
from robustbench_tc.errors import UserError
from robustbench_tc.eval.prompts.calls import tool_call_tags
from robustbench_tc.eval.score.category import Category
from robustbench_tc.eval.score.matchers import example
from robustbench_tc.eval.validate import self_check
from robustbench_tc.io import marker
from robustbench_tc.own.book import Book, File
from robustbench_tc.own.cases import NO_RESULT, Answer, Case, CaseFile, CaseTurn, ChatMessage
from robustbench_tc.own.cases_file import read_cases
from robustbench_tc.own.mcp_tools import Server, keep_tools, list_tools
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
            written = tool_call_tags([Call(one["name"], loads(one["arguments"])) for one in functions])
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
        yield Message("assistant", tool_call_tags(made))
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


BY_RULE = ("none", "realistic_typos=rule")
"""The generators of own cases, unless somebody is named: typing errors by rule, no other text."""


class OwnCases(NamedTuple):
    """The cases of a file and what they were read from."""

    pool: Pool
    book: Book


def read_own(cases: Path, server: Server | None, progress: Callable[[str], None]) -> OwnCases:
    """The cases, each golden answer checked. Raises UserError naming the case that cannot serve.

    `server`: its tools come after those of `tools:`, and are kept beside the cases (`keep_tools`).
    """
    read = _with_server(cases, server, progress)
    if not read.cases:
        raise UserError(
            f"{cases}: every case of it was dropped in its review, or cannot be built as it stands"
        )
    found = pool(read)
    for sample in found.samples:
        if reason := self_check(sample):
            case = sample.clean_id.partition("__")[2]
            line = next(one.line for one in read.cases if one.id in (case, case.rpartition(".")[0]))
            raise UserError(f"{cases}:{line}: case {case}: its golden answer is not right: {reason}")
    files = [File(name=path.name, sha256=marker.sha256(path)) for path in read.files]
    return OwnCases(found, book(read, files))


def book(cases: CaseFile, files: Sequence[File] = ()) -> Book:
    """What a dataset of these cases says beside its rows; `files`: what it was read from."""
    turns = [
        (clean_id(case, number), case, turn)
        for case in cases.cases
        for number, turn in enumerate(case.turns, 1)
    ]
    return Book(
        files=tuple(files),
        cases=len(cases.cases),
        turns=len(turns),
        read_only=tuple(dict.fromkeys(one.tool.name for one in cases.tools if one.read_only)),
        idempotent=tuple(dict.fromkeys(one.tool.name for one in cases.tools if one.idempotent)),
        results={own_id: dict(turn.results) for own_id, _, turn in turns if turn.results},
        unreviewed=tuple(own_id for own_id, case, _ in turns if not case.reviewed),
        notes=cases.notes,
    )


def _with_server(cases: Path, server: Server | None, progress: Callable[[str], None]) -> CaseFile:
    """The cases and their tools. What a server lists is kept beside the cases, as PREFIX.json."""
    progress(f"reading {cases.name}")
    if server is None:
        return read_cases(cases)
    progress(f"asking {server.title} for its tools")
    listed = list_tools(server)
    kept = cases.parent / f"{listed.prefix}.json"
    read = read_cases(cases, listed.tools(server.title))
    if kept in read.files:  # what it lists is what the file says
        return read
    keep_tools(kept, listed.json(), server.title)
    return msgspec.structs.replace(read, files=(*read.files, kept))
