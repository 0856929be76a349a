"""API-Bank (Li et al., EMNLP 2023), in the form that ToolRL processed it to: levels 1 to 3.

One user message holds the dialogue so far; the system text holds the tools, in two heading forms, with the
parameters as a Python literal. The prompt's own numbered steps (`1. **Think:** …`) follow the tools and are
none. Upstream marks no parameter as required.
"""

import ast
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from robustbench_tc.eval.prompts import json_schema
from robustbench_tc.schema import Call, Json, Message, Sample, Tool
from robustbench_tc.taxonomy import Rows

from .base import Item, Reader, clean_row, item, json_list

SOURCE = "apibank"
FOLDER = "toolrl/benchmarks/API-Bank"

_SECTION = re.compile(r"\*\*Available Tools\*\*\n[^\n]*\n(.*?)\n+\*\*Steps for Each Turn\*\*", re.DOTALL)
_ENTRY = re.compile(r"^(?=\d+\. )", re.MULTILINE)
_TOOL = re.compile(
    r"\d+\. (?:Name: (?P<name>[^\n]+)\nDescription: (?P<description>.*)"
    r"|(?P<name3>[^\n:]+): (?P<description3>.*))\nParameters: (?P<parameters>\{.*\})",
    re.DOTALL,
)


class Record(msgspec.Struct):
    """A record of ToolRL's copy of API-Bank; the system prompt holds the tools as text."""

    system: str
    user: str
    answer: list[Call] | Call
    """A list of one call in levels 1 and 3, the bare call in level 2."""


def read_file(root: Path, file: str) -> Iterator[tuple[str, Item]]:
    """The records of one level; the clean id holds the level and the record's index from 0."""
    level = "level" + file.rpartition("/level-")[2].removesuffix("-api_processed.json")
    for index, record in json_list(root, file, Record):
        clean_id = f"{SOURCE}__{level}_{index}"
        make = partial(_sample, record, clean_id, level)
        yield str(index), item(SOURCE, file, str(index), clean_id, make)


def _sample(record: Record, clean_id: str, level: str) -> Sample:
    calls = record.answer if isinstance(record.answer, list) else [record.answer]
    golden = tuple(Call(c.name, {key: [value] for key, value in c.parameters.items()}) for c in calls)
    return clean_row(
        SOURCE, clean_id, level, [Message("user", record.user)], listed_tools(record.system), [golden]
    )


def listed_tools(system: str) -> tuple[Tool, ...]:
    """The tools of a system text, in order."""
    (section,) = _SECTION.findall(system)
    entries = (_TOOL.fullmatch(entry.strip()) for entry in _ENTRY.split(section))
    return tuple(
        Tool(
            name=found["name"] or found["name3"],
            description=(found["description"] or found["description3"] or "").strip(),
            parameters=_schema(found["parameters"]),
        )
        for found in entries
        if found is not None  # what stands before the first
    )


def _schema(literal: str) -> dict[str, Json]:
    """`{'token': {'type': 'str', 'description': '…'}}` as a JSON Schema."""
    declared: dict[str, dict[str, Json]] = ast.literal_eval(literal)
    return {
        "type": "object",
        "properties": {name: json_schema.normalise(schema) for name, schema in declared.items()},
    }


READER = Reader(
    name=SOURCE,
    order=2,
    files=tuple(f"{FOLDER}/level-{level}-api_processed.json" for level in (1, 2, 3)),
    read_file=read_file,
    output_format="tool_call_tags",
    scorer="apibank",
    one_call=True,
    single_gold_tool=True,
    rows=Rows(paper=74, bundled=17),
    shown_last=True,  # long dialogues that hold account tokens
    paper=True,
)
