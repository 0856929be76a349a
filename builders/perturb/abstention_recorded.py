"""What was written and judged for the abstention types: who else serves, values taken out, questions.

What is packed (`builders/data/abstention.jsonl.gz`, by `scripts/pack_recorded.py`) names samples by hash and
holds texts as edits, so no upstream text is in it. The starter samples' lines lie in
`builders/sources/bundled/` in the form of `../shared/recorded`. `builders/data/direct_questions.jsonl` holds
the questions that need no tool, `builders/data/said_values.jsonl` how a missing value is said after all.
"""

import gzip
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from os.path import commonprefix
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json, Tool, clean_id_hash, dumps

BUILDERS = Path(__file__).parents[1]
SHIPPED = BUILDERS / "data" / "abstention.jsonl.gz"
QUESTIONS = BUILDERS / "data" / "direct_questions.jsonl"
SAID = BUILDERS / "data" / "said_values.jsonl"
HAND_WRITTEN = BUILDERS / "sources" / "bundled"

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


class _JudgedLine(msgspec.Struct, frozen=True):
    """A line of `abstention_judgments.jsonl`."""

    clean_id: str
    removed: tuple[str, ...]
    another_tool_serves: bool
    reason: str = ""
    siblings: tuple[Tool, ...] = ()
    """Tools that may stand in for the one that was removed, beside those of `generations.jsonl`."""


class _MissingLine(msgspec.Struct, frozen=True):
    """A line of `missing_values.jsonl`; `input` stands there or in the texts written for the sample."""

    clean_id: str
    parameter: str
    value: str
    text: str
    input: str = ""


class _Written(msgspec.Struct, frozen=True):
    """A line of `generations.jsonl`, as far as it is needed here."""

    kind: str
    input: str
    output: Json
    tool: str | None = None
    clean_id: str | None = None


class ServedLine(msgspec.Struct, frozen=True):
    """A line of `redundant_judgments.jsonl`."""

    clean_id: str
    tool: str
    description: str
    serves: bool
    reason: str = ""


@cache
def recorded() -> Recorded:
    """What ships with the package."""
    packed = gzip.decompress(SHIPPED.read_bytes()).splitlines()
    lines = [*map(msgspec.json.Decoder(Line).decode, packed), *lines_of(HAND_WRITTEN)]
    siblings: dict[str, tuple[Sibling, ...]] = {}
    missing: dict[str, tuple[Missing, ...]] = {}
    for one in lines:
        if isinstance(one, Sibling):
            siblings[one.sample] = (*siblings.get(one.sample, ()), one)
        elif isinstance(one, Missing):
            missing[one.sample] = (*missing.get(one.sample, ()), one)
    questions = _read(QUESTIONS, Question)
    return Recorded(
        judged={(one.sample, one.removed): one for one in lines if isinstance(one, Judged)},
        missing=missing,
        siblings=siblings,
        questions={sample: one.question for one in questions for sample in one.samples},
        said={one.sample: one for one in _read(SAID, SaidValue)},
    )


def another_tool_serves(clean_id: str, removed: Iterable[str]) -> bool | None:
    """Whether a tool that is left could serve once the tools of these names have gone; None: not judged."""
    found = recorded().judged.get((clean_id_hash(clean_id), names_hash(removed)))
    return None if found is None else found.another_serves


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


def pack(folder: Path) -> bytes:
    """The recorded lines of a folder in the packed form; same folder, same bytes."""
    data = b"".join(msgspec.json.encode(line) + b"\n" for line in lines_of(folder))
    return gzip.compress(data, mtime=0)


def lines_of(folder: Path) -> Iterator[Line]:
    """What a folder of recorded answers says about abstention."""
    judged = _read(folder / "abstention_judgments.jsonl", _JudgedLine)
    written = _read(folder / "generations.jsonl", _Written)
    for one in judged:
        removed = names_hash(one.removed)
        yield Judged(clean_id_hash(one.clean_id), removed, one.another_tool_serves, one.reason)
    asked = {one.clean_id: one.input for one in written if one.kind == "query_paraphrase" and one.clean_id}
    for missing in _read(folder / "missing_values.jsonl", _MissingLine):
        before = missing.input or asked.get(missing.clean_id)
        if before is None:
            raise UserError(
                f"{folder}: {missing.clean_id} has a value taken out, and no text to take it from"
            )
        edits = edits_between(before, missing.text)
        yield Missing(clean_id_hash(missing.clean_id), missing.parameter, missing.value, edits)
    idle = {
        (one.clean_id, one.tool, one.description)
        for one in _read(folder / "redundant_judgments.jsonl", ServedLine)
        if not one.serves
    }
    beside: dict[str, list[Tool]] = {}
    for answer in written:
        if answer.kind == "redundant" and answer.tool is not None:
            beside.setdefault(answer.tool, []).extend(msgspec.convert(answer.output, list[Tool]))
    for one in judged:
        if one.another_tool_serves:
            continue
        yield from (Sibling(clean_id_hash(one.clean_id), one.removed[0], tool) for tool in one.siblings)
        for name in one.removed:
            for tool in beside.get(name, ()):
                if (one.clean_id, tool.name, tool.description) in idle:
                    yield Sibling(clean_id_hash(one.clean_id), name, tool)


T = TypeVar("T", bound=msgspec.Struct)


def _read(path: Path, kind: type[T]) -> list[T]:
    """The lines of a JSONL file."""
    return list(map(msgspec.json.Decoder(kind).decode, path.read_bytes().splitlines()))
