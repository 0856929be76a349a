"""`own.json` of a dataset of own tools: what a row has no column for."""

from pathlib import Path
from typing import Literal

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from .files import LARGE, read_bytes

NAME = "own.json"


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the dataset was made of."""

    name: str
    """Without its folder: that is the user's own affair."""
    sha256: str


class Book(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What evaluating and reporting need beside the rows."""

    version: Literal[1] = 1
    files: tuple[File, ...] = ()
    """The cases file, then the tool files in its order."""
    cases: int = 0
    turns: int = 0
    read_only: tuple[str, ...]
    """Tools, by the names that rows list, each once."""
    idempotent: tuple[str, ...]
    results: dict[str, dict[str, tuple[Json, ...]]]
    """Clean id → tool → what it answers, in turn; only what a case states."""
    unreviewed: tuple[str, ...]
    """Clean ids of cases that nobody has looked at."""
    notes: tuple[str, ...]

    def json(self) -> bytes:
        """The file's bytes: same cases, same bytes."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def read_book(folder: Path) -> Book | None:
    """The book of a dataset; None where it has none. Raises UserError for one that cannot be read."""
    path = folder / NAME
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(read_bytes(path, "the book of a dataset of own tools", LARGE), type=Book)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: {' '.join(str(error).split())[:200]}: build the dataset again") from None
