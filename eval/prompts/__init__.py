"""Prompt mode: the tool list and the wanted output format as a system message, in our own words.

One text per output format (`formats/*.txt`), one sentence per source on how many calls are wanted. A change
of any of them changes `PROMPT_VERSION`, and with it the settings of a run.
"""

import hashlib
from functools import cache
from importlib.resources import files
from string import Template

import msgspec

from robustbench_tc import sources
from robustbench_tc.errors import unknown
from robustbench_tc.schema import Message, Sample, Tool, dumps
from robustbench_tc.sources import Source

ONE_CALL = "Make exactly one call."
AS_MANY = "If the request needs several calls, write all of them, in order, in the same form."

TOOL_RESULT = "Tool result:\n"
"""The label under which prompt mode hands an injected error back (benchmark.md §6)."""


@cache
def _formats() -> dict[str, str]:
    folder = files(__package__).joinpath("formats")
    return {path.name.removesuffix(".txt"): path.read_text("utf-8") for path in folder.iterdir()}


@cache
def prompt_version() -> str:
    """`1-` and 8 hex digits over every text of this room: two runs of equal version asked in equal words."""
    counts = {one.name: _how_many(one) for one in sources.sources()}
    texts = (sorted(_formats().items()), counts, TOOL_RESULT)
    return "1-" + hashlib.sha256(dumps(texts).encode()).hexdigest()[:8]


def system_text(output_format: str, source: str, tools: tuple[Tool, ...]) -> str:
    """The system message: how to write a call, how many, and the registry, one JSON object per line.

    Names, order and duplicates of the registry are kept. Raises UserError for an unknown format or source.
    """
    formats = _formats()
    if output_format not in formats:
        raise unknown("output format", output_format, formats)
    count = _how_many(sources.get(source))
    listed = "\n".join(dumps(tool) for tool in tools)
    return Template(formats[output_format]).substitute(count=count, tools=listed).strip()


def _how_many(source: Source) -> str:
    """How many calls the source's prompts ask for (RoTBench and API-Bank accept one only)."""
    return ONE_CALL if source.one_call else AS_MANY


def messages(row: Sample) -> list[dict[str, str]]:
    """What prompt mode sends: one system message (ours, then the sample's own), then the conversation."""
    own = [m.content for m in row.messages if m.role == "system"]
    system = "\n\n".join([system_text(row.output_format, row.source, row.tools), *own])
    rest = [m for m in row.messages if m.role != "system"]
    return [_plain(Message("system", system)), *map(_plain, rest)]


def _plain(message: Message) -> dict[str, str]:
    plain: dict[str, str] = msgspec.to_builtins(message)
    return plain
