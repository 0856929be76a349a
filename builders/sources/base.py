"""What the readers share: the pool they fill, upstream's records with their places, clean rows.

A reader turns one upstream file into clean rows and known issues, record by record; which files and which
records are read is the profile's matter (`builders/sources/__init__.py`). The same reader serves the mirror
of the upstream repositories and the bundled starter samples, which lie in the same folders. A file has the
bytes of its pin before a reader sees it, so what upstream never writes is not looked for.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from robustbench_tc import sources
from robustbench_tc.schema import GOLD_NOT_STATED, Call, GoldenAnswer, Message, Sample, Tool
from robustbench_tc.sources import Source

from .upstream import pins


class KnownIssue(msgspec.Struct, frozen=True, kw_only=True):
    """An upstream record that is left out or whose rows carry a flag, and why: a row of `known_issues`."""

    source: str
    file: str
    """Path under the sources root, as in `pins.json`."""
    record: str
    """Place in the file from 0: `17`, for ToolAlpaca API and instruction: `9/1`."""
    clean_id: str | None
    reason: str
    """A key of `REASONS`."""
    detail: str
    """One sentence. Never quotes a golden value (some hold credentials)."""
    status: Literal["left_out", "flagged"] = "left_out"
    """Whether the record has no rows, or rows with the reason as their flag."""


REASONS = {
    "dropped": "a proposed case that a review dropped",
    "duplicate_id": "an earlier record of the pool has the same id",
    "gold_fails_scorer": "the source's own scorer refuses the golden answer",
    GOLD_NOT_STATED: "no accepted answer can be taken from what is said, defined or known",
    "gold_not_decodable": "the golden answer cannot be read as calls",
    "gold_tool_not_listed": "the golden answer calls a tool that the record does not list",
    "identical_row": "another record of the pool has the same messages, tools and golden answers",
    "known_wrong_gold": "upstream's golden answer is wrong: no answer can pass",
    "no_label": "upstream has no golden answer and we have no label",
    "not_buildable": "a proposed case that cannot be built as it stands",
}
"""Reason codes of known issues."""

Item: TypeAlias = Sample | KnownIssue


class Pool(msgspec.Struct, frozen=True):
    """The clean rows of a profile, in source, file and record order, and what was left out."""

    samples: tuple[Sample, ...]
    issues: tuple[KnownIssue, ...]
    places: dict[str, tuple[str, str]] = {}
    """Clean id → file and record that the sample was read from."""


class Reader(Source, frozen=True, kw_only=True):
    """One upstream benchmark: its facts, and how its files are read."""

    files: tuple[str, ...]
    """The single-turn pool: paths under the sources root, in the pool's order."""
    read_file: Callable[[Path, str], Iterator[tuple[str, Item]]]
    """`(root, file)` to (record, clean row or known issue), in the file's order, none left out."""
    answers_of: Callable[[str], str] | None = None
    """The second file that is read with a file, where golden answers lie apart."""
    shown_last: bool = False
    paper: bool = False


class Unusable(Exception):
    """Raised while a record becomes a clean row: it cannot. `reason` is a key of `REASONS`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


T = TypeVar("T")


def item(source: str, file: str, record: str, clean_id: str, make: Callable[[], Sample]) -> Item:
    """What `make` returns, or the known issue it raises."""
    try:
        return make()
    except Unusable as issue:
        return KnownIssue(
            source=source,
            file=file,
            record=record,
            clean_id=clean_id,
            reason=issue.reason,
            detail=issue.detail,
        )


def clean_row(
    source: str,
    clean_id: str,
    category: str,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    answers: Sequence[GoldenAnswer],
    *,
    gold_keys: Collection[str] | None = None,
) -> Sample:
    """A clean row. Raises Unusable when an answer is empty or calls a tool that is not listed.

    `gold_keys`: the parameters of the first call where the golden call itself does not say them (ToolEyes).
    """
    names = {tool.name for tool in tools}
    if not answers or not all(answers):
        raise Unusable("gold_not_decodable", "The golden answer holds no call.")
    for call in (call for answer in answers for call in answer):
        if call.name not in names:
            raise Unusable("gold_tool_not_listed", f"The golden tool {call.name!r} is not listed.")
    first = answers[0][0]
    return Sample(
        id=f"{clean_id}::clean",
        clean_id=clean_id,
        type_code="clean",
        source=source,
        category=category,
        messages=tuple(messages),
        tools=tuple(tools),
        golden_answers=tuple(answers),
        output_format=sources.get(source).output_format,
        gold_tool_index=tool_meant(tools, first, first.parameters if gold_keys is None else gold_keys),
    )


def tool_meant(tools: Sequence[Tool], call: Call, keys: Collection[str]) -> int:
    """Index of the called tool. Five RoTBench and ToolEyes registries list a name twice upstream: then the
    first definition that declares every golden parameter."""
    named = [index for index, tool in enumerate(tools) if tool.name == call.name]
    return next((index for index in named if set(keys) <= set(tools[index].properties)), named[0])


def json_list(root: Path, file: str, kind: type[T]) -> Iterator[tuple[int, T]]:
    """The records of a JSON list with their index."""
    return enumerate(msgspec.json.Decoder(list[kind]).decode((root / file).read_bytes()))  # type: ignore[valid-type]


def json_lines(root: Path, file: str, kind: type[T]) -> Iterator[tuple[int, T]]:
    """The records of a JSON Lines file with their index from 0; blank lines are passed over."""
    return enumerate(msgspec.json.Decoder(kind).decode_lines((root / file).read_bytes()))


class ReactTurn(msgspec.Struct, frozen=True, rename={"role": "from"}):
    """A turn of RoTBench and ToolEyes; RoTBench's assistant turn is a list of accepted texts."""

    role: str
    value: str | list[str]


def embedded_tools(system: Any) -> tuple[Tool, ...]:
    """The tool list inside the system text of RoTBench and ToolEyes: from the first `[{` to the last `]`."""
    text = str(system)
    return tuple(msgspec.json.decode(text[text.index("[{") : text.rindex("]") + 1], type=list[Tool]))


def problems(
    reader: Reader, readers: Iterable[Reader], has_scorer: Callable[[str], bool] | None = None
) -> list[str]:
    """What is wrong with the facts and pins of one source, one sentence each.

    `has_scorer`: whether there is a scorer of a name; None: unknown.
    """
    wrong = []
    if not reader.files:
        wrong.append("it names no file")
    pinned = {pin.path for pin in pins().files}
    read = [*reader.files, *(map(reader.answers_of, reader.files) if reader.answers_of else ())]
    wrong += [f"{file} is not pinned in builders/data/pins.json" for file in read if file not in pinned]
    for other in readers:
        if other is not reader and other.order == reader.order:
            wrong.append(f"order {reader.order} is taken by {other.name}")
    if has_scorer is not None and not has_scorer(reader.scorer):
        wrong.append(f"scorer names {reader.scorer!r}, and there is no such scorer or module:function")
    if "__" in reader.name or not reader.name.isidentifier():
        wrong.append("its name is a plain word without `__`: clean ids begin with it")
    return [f"{reader.name}: {one}" for one in wrong]


def all_facts(readers: Iterable[Reader], has_scorer: Callable[[str], bool]) -> tuple[Source, ...]:
    """The facts of every source, in order. Raises ValueError with every problem, one a line."""
    known = tuple(readers)
    if wrong := [one for reader in known for one in problems(reader, known, has_scorer)]:
        raise ValueError("\n".join(wrong))
    return tuple(msgspec.convert(reader, Source, from_attributes=True) for reader in known)
