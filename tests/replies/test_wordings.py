"""Bare calls of the time-out rows in every wording of both grammars: none counts, or each does."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from robustbench_tc.eval import inputs
from robustbench_tc.eval.parse import parse
from robustbench_tc.eval.prompts.calls import python_calls
from robustbench_tc.eval.score import score
from robustbench_tc.eval.score.golden import concrete
from robustbench_tc.schema import Call, Sample, dumps

from .wordings import MADE, PREAMBLES, SPOKEN

ROWS = 199
"""Each has a bare form that is right alone."""

PREAMBLES_RIGHT = 0.99
LONGEST_QUERY = 700
"""Nobody repeats a longer one, or a whole dialogue."""


def _bare(number: int, calls: Sequence[Call]) -> str:
    """Calls in one of three bare forms."""
    if number % 3 == 0:
        return python_calls(calls)
    if number % 3 == 1 and len(calls) == 1:
        return python_calls(calls)[1:-1]
    objects = [dumps({"name": call.name, "arguments": call.parameters}) for call in calls]
    return objects[0] if len(objects) == 1 else f"[{', '.join(objects)}]"


def written(production: str, number: int, calls: Sequence[Call], row: Sample) -> str:
    """A production's text for a row's calls."""
    if "{object}" in production:
        inner = [dumps({"name": call.name, "arguments": call.parameters})[1:-1] for call in calls]
        return "\n".join(production.replace("{object}", one) for one in inner)
    tool = next((tool for tool in row.tools if tool.name == calls[0].name), row.tools[0])
    keys = ", ".join(f"{key}: str" for key in tool.properties or {"text": {}})
    entry = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return (
        production.replace("{call}", _bare(number, calls))
        .replace("{signature}", f"{tool.name}({keys})")
        .replace("{registry}", json.dumps([entry]))
    )


def is_right(text: str, row: Sample) -> bool:
    return score(
        parse(text, source=row.source, tools=row.tools).calls,
        source=row.source,
        category=row.category,
        golden_answers=row.golden_answers,
        tools=row.tools,
    ).correct


@pytest.fixture(scope="module")
def rows(paper: Path) -> list[tuple[int, Sample, tuple[Call, ...]]]:
    """The rows of `transient_timeout` whose calls are right alone in a bare form."""
    of_type = [row for row in inputs.load_samples(str(paper)).rows if row.type_code == "transient_timeout"]
    found = [
        (number, row, concrete(row.golden_answers[0], row.tools, source=row.source))
        for number, row in enumerate(of_type)
    ]
    return [(number, row, calls) for number, row, calls in found if is_right(_bare(number, calls), row)]


def test_a_wording_that_only_speaks_of_the_call_is_right_in_no_row(
    rows: list[tuple[int, Sample, tuple[Call, ...]]],
) -> None:
    assert len(rows) == ROWS
    assert _missed(rows, SPOKEN, right=False) == {}


def test_a_wording_that_makes_the_call_is_right_in_every_row(
    rows: list[tuple[int, Sample, tuple[Call, ...]]],
) -> None:
    assert _missed(rows, MADE, right=True) == {}


def test_words_of_the_request_in_front_of_a_call_are_no_cue(
    rows: list[tuple[int, Sample, tuple[Call, ...]]],
) -> None:
    right = []
    for _, row, calls in rows:
        query = next(one.content for one in reversed(row.messages) if one.role == "user")
        if len(query) > LONGEST_QUERY or "<user>" in query:
            continue
        for form in range(3):
            call = _bare(form, calls)
            for preamble in PREAMBLES if is_right(call, row) else ():
                text = preamble.replace("{query}", query).replace("{call}", call)
                right.append(is_right(text, row))
    assert len(right) > 100 * len(PREAMBLES)
    assert sum(right) >= PREAMBLES_RIGHT * len(right)


def _missed(
    rows: list[tuple[int, Sample, tuple[Call, ...]]], grammar: dict[str, tuple[str, ...]], *, right: bool
) -> dict[str, int]:
    """The productions that some row reads otherwise, with the number of these rows; by day each is read in a
    quarter of them."""
    every = 1 if os.environ.get("RBTC_NIGHTLY") == "1" else 4
    productions = [one for of_name in grammar.values() for one in of_name]
    found = {
        production: sum(
            is_right(written(production, number, calls, row), row) != right
            for number, row, calls in rows[at % every :: every]
        )
        for at, production in enumerate(productions)
    }
    return {production: number for production, number in found.items() if number}
