"""The answer in the question: a text that names the gold tool where the clean row did not."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from robustbench_tc import taxonomy
from robustbench_tc.schema import Sample, Tool, dumps

from .leaves import Leaf, leaves

_IDENTIFIER = re.compile(r"[_.\d]|[a-z][A-Z]|\S\s+\S")
"""A name that nobody writes by chance; `search` is also a word."""

_HISTORY = re.compile(r"<tool_call>.*?</tool_call>\s*(?:<obs>.*?</obs>)?", re.DOTALL)
"""Calls that the dialogue has behind it."""


class Leak(NamedTuple):
    """A text that names the gold tool."""

    place: str
    text: str
    said: str


def leaked(row: Sample, clean: Sample | None) -> Iterator[Leak]:
    """Texts that name an accepted tool: of a clean row its messages, else whatever the type wrote.

    A perturbed text may name it as often as one of the clean row's; a type may state that its rows name the
    gold, which its unit checks word for word.
    """
    if taxonomy.known(row.type_code) and taxonomy.get(row.type_code).traits.get("names_the_gold"):
        return
    names = {
        call.name
        for sample in ((row,) if clean is None else (row, clean))
        for answer in sample.golden_answers
        for call in answer
        if _IDENTIFIER.search(call.name)
    }
    found = [(place, text, name) for place, text in _new(row, clean, names) for name in names if name in text]
    old = [] if clean is None or not found else [text for _, text in _new(clean, None, names)]
    old += (
        [] if clean is None or not found else [leaf.text for tool in clean.tools for leaf in _said_by(tool)]
    )
    for place, text, name in found:
        count = _count(name, text)
        if count > max((_count(name, other) for other in old if name in other), default=0):
            yield Leak(place, text, f"names the gold tool{'' if count == 1 else f' {count} times'}")


def _count(name: str, text: str) -> int:
    return len(re.findall(rf"(?<![\w.]){re.escape(name)}(?!\w)", text))


def _new(row: Sample, clean: Sample | None, names: set[str]) -> Iterator[tuple[str, str]]:
    """What messages say, and tools that the clean row lacks (none where the row is a clean one)."""
    for index, message in enumerate(row.messages):
        yield (
            f"messages/{index}",
            _HISTORY.sub(" ", message.content) if "<" in message.content else message.content,
        )
    for index, tool in enumerate(row.tools):
        if clean is not None and tool not in clean.tools:
            whole = dumps((tool.description, tool.parameters))
            if any(dumps(name)[1:-1] in whole for name in names):
                yield from ((f"tools/{index}", leaf.text) for leaf in _said_by(tool))


def _said_by(tool: Tool) -> Iterator[Leaf]:
    return leaves([tool.description, tool.parameters])
