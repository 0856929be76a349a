"""Answers and judgments as lines of JSON: `generations.jsonl`, `judgments.jsonl`, and files of their kind."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.schema import Json

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
