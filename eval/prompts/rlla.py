"""ToolRL's form of a prompt: a model trained on its rows is asked in the words that it was trained in.

The words before and after the registry are ToolRL's; they are no part of this package. They are read from
rows of the user's: training data of `rbtc build toolrl-dr`, or ToolRL's own parquet files. The registry and
the dialogue are written as the training data has them (`rlla_form`).
"""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from robustbench_tc.errors import UserError
from robustbench_tc.eval.prompts.calls import earlier_calls, tool_call_tags
from robustbench_tc.eval.prompts.rlla_form import (
    CALL_THOUGHT,
    HISTORY,
    REPLY_THOUGHT,
    Registry,
    observation,
    parse_system,
    system_text,
)
from robustbench_tc.io import parquet
from robustbench_tc.io.resolve import resolve_dataset
from robustbench_tc.schema import Json, Message, Sample, Tool, dumps, loads

from . import own_messages

VERSION = "rlla-1"
"""Changes with the way in which dialogues and tools are written here."""

MAX_SYSTEM = 4_000_000
"""Characters of a row's system text."""

_PLACES = ("*.parquet", "*/*.parquet", "*/*/*.parquet", "*/*/*/*.parquet")
"""Of a build, of ToolRL's `dataset`, and of a folder with all sources."""


class RllaPrompts(NamedTuple):
    """`prompts.Prompts` in ToolRL's form."""

    head: str
    """ToolRL's words before the registry, to the line break in front of the first tool."""
    tail: str

    @property
    def version(self) -> str:
        """`rlla-1-` and 8 hex digits over ToolRL's words."""
        return f"{VERSION}-{hashlib.sha256(dumps((self.head, self.tail)).encode()).hexdigest()[:8]}"

    def messages(self, row: Sample) -> list[dict[str, str]]:
        """System text and dialogue. System messages of the row's own stand behind ToolRL's."""
        said = own_messages(row)
        system = [self.system(row.tools), *(m.content for m in said if m.role == "system")]
        return [
            {"role": "system", "content": "\n\n".join(system)},
            {"role": "user", "content": dialogue([m for m in said if m.role != "system"])},
        ]

    def system(self, tools: Sequence[Tool]) -> str:
        """ToolRL's words with the tools in their form."""
        return system_text(Registry(self.head, (), self.tail, {}), tools)

    def result(self, text: str) -> str:
        """As the training data and the retry recipe have a tool's answer."""
        return observation(text)

    def output_format(self, row: Sample) -> str:
        """One JSON object per line between call tags, whatever the row's source asks for."""
        return "tool_call_tags"


def dialogue(said: Sequence[Message]) -> str:
    """The user text: ToolRL's record of a dialogue. A message that is one already stays as it is."""
    if len(said) == 1 and said[0].content.startswith(HISTORY):
        return said[0].content
    blocks: list[str] = []
    called: list[str] = []
    for role, group in groupby(said, key=lambda message: message.role):
        texts = [message.content for message in group]
        if role == "user":
            blocks += [f"<user> {text.removeprefix(HISTORY)} </user>" for text in texts]
        elif role == "tool":
            answered = observation(_results(called, texts))
            blocks = [*blocks[:-1], f"{blocks[-1]}\n{answered}"] if blocks else [answered]
        else:
            for text in texts:
                block, called = _reply(text)
                blocks.append(block)
    return HISTORY + "\n\n".join(blocks)


def _reply(text: str) -> tuple[str, list[str]]:
    """An earlier turn of the assistant with the thought that training has there, and the names it calls."""
    found = earlier_calls(Message("assistant", text))
    if found is None:
        return f"{REPLY_THOUGHT}\n<response> {text} </response>", []
    before, calls = found
    parts = [CALL_THOUGHT, tool_call_tags(calls)]
    if before.strip():
        parts.append(f"<response> {before.strip()} </response>")
    return "\n".join(parts), [call.name for call in calls]


def _results(names: Sequence[str], texts: Sequence[str]) -> str:
    """Results with the names of their tools, as training has them; without names where they do not match."""
    if len(names) != len(texts):
        return "\n".join(texts)
    return dumps([{"name": name, "results": _value(text)} for name, text in zip(names, texts, strict=True)])


def _value(text: str) -> Json:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return text


def read_prompts(dataset: str) -> RllaPrompts:
    """ToolRL's words, from the rows of a folder or of `org/name[@revision]` on the Hub.

    Raises UserError for rows of another form, and where they do not agree.
    """
    name, _, revision = dataset.partition("@")
    folder = resolve_dataset(name, revision or None, patterns=["*/*.parquet", "manifest.json"])
    found: RllaPrompts | None = None
    read_here = ""
    for where, text in _system_texts(folder):
        try:
            registry = parse_system(text)
        except (ValueError, RecursionError) as error:
            raise UserError(
                f"{where}: its system text does not list tools in ToolRL's form: {error}"
            ) from None
        here = RllaPrompts(registry.head, registry.tail)
        if found is None:
            found, read_here = here, where
        elif here != found:
            raise UserError(
                f"--rlla {dataset}: other words around the tools in {where} than in {read_here}: name data "
                "of one training run"
            )
    if found is None:
        raise UserError(
            f"--rlla {dataset}: no training rows there (parquet with the column prompt): name a folder that "
            "`rbtc build toolrl-dr` made, its Hub id, or the folder of ToolRL's rlla_4k"
        )
    return found


def _system_texts(folder: Path) -> Iterator[tuple[str, str]]:
    """(file and row, system text) of every training row under a folder, each different text once."""
    seen: set[bytes] = set()
    for path in (path for pattern in _PLACES for path in sorted(folder.glob(pattern))):
        for number, row in enumerate(parquet.read_rows([path], ["prompt"]), 1):
            if "prompt" not in row:
                break
            match row["prompt"]:
                case [{"role": "system", "content": str(text)}, *_] if len(text) <= MAX_SYSTEM:
                    pass
                case _:
                    raise UserError(f"{path}, row {number}: its prompt does not begin with a system text")
            if (digest := hashlib.sha256(text.encode()).digest()) not in seen:
                seen.add(digest)
                yield f"{path}, row {number}", text
