"""`generations.jsonl`: every answer that a build was given for its model-written texts.

With it a build can be made again, byte for byte, without any generator. Per type, in the order in which its
texts are needed:

    {"kind", "generator", "statistics", "missing"}
        what the generator did, and why there is no text where no other line says so
    {"kind", "input", "output", "tool", "parameter", "clean_id", "generator", "refused"}
        an answer; `refused` says why it was not taken
    {"kind", "input", "tool", "parameter", "clean_id", "missing"}
        why there is no text in the end, where its last refused answer does not say so

Fields that say nothing are left out. A text that nobody answered has no line: the type needs it, and the file
does not hold it.

What somebody wrote down has the same lines of answers (`recorded:PATH`), in `judgments.jsonl` with a score.
Translated requests, and what was said of them, are two files beside it:

    translations.jsonl             {"clean_id", "lang", "input", "partial", "full", "value_map"}
    translation_judgments.jsonl    {"clean_id", "lang", "variant", "score", "reason", "unmapped"}

`partial` keeps every golden value, `full` translates them; `value_map` says what stands in it for which
value. `partial` null: nobody translated the request into these languages (`lang` may name several). `score`
null: the text was written after the judgment, so nobody has judged it and it is not used. `unmapped`: values
whose words in `full` could stand for another English value too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.languages import language
from robustbench_tc.schema import Json, dumps

from .generators.base import (
    NO_ANSWER,
    SILENT,
    Answering,
    Generator,
    Refusal,
    Refuse,
    Silent,
    check,
    is_written,
    kinds,
    writes_tools,
)
from .perturb.base import Text, TextRequest

NAME = "generations.jsonl"


class Answer(msgspec.Struct, frozen=True):
    """A line of `generations.jsonl`."""

    kind: str
    input: str
    output: Json
    tool: str | None = None
    parameter: str | None = None
    clean_id: str | None = None
    generator: str | None = None
    """Who wrote it, where the file is a build's; else the reader's label is used."""
    refused: str | None = None
    """Why a build did not take it: it is not taken again."""

    @property
    def request(self) -> TextRequest:
        """A query is known by its words alone, a description also by whose it is, new tools by the sample."""
        return TextRequest(
            kind=self.kind,
            input=self.input,
            tool=self.tool,
            parameter=self.parameter,
            sample=self.clean_id if writes_tools(self.kind) else None,
        )


class Judged(Answer, frozen=True, kw_only=True):
    """A line of `judgments.jsonl`: an answer with what was said of it."""

    score: int
    reason: str = ""


class _Line(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Any line of a build's `generations.jsonl`."""

    kind: str
    input: str | None = None
    output: Json | UnsetType = UNSET
    tool: str | None = None
    parameter: str | None = None
    clean_id: str | None = None
    generator: str | None = None
    refused: str | None = None
    statistics: dict[str, Json] | None = None
    missing: str | None = None


T = TypeVar("T", bound=Answer)
L = TypeVar("L", bound=msgspec.Struct)


def read_recorded(path: Path, kind: type[T]) -> Iterator[T]:
    """The lines of a JSONL file of answers. Raises UserError with the line that does not fit."""
    for number, found in numbered(path, kind):
        if not is_written(found.kind):
            raise UserError(f"{path}, line {number}: {unknown('kind', found.kind, kinds())}")
        yield found


def numbered(path: Path, kind: type[L], *, whole: bool = False) -> Iterator[tuple[int, L]]:
    """The lines of a JSONL file with their numbers. Raises UserError with the line that does not fit.

    `whole`: the file is that of the build at hand, no line of which is passed over.
    """
    decode, place = msgspec.json.Decoder(kind).decode, path.name if whole else path
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"recorded answers at {place}: {error.strerror}") from None
    for number, line in enumerate(data.splitlines(), 1):
        try:
            yield number, decode(line)
        except (ValueError, RecursionError) as error:
            if whole or not _is_remark(line):
                raise UserError(f"{place}, line {number}: {error}") from None


def _is_remark(line: bytes) -> bool:
    """Whether a line of answers is none: blank, or what else a build says."""
    if not line.strip():
        return True
    try:
        remark = msgspec.json.decode(line, type=_Line)
    except (ValueError, RecursionError):
        return False
    return remark.statistics is not None or remark.missing is not None


TEXTS = "translations.jsonl"
JUDGMENTS = "translation_judgments.jsonl"

NOT_TRANSLATED = "not_translated"
NOT_JUDGED = "not_judged"

Variant = Literal["partial", "full"]


class _Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    clean_id: str
    lang: str
    input: str
    partial: str | None
    full: str | None = None
    value_map: dict[str, str] = {}


class _Judged(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    clean_id: str
    lang: str
    variant: Variant
    score: Literal[1, 2, 3, 4, 5] | None
    reason: str = ""
    unmapped: tuple[str, ...] = ()


def kind_of(lang: str, variant: Variant) -> str:
    """The type that such a text is for."""
    return f"language_{lang}" if variant == "partial" else f"language_full_{lang}"


def translations(folder: Path) -> Iterator[Answer]:
    """The texts of a folder, each once; none where it has no such file. Raises UserError with the line.

    With translated values the answer is an object with `text`, `value_map` and, if there are any, `unmapped`.
    """
    said = {(one.clean_id, one.lang, one.variant): one for one in _lines(folder / JUDGMENTS, _Judged)}
    seen: set[str] = set()
    for line in _lines(folder / TEXTS, _Text):
        for found in _texts_of(line, said):
            if (key := dumps((found.kind, found.input, found.output, found.refused))) not in seen:
                seen.add(key)
                yield found


def _texts_of(line: _Text, said: dict[tuple[str, str, Variant], _Judged]) -> Iterator[Answer]:
    variants: tuple[Variant, Variant] = ("partial", "full")
    if line.partial is None:
        kinds = (kind_of(lang, variant) for lang in line.lang.split() for variant in variants)
        yield from (Answer(kind, line.input, None, refused=NOT_TRANSLATED) for kind in kinds)
        return
    for variant in variants:
        judged = said.get((line.clean_id, line.lang, variant))
        refused = NOT_JUDGED if judged is not None and judged.score is None else None
        output: Json = line.partial
        if variant == "full":
            output = {"text": line.full or line.partial, "value_map": line.value_map}
            if judged is not None and judged.unmapped:
                output["unmapped"] = list(judged.unmapped)
        yield Answer(kind_of(line.lang, variant), line.input, output, refused=refused)


def judgments(folder: Path) -> Iterator[Judged]:
    """The judgments of a folder's translations. Raises UserError for one of a text that it does not have."""
    texts = {(one.clean_id, one.lang): one for one in _lines(folder / TEXTS, _Text)}
    for number, line in enumerate(_lines(folder / JUDGMENTS, _Judged), 1):
        of = texts.get((line.clean_id, line.lang))
        text: str | None = getattr(of, line.variant, None)
        if of is None or text is None:
            raise UserError(f"{folder / JUDGMENTS}, judgment {number}: {TEXTS} has no such text")
        if line.score is not None:
            kind = kind_of(line.lang, line.variant)
            yield Judged(kind, of.input, text, score=line.score, reason=line.reason)


Line = TypeVar("Line", _Text, _Judged)


def _lines(path: Path, kind: type[Line]) -> Iterator[Line]:
    for number, line in numbered(path, kind) if path.is_file() else ():
        try:
            for lang in line.lang.split():
                language(lang)
        except UserError as error:
            raise UserError(f"{path}, line {number}: {error}") from None
        yield line


class Recording(Generator):
    """A generator that keeps what it was asked for and what became of it.

    A text is asked for once in a build: who needs it again is given the same.
    """

    def __init__(self, kind: str, generator: Generator) -> None:
        super().__init__(generator.label)
        self.kind, self._generator = kind, generator
        self._asked: dict[str, tuple[TextRequest, Text | str]] = {}

    async def generate(self, requests: Sequence[TextRequest], refuse: Refuse) -> dict[str, Text | str]:
        """As `Generator.generate`; asks the generator only for texts that the build has not asked for yet."""
        new = [request for request in requests if request.key not in self._asked]
        if new or not requests:
            found = await self._generator.generate(new, refuse)
            self._asked.update((r.key, (r, found.get(r.key, NO_ANSWER))) for r in new)
        return {request.key: self._asked[request.key][1] for request in requests}

    def statistics(self) -> dict[str, Any]:
        return self._generator.statistics()

    def lines(self) -> Iterator[bytes]:
        """The type's part of `generations.jsonl`."""
        refusals: dict[str, list[Refusal]] = {}
        for refusal in self._generator.refusals():
            refusals.setdefault(refusal.key, []).append(refusal)
        silent = (why for key, (_, why) in self._asked.items() if key not in refusals)
        usual = next((why for why in silent if isinstance(why, str)), NO_ANSWER)
        yield _line(_Line(self.kind, generator=self.label, statistics=self.statistics(), missing=usual))
        for key, (request, outcome) in self._asked.items():
            asked = _Line(
                request.kind,
                request.input,
                tool=request.tool,
                parameter=request.parameter,
                clean_id=request.sample,
            )
            tried = refusals.get(key, [])
            for refusal in tried:
                yield _line(
                    replace(asked, output=refusal.answer, generator=self.label, refused=refusal.reason)
                )
            if isinstance(outcome, Text):
                yield _line(replace(asked, output=outcome.value, generator=outcome.generator))
            elif outcome != (f"refused: {tried[-1].reason}" if tried else usual):
                yield _line(replace(asked, missing=outcome))


def write(path: Path, recordings: Iterable[Recording]) -> None:
    """Writes the file; an empty one where no type of the build needs texts."""
    path.write_bytes(b"".join(line for recording in recordings for line in recording.lines()))


def _line(line: _Line) -> bytes:
    return dumps(line).encode() + b"\n"


class Replay(Answering):
    """Gives the texts of one type as a build's `generations.jsonl` has them."""

    def __init__(self, kind: str, head: _Line, strict: bool = True) -> None:
        super().__init__(head.generator or "")
        self.kind = kind
        self._head, self._strict = head, strict
        self._lines: dict[str, list[_Line]] = {}
        for name in ("retried", "replayed", "requests", "prompt_tokens", "completion_tokens"):
            if type(number := (head.statistics or {}).get(name)) is int:
                setattr(self._statistics, name, number)  # what the answers do not tell

    def add(self, line: _Line) -> None:
        """Takes a line in; lines of one text are tried in the order in which they came."""
        request = TextRequest(
            kind=line.kind,
            input=line.input or "",
            tool=line.tool,
            parameter=line.parameter,
            sample=line.clean_id,
        )
        self._lines.setdefault(request.key, []).append(line)

    def answer(self, request: TextRequest, refuse: Refuse) -> Text | str:
        """The recorded outcome. UserError where `strict` and a recorded text fails its check now."""
        reason: str | None = None
        for line in self._lines.get(request.key, ()):
            if line.missing is not None:
                return line.missing
            output = None if line.output is UNSET else line.output
            reason = line.refused or check(request, output, refuse)
            if reason is None:
                return Text(output, line.generator or self.label)
            if line.refused is None and self._strict:
                raise UserError(
                    f"{NAME}: {request.kind}: the answer to {request.input[:60]!r} fails its check: {reason}"
                )
            self._statistics.refuse(request, output, reason)
        return (self._head.missing or NO_ANSWER) if reason is None else f"refused: {reason}"


def replay(path: Path, *, strict: bool = True) -> Mapping[str, Generator]:
    """The generators of a build, by type. Raises UserError naming the line that does not fit.

    `strict`: an answer that was taken then and would not be now is an error too. Else it is refused, as for a
    build whose golden answers are corrected and some of whose texts no longer keep what they must.
    """
    found: dict[str, Replay] = {}
    current: Replay | None = None
    for number, line in numbered(path, _Line, whole=True):
        if line.statistics is not None:
            if line.kind in found or not is_written(line.kind) or line.generator is None:
                raise UserError(f"{path.name}, line {number}: {line.kind!r} is not a type that begins here")
            current = found[line.kind] = Replay(line.kind, line, strict)
        elif current is None or line.kind != current.kind or line.input is None:
            raise UserError(f"{path.name}, line {number}: not an answer for {current and current.kind!r}")
        else:
            current.add(line)
    return {kind: Silent() if one.label == SILENT else one for kind, one in found.items()}
