"""Answers and judgments as lines of JSON: `generations.jsonl`, `judgments.jsonl`, and files of their kind.

Translated requests that somebody wrote down, and what was said of them: two files of a folder.

    translations.jsonl             {"clean_id", "lang", "input", "partial", "full", "value_map"}
    translation_judgments.jsonl    {"clean_id", "lang", "variant", "score", "reason", "unmapped"}

`partial` keeps every golden value, `full` translates them; `value_map` says what stands in it for which
value. `partial` null: nobody translated the request into these languages (`lang` may name several). `score`
null: the text was written after the judgment, so nobody has judged it and it is not used. `unmapped`: values
whose words in `full` could stand for another English value too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.languages import language
from robustbench_tc.schema import Json, dumps

from ..perturb.base import TextRequest
from .base import is_written, kinds, writes_tools


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


class Remark(msgspec.Struct, frozen=True):
    """A line of a build's `generations.jsonl` that holds no answer; see `builders.generations`."""

    kind: str
    statistics: dict[str, Json] | None = None
    missing: str | None = None


T = TypeVar("T", bound=Answer)
L = TypeVar("L", bound=msgspec.Struct)


def read(path: Path, kind: type[T]) -> Iterator[T]:
    """The lines of a JSONL file of answers. Raises UserError with the line that does not fit."""
    for number, found in numbered(path, kind):
        if not is_written(found.kind):
            raise UserError(f"{path}, line {number}: {unknown('kind', found.kind, kinds())}")
        yield found


def numbered(path: Path, kind: type[L]) -> Iterator[tuple[int, L]]:
    """The lines of a JSONL file with their numbers. Raises UserError with the line that does not fit."""
    decoder = msgspec.json.Decoder(kind)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"recorded answers at {path}: {error.strerror}") from None
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield number, decoder.decode(line)
        except ValueError as error:
            if _is_remark(line):
                continue
            raise UserError(f"{path}, line {number}: {error}") from None


def _is_remark(line: bytes) -> bool:
    try:
        remark = msgspec.json.decode(line, type=Remark)
    except ValueError:
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
        for lang in line.lang.split():
            for variant in variants:
                yield Answer(kind_of(lang, variant), line.input, None, refused=NOT_TRANSLATED)
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
        text = None if of is None else of.partial if line.variant == "partial" else of.full
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
