"""Recorded answers: what ships with the package, or a file of one's own.

Two forms of the same thing. `generations.jsonl` and `judgments.jsonl` hold one answer per line with its input
(the form of our sources and of every build, read with `recorded:PATH`). What ships, `data/recorded.jsonl`,
names its inputs by hash only, so no upstream text is in it, and typing errors are edits of the text they are
made in. Models wrote it once, nothing makes it again.

    ["text", "query_paraphrase", "5f0c…", "Which …?"]                       an answer
    ["edits", "realistic_typos", "77ab…", [[1, "in", "ni"], [17, "t", ""]]]  offset, old, new
    ["score", "query_paraphrase", "5f0c…", "9d1e…", 4, "…"]                  a judgment, by hash of the answer
    ["serves", "31ab…", false, "…"]                        whether a new tool serves a sample, by hash of both
    ["sample", "c04d…"]                                    a sample that new tools were written for
    ["text", "language_es", "1f3c…", null, "not_judged"]   one that is not taken, and why

Translated requests lie in files of their own (`builders/generations.py`).

New tools are written for samples: a line names its sample (`clean_id`), or it is for every sample that the
judgments beside it name. A tool that was judged to serve a sample is not given to it.

Several lines may answer one request (different samples, same words): the first that is accepted is taken.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json, clean_id_hash, dumps, tool_hash

from ..generations import (
    JUDGMENTS,
    TEXTS,
    Answer,
    Judged,
    judgments,
    numbered,
    read_recorded,
    translations,
)
from ..perturb.abstention_recorded import Edit, ServedLine, apply_edits
from ..perturb.base import Text, TextRequest
from .base import NO_ANSWER, Answering, Refuse, check, writes_tools

SHIPPED = Path(__file__).parents[1] / "data" / "recorded.jsonl"
HAND_WRITTEN = Path(__file__).parents[1] / "sources" / "bundled"
"""Texts and judgments of the bundled starter samples, written by us."""


class _Text(msgspec.Struct, frozen=True, array_like=True, tag="text"):
    kind: str
    key: str
    value: Json
    refused: str | None = None


class _Edits(msgspec.Struct, frozen=True, array_like=True, tag="edits"):
    kind: str
    key: str
    edits: tuple[Edit, ...]


class _Score(msgspec.Struct, frozen=True, array_like=True, tag="score"):
    kind: str
    key: str
    output: str
    score: int
    reason: str


class _Serves(msgspec.Struct, frozen=True, array_like=True, tag="serves"):
    key: str
    serves: bool
    reason: str


class _Sample(msgspec.Struct, frozen=True, array_like=True, tag="sample"):
    key: str


Line: TypeAlias = _Text | _Edits | _Score | _Serves | _Sample
"""One line of what ships: a text, its edits, a score, if a tool serves, or whose samples they are."""


class Judgment(msgspec.Struct, frozen=True):
    """A judge's semantic-equivalence score of one (clean text, rewritten text) pair."""

    kind: str
    score: int
    """1 to 5; the rubric is the paraphrase audit's."""
    reason: str
    """Empty for a 5."""
    judge: str
    """`recorded` or `hand-written`."""


class Served(msgspec.Struct, frozen=True):
    """A judge's answer to whether a new tool of a sample could serve its request."""

    serves: bool
    reason: str
    judge: str
    """`recorded` or `hand-written`."""


def judgment_address(request: TextRequest, output: Json) -> tuple[str, str]:
    """Where the judgment of a pair stands: the request's key and the answer's hash (16 hex digits)."""
    return request.key, hashlib.sha256(dumps(output).encode()).hexdigest()[:16]


class Recorded(Answering):
    """Answers by request key, from one file after the other: `recorded` and `recorded:PATH`."""

    def __init__(self, *books: "Book") -> None:
        super().__init__("recorded")
        self._books = books

    def answer(self, request: TextRequest, refuse: Refuse) -> Text | str:
        """The first answer, in the order of the files, that passes its check."""
        reason: str | None = None
        for book in self._books:
            for answer, generator, refused in book.signed(request):
                reason = refused or check(request, answer, refuse)
                if reason is None:
                    return Text(answer, generator)
                self._statistics.refuse(request, answer, reason)
        return NO_ANSWER if reason is None else f"refused: {reason}"


class Book:
    """The answers of one file.

    `samples`: hashes of the samples that new tools without a sample of their own were written for. `served`:
    what was said of new tools, by `tool_hash`.
    """

    def __init__(
        self,
        label: str,
        lines: Iterable[_Text | _Edits | Answer],
        samples: Collection[str] = (),
        served: Mapping[str, Served] = MappingProxyType({}),
    ) -> None:
        self.label = label
        self._samples, self._served = frozenset(samples), served
        self._lines: dict[str, list[_Text | _Edits | Answer]] = {}
        for line in lines:
            key = line.request.key if isinstance(line, Answer) else line.key
            self._lines.setdefault(key, []).append(line)

    def answers(self, request: TextRequest) -> Iterator[Json]:
        """Every answer to the request; edits that were made in another text are left out."""
        return (answer for answer, _, _ in self.signed(request))

    def signed(self, request: TextRequest) -> Iterator[tuple[Json, str, str | None]]:
        """Every answer, who wrote it, and why a build refused it, if one did."""
        lines = self._lines.get(request.key, [])
        if request.sample is not None and clean_id_hash(request.sample) in self._samples:
            lines = lines + self._lines.get(msgspec.structs.replace(request, sample=None).key, [])
        for line in lines:
            if isinstance(line, Answer):
                yield self._idle(request, line.output), line.generator or self.label, line.refused
            elif isinstance(line, _Text):
                yield self._idle(request, line.value), self.label, line.refused
            elif (text := apply_edits(request.input, line.edits)) is not None:
                yield text, self.label, None

    def _idle(self, request: TextRequest, value: Json) -> Json:
        """The answer without the new tools that were judged to serve the sample."""
        if request.sample is None or not isinstance(value, list):
            return value
        return [tool for tool in value if not self._serves(request.sample, tool)]

    def _serves(self, sample: str, tool: Json) -> bool:
        name, description = (tool.get("name"), tool.get("description")) if isinstance(tool, dict) else (0, 0)
        if not isinstance(name, str) or not isinstance(description, str):
            return False  # not a tool: the acceptance check says so
        found = self._served.get(tool_hash(sample, name, description))
        return found is not None and found.serves


@cache
def shipped(*, bundled: bool = False) -> tuple[Book, ...]:
    """What ships with the package: recorded answers, and the hand-written ones of the starter samples.

    `bundled`: the starter samples are being built, so theirs come first.
    """
    lines = _shipped_lines()
    recorded = Book(
        "recorded",
        (line for line in lines if isinstance(line, _Text | _Edits)),
        [line.key for line in lines if isinstance(line, _Sample)],
        load_served(),
    )
    written = _written_book(HAND_WRITTEN / "generations.jsonl", "hand-written")
    return (written, recorded) if bundled else (recorded, written)


def edited(request: TextRequest, kept: Iterable[Book]) -> bool:
    """Whether a build kept another answer than those that ship: a map beside the text is part of it."""
    answers = (one for book in kept for one, _, refused in book.signed(request) if refused is None)
    answer = next(answers, None)
    return not any(answer == one for book in shipped() for one in book.answers(request))


def from_path(path: Path) -> tuple[Book, ...]:
    """The answers in a folder with `generations.jsonl`, or in such a file."""
    return (_written_book(_file(path, "generations.jsonl"), "recorded"),)


def _written_book(path: Path, label: str) -> Book:
    """The answers of a `generations.jsonl`, for the samples that the judgments beside it name.

    Raises UserError where new tools are for no sample at all.
    """
    alone = not path.is_file() and (path.parent / TEXTS).is_file()
    answers = [] if alone else list(read_recorded(path, Answer))
    judged = list(_served(path.parent, label))
    lost = (answer for answer in answers if writes_tools(answer.kind) and answer.clean_id is None)
    if not judged and (one := next(lost, None)):
        raise UserError(
            f"{path}: the new tools beside {one.tool!r} are for no sample: give their lines a `clean_id`, or "
            "judge them in redundant_judgments.jsonl"
        )
    samples = [sample for sample, _, _ in judged]
    served = {tool: said for _, tool, said in judged}
    return Book(label, (*answers, *translations(path.parent)), samples, served)


def load_judgments(path: Path | None = None) -> dict[tuple[str, str], Judgment]:
    """Judgments by `judgment_address`: what ships with the package, or those of a folder or file.

    Raises UserError for a missing or malformed file.
    """
    if path is not None:
        return dict(_judged(_file(path, "judgments.jsonl"), "recorded"))
    scores = (line for line in _shipped_lines() if isinstance(line, _Score))
    found = {
        (line.key, line.output): Judgment(line.kind, line.score, line.reason, "recorded") for line in scores
    }
    return found | dict(_judged(HAND_WRITTEN / "judgments.jsonl", "hand-written"))


def load_served(path: Path | None = None) -> dict[str, Served]:
    """Whether new tools serve, by `tool_hash`: what ships with the package, or those of a folder or file.

    A folder or file without such judgments has none. Raises UserError for a malformed file.
    """
    if path is not None:
        return {tool: said for _, tool, said in _served(path, "recorded")}
    lines = (line for line in _shipped_lines() if isinstance(line, _Serves))
    found = {line.key: Served(line.serves, line.reason, "recorded") for line in lines}
    return found | {tool: said for _, tool, said in _served(HAND_WRITTEN, "hand-written")}


def _served(folder: Path, judge: str) -> Iterator[tuple[str, str, Served]]:
    """The judgments of a folder, each behind the hashes of its sample and of its tool.

    They name a tool by what it is called and does.
    """
    path = folder / "redundant_judgments.jsonl"
    if not path.is_file():
        return
    written = {
        (tool["name"], tool["description"])
        for answer in read_recorded(folder / "generations.jsonl", Answer)
        for tool in (answer.output if writes_tools(answer.kind) else ())
    }
    for number, line in numbered(path, ServedLine):
        if (line.tool, line.description) not in written:
            raise UserError(f"{path}, line {number}: no answer in generations.jsonl wrote tool {line.tool!r}")
        said = Served(line.serves, line.reason, judge)
        yield clean_id_hash(line.clean_id), tool_hash(line.clean_id, line.tool, line.description), said


def _judged(path: Path, judge: str) -> Iterator[tuple[tuple[str, str], Judgment]]:
    alone = not path.is_file() and (path.parent / JUDGMENTS).is_file()
    for one in (*(() if alone else read_recorded(path, Judged)), *judgments(path.parent)):
        yield judgment_address(one.request, one.output), Judgment(one.kind, one.score, one.reason, judge)


@cache
def _shipped_lines() -> list[Line]:
    return msgspec.json.Decoder(Line).decode_lines(SHIPPED.read_bytes())


def _file(path: Path, name: str) -> Path:
    return path / name if path.is_dir() else path
