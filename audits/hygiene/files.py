"""Secrets in what is published beside the rows: cards, reports, stored answers, tables, Parquet footers."""

import base64
import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq

from robustbench_tc.schema import loads

from ..folder import Folder
from ..report import Check, Failure, check
from .texts import Find, Flagged, Leaf, Scope, Texts, credentials, finds_by_rule, in_short, leaves

HOLDS_ROWS = frozenset(("messages", "prompt", "turns"))
"""A Parquet file with one of these columns holds rows, which have checks of their own."""

LARGEST = 256 * 2**20
"""Bytes of a file, unpacked: what is larger cannot be looked through and fails."""

_FILES = (
    "secrets.files",
    "Cards, reports, stored answers and tables are published like the rows: none holds a credential.",
)
_FOOTERS = (
    "secrets.footers",
    "A Parquet footer travels with every copy of its file: its metadata and names hold no credential.",
)


def audit(folder: Folder) -> list[Check]:
    """Two checks: every file beside the rows, and every Parquet footer."""
    texts = Texts(scope=Scope(guess=False, persons=not folder.is_own))
    failures: dict[tuple[str, str], list[Failure]] = {_FILES: [], _FOOTERS: []}
    looked_at = Counter[tuple[str, str]]()
    for path in _files(folder):
        name = path.relative_to(folder.path).as_posix()
        for what, found in _parts(path).items():
            looked_at[what] += 1
            try:
                if by_rule := finds_by_rule(_unreviewed(texts, name, found)):
                    short = in_short(
                        one.removeprefix(f"{name}: ") for some in by_rule.values() for one in some
                    )
                    failures[what].append(Failure(name, short))
            except (OSError, ValueError, EOFError, zlib.error) as error:
                said = f"it cannot be looked through: {type(error).__name__}: {error}"
                failures[what].append(Failure(name, said))
    return [check(*what, looked_at[what], found) for what, found in failures.items()]


def to_review(folder: Folder) -> Iterator[tuple[Flagged, Find]]:
    """What nobody looked at yet in the files beside the rows, for the eyes of whoever does."""
    texts = Texts(scope=Scope(guess=False))
    for path in _files(folder):
        for found in _parts(path).values():
            yield from _unreviewed(texts, path.relative_to(folder.path).as_posix(), found)


def _files(folder: Folder) -> list[Path]:
    return sorted(path for path in folder.path.rglob("*") if path.is_file() and not path.is_symlink())


def _unreviewed(texts: Texts, name: str, found: Iterable[Leaf]) -> Iterator[tuple[Flagged, Find]]:
    found_in = ((leaf.text, tuple(credentials(leaf, texts.scope))) for leaf in dict.fromkeys(found))
    return texts.unreviewed(Flagged(name, text, finds) for text, finds in found_in if finds)


def _parts(path: Path) -> dict[tuple[str, str], Iterator[Leaf]]:
    """What a file says, opened when it is asked for, by the check that looks at it.

    A Parquet file has a footer; rows in it have checks of their own.
    """
    if path.suffix != ".parquet":
        return {_FILES: _of_file(path)}
    footer = {_FOOTERS: _in_footer(path)}
    try:
        holds_rows = HOLDS_ROWS & set(pq.read_schema(path).names)
    except (OSError, ValueError):
        return footer  # which fails
    return footer if holds_rows else footer | {_FILES: leaves(pq.read_table(path).to_pylist())}


def texts_of(path: Path) -> Iterator[str]:
    """The texts of a file: all of it, unpacked; of a Parquet file those of its footer and of all its rows."""
    if path.suffix != ".parquet":
        yield _text(path)
        return
    yield from (leaf.text for leaf in _in_footer(path))
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(1_000, use_threads=False):
            yield from (leaf.text for leaf in leaves(batch.to_pylist()))


def _in_footer(path: Path) -> Iterator[Leaf]:
    """Key-value metadata, column names, and who wrote the file."""
    about = pq.read_metadata(path)
    yield Leaf(about.created_by or "")
    for key, value in (about.metadata or {}).items():
        yield Leaf(key.decode("utf-8", "replace"))
        if key == b"ARROW:schema":  # base64 of names, types and the same metadata, with much padding
            value = base64.b64decode(value)
        yield from _of_line(value.decode("utf-8", "replace"))
    for index in range(about.num_columns):
        yield Leaf(about.schema.column(index).path)


def _of_file(path: Path) -> Iterator[Leaf]:
    """The lines of a file as text, whatever it is; JSON is looked into besides."""
    text = _text(path)
    if path.suffix == ".json":
        yield from _json(text)
    for line in text.splitlines():
        yield from _of_line(line)


def _text(path: Path) -> str:
    """What a file holds, unpacked. Raises ValueError where that is too much."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if packed else path.open("rb") as opened:
        data = opened.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError(f"it has more than {LARGEST} bytes")
    return data.decode("utf-8", "replace")


def _of_line(line: str) -> Iterator[Leaf]:
    yield Leaf(line)
    if line[:1] in ("{", "["):
        yield from _json(line)


def _json(text: str) -> Iterator[Leaf]:
    try:
        value = loads(text)
    except (ValueError, RecursionError):
        return  # searched as lines
    yield from leaves(value)
