"""BFCL V3 (Patil et al., ICML 2025): the single-turn Python categories, questions and possible answers.

Questions and answers are JSON Lines with the same ids, in two files. A golden parameter maps to the list of
its accepted values, in which "" means that it may be left out: that is also our form, so the lists stay as
they are (in a nested object too, each key again has a list).
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from robustbench_tc.eval.prompts import json_schema
from robustbench_tc.schema import Call, Json, Message, Sample, Tool, dumps
from robustbench_tc.taxonomy import Rows

from .base import Item, Reader, Unusable, clean_row, item, json_lines

SOURCE = "bfcl_v3"
FOLDER = "bfcl/berkeley-function-call-leaderboard/bfcl_eval/data"
CATEGORIES = (
    "simple",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
)
"""Java and JavaScript are outside the benchmark: their golden values are source text of those languages."""

NO_CALL_CATEGORIES = ("irrelevance", "live_irrelevance")
"""In these no listed function serves the request. `live_relevance` (18 records, in which some call is due) is
not read: it has no possible answers upstream, so no call could be held to be right."""

LONGEST = 10_000
"""Characters of a message, at most, in a record of these pools."""

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Characters that no terminal shows: what some users of the live pool typed by mistake."""

WRONG_GOLD = {
    "live_simple_106-63-0": "A required array has an empty list of accepted values.",
    "live_simple_112-68-0": "A required array has an empty list of accepted values.",
    "live_multiple_862-181-3": "The golden call has a parameter that the tool does not declare.",
    "live_multiple_964-207-0": "The golden call lacks a parameter that the tool requires.",
}
"""Upstream ids whose golden answer upstream's own checker can never accept."""


class Function(msgspec.Struct):
    """A tool as BFCL writes it: types in Python's words, which `normalise` turns into JSON Schema."""

    name: str
    parameters: dict[str, Json]
    description: str = ""


class Question(msgspec.Struct):
    """A line of a category's file; `question` is turns of messages, of which these categories have one."""

    id: str
    question: list[list[Message]]
    function: list[Function]


class PossibleAnswer(msgspec.Struct):
    """The matching line of `possible_answer`: per call its name, and per parameter the accepted values."""

    id: str
    ground_truth: list[dict[str, dict[str, list[Json]]]]


def answers_of(file: str) -> str:
    """The file of possible answers of a category file."""
    folder, _, name = file.rpartition("/")
    return f"{folder}/possible_answer/{name}"


def read_file(root: Path, file: str) -> Iterator[tuple[str, Item]]:
    """The records of one category file; its answers lie in `possible_answer/` beside it."""
    stem = Path(file).stem
    answers = {answer.id: answer for _, answer in json_lines(root, answers_of(file), PossibleAnswer)}
    for index, question in json_lines(root, file, Question):
        clean_id = f"{SOURCE}__{stem}__{question.id}"
        make = partial(_sample, question, answers[question.id], clean_id, stem.removeprefix("BFCL_v3_"))
        yield str(index), item(SOURCE, file, str(index), clean_id, make)


def _sample(question: Question, answer: PossibleAnswer, clean_id: str, category: str) -> Sample:
    if question.id in WRONG_GOLD:
        raise Unusable("known_wrong_gold", WRONG_GOLD[question.id])
    golden = tuple(
        Call(name, parameters) for call in answer.ground_truth for name, parameters in call.items()
    )
    return clean_row(SOURCE, clean_id, category, question.question[0], _tools(question), [golden])


def no_call_records(root: Path, category: str) -> Iterator[Sample | str]:
    """The records of a pool in which no call is right, in order: a sample, or why it is left out."""
    file, seen = no_call_file(category), set[str]()
    for _, question in json_lines(root, file, Question):
        messages, tools = tuple(question.question[0]), _tools(question)
        if reason := _unfit(messages, tools):
            yield reason
            continue
        shown = dumps((messages, tools))
        if shown in seen:
            yield "identical_row"
            continue
        seen.add(shown)
        clean_id = f"{SOURCE}__{Path(file).stem}__{question.id}"
        yield Sample(
            id=f"{clean_id}::clean",
            clean_id=clean_id,
            type_code="clean",
            source=SOURCE,
            category=category,
            messages=messages,
            tools=tools,
            golden_answers=((),),
            output_format="python_calls",
            gold_tool_index=None,
        )


def _unfit(messages: tuple[Message, ...], tools: tuple[Tool, ...]) -> str:
    """Why a record makes no row, in a word; "" where it does. The gate has the same bounds."""
    if not tools:
        return "no_tool"
    if any(len(message.content) > LONGEST for message in messages):
        return "too_long"
    return "control_characters" if any(CONTROL.search(message.content) for message in messages) else ""


def no_call_file(category: str) -> str:
    """The file of such a pool, under the sources root."""
    return f"{FOLDER}/BFCL_v3_{category}.json"


def _tools(question: Question) -> tuple[Tool, ...]:
    return tuple(Tool(f.name, f.description, json_schema.normalise(f.parameters)) for f in question.function)


READER = Reader(
    name=SOURCE,
    order=1,
    files=tuple(f"{FOLDER}/BFCL_v3_{category}.json" for category in CATEGORIES),
    read_file=read_file,
    answers_of=answers_of,
    output_format="python_calls",
    scorer="bfcl_v3",
    one_call=False,
    single_gold_tool=True,
    rows=Rows(paper=32, bundled=16),
    paper=True,
)
