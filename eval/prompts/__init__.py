"""Prompt mode: the tool list and the wanted output format as a system message, in our own words.

One text per output format (`formats/*.txt`), one sentence per source on how many calls are wanted. A change
of any of them changes `prompt_version()`, and with it the settings of a run.

Rows of types that leave it open to call nothing (`may_decline`) are asked without "exactly one call", and one
sentence, `MAY_DECLINE`, says in both modes what else is open. That wording has a version of its own, which is
part of the keys of their answers alone.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from string import Template
from typing import Protocol

import msgspec

from robustbench_tc import sources, taxonomy
from robustbench_tc.errors import unknown
from robustbench_tc.eval.prompts.calls import earlier_calls, render_calls
from robustbench_tc.schema import Message, Sample, Tool, dumps
from robustbench_tc.sources import Source

MAY_DECLINE = "If no listed tool fits or a value is missing, say so or ask."
"""Rows in which calling nothing can be right are asked with this sentence, and so are their counterparts."""

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
    """`2-` and 8 hex digits over every text of this room: two runs of equal version asked in equal words."""
    counts = {one.name: _how_many(one) for one in sources.sources()}
    texts = (sorted(_formats().items()), counts, TOOL_RESULT)
    return "2-" + hashlib.sha256(dumps(texts).encode()).hexdigest()[:8]


def wording(row: Sample) -> str | None:
    """The version of the open words, for a row that is asked in them; None for the others."""
    return open_version() if _is_open(row) else None


@cache
def open_version() -> str:
    """`open-1-` and 8 hex digits over what is said in other words where calling nothing is open."""
    texts = (MAY_DECLINE, {one.name: _how_many(one, is_open=True) for one in sources.sources()})
    return "open-1-" + hashlib.sha256(dumps(texts).encode()).hexdigest()[:8]


def _is_open(row: Sample) -> bool:
    return taxonomy.known(row.type_code) and taxonomy.get(row.type_code).may_decline


def own_messages(row: Sample) -> tuple[Message, ...]:
    """The row's messages; where calling nothing is open, one of them says so (rows may say it themselves)."""
    if not _is_open(row) or any(m.role == "system" and MAY_DECLINE in m.content for m in row.messages):
        return row.messages
    first, *rest = row.messages
    if first.role == "system":
        return (Message("system", f"{first.content}\n\n{MAY_DECLINE}"), *rest)
    return (Message("system", MAY_DECLINE), *row.messages)


def system_text(output_format: str, source: str, tools: tuple[Tool, ...], *, is_open: bool = False) -> str:
    """The system message: how to write a call, how many, and the registry, one JSON object per line.

    The registry stands under keys that no call has: under a call's own, small models copied an entry of it
    instead of making a call. Names, order and duplicates of the registry are kept. `is_open`: calling nothing
    is open. Raises UserError for an unknown format or source.
    """
    formats = _formats()
    if output_format not in formats:
        raise unknown("output format", output_format, formats)
    count = _how_many(sources.get(source), is_open=is_open)
    template = formats[output_format]
    if not count:
        template = template.replace(" $count", "").replace("$count\n\n", "")
    listed = "\n".join(
        dumps({"listed": tool.name, "about": tool.description, "takes": tool.parameters}) for tool in tools
    )
    return Template(template).substitute(count=count, tools=listed).strip()


def _how_many(source: Source, *, is_open: bool = False) -> str:
    """How many calls the source's prompts ask for (RoTBench and API-Bank accept one only); "" where none has
    to be made and the source takes one."""
    if source.one_call:
        return "" if is_open else ONE_CALL
    return AS_MANY


def messages(row: Sample) -> list[dict[str, str]]:
    """What prompt mode sends: one system message (ours, then the sample's own), then the conversation."""
    said = own_messages(row)
    ours = system_text(row.output_format, row.source, row.tools, is_open=_is_open(row))
    system = "\n\n".join([ours, *(m.content for m in said if m.role == "system")])
    rest = _with_results([m for m in said if m.role != "system"], row.output_format)
    return [_plain(Message("system", system)), *map(_plain, rest)]


class Prompts(Protocol):
    """The words in which prompt mode asks."""

    @property
    def version(self) -> str:
        """Equal for two runs that asked in equal words."""

    def messages(self, row: Sample) -> list[dict[str, str]]:
        """A row's first request."""

    def result(self, text: str) -> str:
        """The user turn that hands back what the calls of a reply are answered with."""

    def output_format(self, row: Sample) -> str:
        """How the reply's calls are to be written."""


class _Ours:
    """The benchmark's own words, the texts of this room."""

    @property
    def version(self) -> str:
        return prompt_version()

    def messages(self, row: Sample) -> list[dict[str, str]]:
        return messages(row)

    def result(self, text: str) -> str:
        return TOOL_RESULT + text

    def output_format(self, row: Sample) -> str:
        return row.output_format


OURS: Prompts = _Ours()


def _with_results(said: Sequence[Message], output_format: str) -> list[Message]:
    """Calls of earlier turns in the row's format, and their results as one turn of the user: a message of
    role tool answers a native call only."""
    found: list[Message] = []
    for role, group in groupby(said, key=lambda message: message.role):
        texts = [message.content for message in group]
        if role == "tool":
            found.append(Message("user", TOOL_RESULT + "\n".join(texts)))
        else:
            found += [Message(role, _called(Message(role, text), output_format)) for text in texts]
    return found


def _called(message: Message, output_format: str) -> str:
    """A message's text, with the calls at its end written in the format."""
    earlier = earlier_calls(message)
    if earlier is None or message.role != "assistant":
        return message.content
    text, calls = earlier
    written = render_calls(calls, output_format)
    if not text or output_format == "python_calls":  # whose prompt asks for the calls and nothing else
        return written
    if output_format == "react":
        written = written.removeprefix(f"Thought: I use {calls[0].name}.\n")
        return f"Thought: {text}\n{written}"
    return f"{text}\n{written}"


def _plain(message: Message) -> dict[str, str]:
    plain: dict[str, str] = msgspec.to_builtins(message)
    return plain
