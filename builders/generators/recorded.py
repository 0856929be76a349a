"""Recorded answers: what ships with the package, or a file of one's own.

Two forms of the same thing. `generations.jsonl` and `judgments.jsonl` hold one answer per line with its input
(the form of our sources, read with `recorded:PATH`). What ships is packed: `data/recorded.jsonl.gz` names its
inputs by hash only, so no upstream text is in it, and typing errors are edits of the text they are made in.

    ["text", "query_paraphrase", "5f0c…", "Which …?"]                       an answer
    ["edits", "realistic_typos", "77ab…", [[1, "in", "ni"], [17, "t", ""]]]  offset, old, new
    ["score", "query_paraphrase", "5f0c…", "9d1e…", 4, "…"]                  a judgment, by hash of the answer

Several lines may answer one request (different samples, same words): the first that is accepted is taken.
"""

import difflib
import gzip
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.schema import Json, dumps

from ..perturb.base import Text, TextRequest
from .base import NO_ANSWER, Refuse, Statistics, category, check, kinds

SHIPPED = Path(__file__).parents[1] / "data" / "recorded.jsonl.gz"
HAND_WRITTEN = Path(__file__).parents[1] / "sources" / "bundled"
"""Texts and judgments of the bundled starter samples, written by us."""

Edit: TypeAlias = tuple[int, str, str]
"""Offset in the original text, what stands there, what takes its place."""


class _Text(msgspec.Struct, frozen=True, array_like=True, tag="text"):
    kind: str
    key: str
    value: Json


class _Edits(msgspec.Struct, frozen=True, array_like=True, tag="edits"):
    kind: str
    key: str
    edits: tuple[Edit, ...]

    @property
    def value(self) -> tuple[Edit, ...]:
        return self.edits


class _Score(msgspec.Struct, frozen=True, array_like=True, tag="score"):
    kind: str
    key: str
    output: str
    score: int
    reason: str


Line: TypeAlias = _Text | _Edits | _Score


class Judgment(msgspec.Struct, frozen=True):
    """A judge's semantic-equivalence score of one (clean text, rewritten text) pair."""

    kind: str
    score: int
    """1 to 5; the rubric is the paraphrase audit's."""
    reason: str
    """Empty for a 5."""
    judge: str
    """`recorded` or `hand-written`."""


class _Answer(msgspec.Struct, frozen=True):
    """A line of `generations.jsonl`."""

    kind: str
    input: str
    output: Json
    tool: str | None = None
    parameter: str | None = None

    @property
    def request(self) -> TextRequest:
        """A query is known by its words alone, a description also by whose it is."""
        return TextRequest(kind=self.kind, input=self.input, tool=self.tool, parameter=self.parameter)


class _Judged(_Answer, frozen=True, kw_only=True):
    """A line of `judgments.jsonl`."""

    score: int
    reason: str = ""


def edits_between(before: str, after: str) -> tuple[Edit, ...]:
    """The edits that make `after` from `before`, in order.

    An insertion is widened by a neighbouring character, so that applying it finds something to verify.
    """
    found: list[Edit] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "insert" and b < len(before):
            b, d = b + 1, d + 1
        elif tag == "insert" and a > 0 and not (found and found[-1][0] + len(found[-1][1]) == a):
            a, c = a - 1, c - 1
        if tag != "equal":
            found.append((a, before[a:b], after[c:d]))
    return tuple(found)


def apply_edits(before: str, edits: Iterable[Edit]) -> str:
    """The edited text. Raises ValueError where the text is not the one that the edits were made in."""
    out, done = [], 0
    for place, old, new in edits:
        if place < done or before[place : place + len(old)] != old:
            raise ValueError(f"the edit at {place} finds another text")
        out += [before[done:place], new]
        done = place + len(old)
    return "".join([*out, before[done:]])


def output_hash(output: Json) -> str:
    """16 hex digits: which answer a judgment is about."""
    return hashlib.sha256(dumps(output).encode()).hexdigest()[:16]


def judgment_address(request: TextRequest, output: Json) -> tuple[str, str]:
    """Where the judgment of a pair stands: the request's key and the answer's hash."""
    return request.key, output_hash(output)


class Recorded:
    """Answers by request key, from one file after the other: `recorded` and `recorded:PATH`."""

    label = "recorded"

    def __init__(self, *books: "Book") -> None:
        self._books = books
        self._statistics = Statistics(generator=self.label)

    async def generate(self, requests: Sequence[TextRequest], refuse: Refuse) -> dict[str, Text | str]:
        answers = {request.key: self._answer(request, refuse) for request in requests}
        self._statistics.settle(answers)
        return answers

    def _answer(self, request: TextRequest, refuse: Refuse) -> Text | str:
        reason: str | None = None
        for book in self._books:
            for answer in book.answers(request):
                reason = check(request, answer, refuse)
                if reason is None:
                    return Text(answer, book.label)
                self._statistics.refused[category(reason)] += 1
        return NO_ANSWER if reason is None else f"refused: {reason}"

    def statistics(self) -> dict[str, Any]:
        return self._statistics.report()


class Book:
    """The answers of one file."""

    def __init__(self, label: str, lines: Iterable[_Text | _Edits]) -> None:
        self.label = label
        self._lines: dict[str, list[_Text | _Edits]] = {}
        for line in lines:
            self._lines.setdefault(line.key, []).append(line)

    def answers(self, request: TextRequest) -> Iterator[Json]:
        """Every answer to the request; edits that were made in another text are none."""
        for line in self._lines.get(request.key, ()):
            if isinstance(line, _Text):
                yield line.value
                continue
            try:
                yield apply_edits(request.input, line.edits)
            except ValueError:
                continue


@cache
def shipped(*, bundled: bool = False) -> tuple[Book, ...]:
    """What ships with the package: recorded answers, and the hand-written ones of the starter samples.

    `bundled`: the starter samples are being built, so theirs come first.
    """
    recorded = Book("recorded", (line for line in _unpack(SHIPPED) if not isinstance(line, _Score)))
    written = Book("hand-written", _lines_of(HAND_WRITTEN / "generations.jsonl"))
    return (written, recorded) if bundled else (recorded, written)


def from_path(path: Path) -> tuple[Book, ...]:
    """The answers in a folder with `generations.jsonl`, such a file, or a packed one (`.gz`)."""
    if path.suffix == ".gz":
        return (Book("recorded", (line for line in _unpack(path) if not isinstance(line, _Score))),)
    return (Book("recorded", _lines_of(_file(path, "generations.jsonl"))),)


def load_judgments(path: Path | None = None) -> dict[tuple[str, str], Judgment]:
    """Judgments by `judgment_address`: what ships with the package, or those of a folder or file.

    Raises UserError for a missing or malformed file.
    """
    if path is not None and path.suffix != ".gz":
        return dict(_judged(_file(path, "judgments.jsonl"), "recorded"))
    packed = (line for line in _unpack(path or SHIPPED) if isinstance(line, _Score))
    found = {
        (line.key, line.output): Judgment(line.kind, line.score, line.reason, "recorded") for line in packed
    }
    if path is None:
        found.update(_judged(HAND_WRITTEN / "judgments.jsonl", "hand-written"))
    return found


def _judged(path: Path, judge: str) -> Iterator[tuple[tuple[str, str], Judgment]]:
    for line in _read(path, _Judged):
        yield (
            judgment_address(line.request, line.output),
            Judgment(line.kind, line.score, line.reason, judge),
        )


def pack(folder: Path) -> bytes:
    """`generations.jsonl` and `judgments.jsonl` of a folder in the packed form; same folder, same bytes."""
    lines: list[Line] = []
    for answer in _read(folder / "generations.jsonl", _Answer):
        key = answer.request.key
        if answer.kind == "realistic_typos" and isinstance(answer.output, str):
            lines.append(_Edits(answer.kind, key, edits_between(answer.input, answer.output)))
        else:
            lines.append(_Text(answer.kind, key, answer.output))
    for judged in _read(folder / "judgments.jsonl", _Judged):
        key, output = judgment_address(judged.request, judged.output)
        lines.append(_Score(judged.kind, key, output, judged.score, judged.reason))
    return gzip.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in lines), mtime=0)


def _unpack(path: Path) -> list[Line]:
    decoder = msgspec.json.Decoder(Line)
    try:
        return [decoder.decode(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    except FileNotFoundError:
        raise UserError(f"no recorded answers at {path}") from None
    except (OSError, EOFError, ValueError) as error:
        raise UserError(f"{path} holds no packed recorded answers: {error}") from None


def _lines_of(path: Path) -> Iterator[_Text]:
    return (_Text(answer.kind, answer.request.key, answer.output) for answer in _read(path, _Answer))


def _file(path: Path, name: str) -> Path:
    return path / name if path.is_dir() else path


T = TypeVar("T", bound=_Answer)


def _read(path: Path, kind: type[T]) -> Iterator[T]:
    """The lines of a JSONL file. Raises UserError with the line that does not fit."""
    known = kinds()
    decoder = msgspec.json.Decoder(kind)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"recorded answers at {path}: {error.strerror}") from None
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = decoder.decode(line)
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}") from None
        if found.kind not in known:
            raise UserError(f"{path}, line {number}: {unknown('kind', found.kind, known)}")
        yield found
