"""What was written and judged for the abstention types: who else serves, values taken out, questions.

What was recorded (`builders/data/abstention.jsonl`) names samples by hash and holds texts as edits, so no
upstream text is in it; `builders/sources/bundled/abstention.jsonl` has the starter samples' lines in the same
form. `builders/data/direct_questions.jsonl` holds the questions that need no tool,
`builders/data/said_values.jsonl` how a missing value is said after all.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from os.path import commonprefix
from pathlib import Path
from typing import TypeAlias

import msgspec

from robustbench_tc.schema import Tool, dumps

BUILDERS = Path(__file__).parents[1]
SHIPPED = BUILDERS / "data" / "abstention.jsonl"
QUESTIONS = BUILDERS / "data" / "direct_questions.jsonl"
SAID = BUILDERS / "data" / "said_values.jsonl"
HAND_WRITTEN = BUILDERS / "sources" / "bundled" / "abstention.jsonl"

Edit: TypeAlias = tuple[int, str, str]
"""Offset in the clean text, what stands there, what takes its place."""


class Judged(msgspec.Struct, frozen=True, array_like=True, tag="judged"):
    """Whether a tool that is left could still serve the request once the accepted tools have gone."""

    sample: str
    removed: str
    """`names_hash` of the tools that were taken out when it was judged."""
    another_serves: bool
    reason: str


class Missing(msgspec.Struct, frozen=True, array_like=True, tag="missing"):
    """A request with one required value taken out."""

    sample: str
    parameter: str
    value: str
    """As it stood in the request; of a list the one element that was taken out."""
    edits: tuple[Edit, ...]


class Sibling(msgspec.Struct, frozen=True, array_like=True, tag="sibling"):
    """A tool that was written to stand beside the gold tool, and judged not to serve the request."""

    sample: str
    gold: str
    """Name of the tool that it stands beside."""
    tool: Tool


class SaidValue(msgspec.Struct, frozen=True):
    """How the value that `Missing` takes out of a request is said in it beside the words in its place."""

    sample: str
    behind: str
    """The words that stand for the value, once in the request without it."""
    said: str
    """What follows on them."""


Line: TypeAlias = Judged | Missing | Sibling


class Question(msgspec.Struct, frozen=True):
    """A question of general knowledge, and the samples that lend it their registries (`registry_hash`)."""

    question: str
    samples: tuple[str, ...]


class Recorded(msgspec.Struct, frozen=True):
    """Everything, by what tells samples apart: the ids of starter samples can be upstream's too."""

    judged: Mapping[tuple[str, str], Judged]
    """By `sample_hash` and `names_hash` of the tools that go."""
    missing: Mapping[str, tuple[Missing, ...]]
    """By `sample_hash`."""
    siblings: Mapping[str, tuple[Sibling, ...]]
    """By `sample_hash`."""
    questions: Mapping[str, str]
    """By `registry_hash`."""
    said: Mapping[str, SaidValue]
    """By `sample_hash`."""


class ServedLine(msgspec.Struct, frozen=True):
    """A line of `redundant_judgments.jsonl`."""

    clean_id: str
    tool: str
    description: str
    serves: bool
    reason: str = ""


@cache
def recorded() -> Recorded:
    """What ships with the package: the recorded lines, then those of the starter samples."""
    read = msgspec.json.Decoder(Line).decode_lines
    lines = read(SHIPPED.read_bytes()) + read(HAND_WRITTEN.read_bytes())
    siblings: dict[str, tuple[Sibling, ...]] = {}
    missing: dict[str, tuple[Missing, ...]] = {}
    for one in lines:
        if isinstance(one, Sibling):
            siblings[one.sample] = (*siblings.get(one.sample, ()), one)
        elif isinstance(one, Missing):
            missing[one.sample] = (*missing.get(one.sample, ()), one)
    said = msgspec.json.Decoder(SaidValue).decode_lines(SAID.read_bytes())
    return Recorded(
        judged={(one.sample, one.removed): one for one in lines if isinstance(one, Judged)},
        missing=missing,
        siblings=siblings,
        questions={sample: one.question for one in questions() for sample in one.samples},
        said={one.sample: one for one in said},
    )


def questions() -> list[Question]:
    """The questions that need no tool."""
    return msgspec.json.Decoder(Question).decode_lines(QUESTIONS.read_bytes())


def registry_hash(clean_id: str, names: Iterable[str]) -> str:
    """32 hex digits of a clean id and the names of its tools."""
    return hashlib.sha256(dumps([clean_id, *sorted(set(names))]).encode()).hexdigest()[:32]


def names_hash(names: Iterable[str]) -> str:
    """16 hex digits of a set of tool names."""
    return hashlib.sha256(dumps(sorted(set(names))).encode()).hexdigest()[:16]


def apply_edits(before: str, edits: Sequence[Edit]) -> str | None:
    """The edited text; None where it is not the text that the edits were made in."""
    out, done = [], 0
    for place, old, new in edits:
        if place < done or before[place : place + len(old)] != old:
            return None
        out += [before[done:place], new]
        done = place + len(old)
    return "".join([*out, before[done:]])


def edits_between(before: str, after: str) -> tuple[Edit, ...]:
    """The one passage that differs, widened to whole words."""
    start = len(commonprefix((before, after)))  # noqa: RUF071 - by characters, as is wanted
    end = len(commonprefix((before[start:][::-1], after[start:][::-1])))  # noqa: RUF071
    while start and not before[start - 1].isspace():
        start -= 1
    while end and not before[len(before) - end].isspace():
        end -= 1
    return ((start, before[start : len(before) - end], after[start : len(after) - end]),)
