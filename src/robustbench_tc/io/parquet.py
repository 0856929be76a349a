"""Parquet in fixed shards: the same rows give the same bytes, with any number of workers."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import UserError
from .files import atomic_file

BATCH_ROWS = 2_000
"""Rows of a row group: what a reader or a writer has to hold at once."""

SHARD_ROWS = 25 * BATCH_ROWS
"""Rows of a shard. Borders are a function of the row number alone."""

_OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "write_page_index": True,  # the Hub's viewer reads pages, not files
    "use_content_defined_chunking": True,  # a changed row re-uploads its chunk, not its file
}

T = TypeVar("T")


def batches(rows: Iterable[T], size: int = BATCH_ROWS) -> Iterator[list[T]]:
    """Consecutive lists of up to `size` rows."""
    left = iter(rows)
    while batch := list(islice(left, size)):
        yield batch


def row_groups(tables: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """The same rows in tables of `BATCH_ROWS` (the last one less), whatever tables they came in.

    Each is one chunk: how a table is chunked would show in the bytes of its pages.
    """
    rest = schema.empty_table()
    for part in tables:
        part = part.replace_schema_metadata(schema.metadata)
        rest = pa.concat_tables([rest, part]) if rest.num_rows else part
        while rest.num_rows >= BATCH_ROWS:
            yield rest.slice(0, BATCH_ROWS).combine_chunks()
            rest = rest.slice(BATCH_ROWS)
    if rest.num_rows:
        yield rest.combine_chunks()


def write_shards(tables: Iterable[pa.Table], folder: Path, split: str, schema: pa.Schema) -> int:
    """Writes `folder/split-00000-of-0000N.parquet` from tables of any size; returns the number of rows.

    A row group is in memory at a time. An empty stream still leaves one file, so that the config loads. The
    folder is expected to be new: shards get their final names when their number is known.
    """
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    done: list[Path] = []
    numbered = enumerate(row_groups(tables, schema))
    for number, shard in groupby(numbered, lambda item: item[0] * BATCH_ROWS // SHARD_ROWS):
        done.append(folder / f"{split}-{number:05d}.partial")
        with pq.ParquetWriter(done[-1], schema, **_OPTIONS) as writer:
            for _, group in shard:
                writer.write_table(group, row_group_size=BATCH_ROWS)
                total += group.num_rows
    if not done:
        done.append(folder / f"{split}-00000.partial")
        pq.write_table(schema.empty_table(), done[0], **_OPTIONS)
    for number, path in enumerate(done):
        path.rename(folder / f"{split}-{number:05d}-of-{len(done):05d}.parquet")
    return total


def write_file(tables: Iterable[pa.Table], path: Path, schema: pa.Schema, *, replace: bool = False) -> None:
    """Writes one file as `atomic_file` does, from tables of any size, a row group in memory at a time."""
    with (
        atomic_file(path, replace=replace) as beside,
        pq.ParquetWriter(beside, schema, compression="zstd") as writer,
    ):
        for group in row_groups(tables, schema):
            writer.write_table(group)


def opened(path: Path) -> pq.ParquetFile:
    """A file to read from its beginning to its end, a few pages of it in memory.

    pyarrow's own choice fetches ahead and keeps all that it has fetched, in the end the whole file; and a
    column of a row group is one read, where foreign files are often one row group. Read with
    `use_threads=False`: every thread that decodes keeps memory of its own.
    """
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=2**20)


def about(path: Path) -> pq.FileMetaData:
    """What a file says of its row groups and columns. UserError for one that is not Parquet."""
    try:
        return pq.read_metadata(path)
    except pa.ArrowInvalid as error:
        raise UserError(f"{path} is not a readable Parquet file: {error}") from None


def read_file(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """A small file at once; columns that it does not have are left out.

    Not pyarrow's `read_table`: it imports `pyarrow.dataset` and pandas, which takes longer than the reading.
    """
    with pq.ParquetFile(path) as file:
        return file.read(columns=None if columns is None else list(columns))


def read_batches(files: Iterable[Path], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Parquet files in order, `BATCH_ROWS` at a time. A broken file is a UserError that names it."""
    for path in files:
        try:
            with opened(path) as file:
                wanted = None if columns is None else list(columns)
                yield from file.iter_batches(BATCH_ROWS, columns=wanted, use_threads=False)
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            raise UserError(f"{path} is not a readable Parquet file: {error}") from None
        except FileNotFoundError:
            raise UserError(f"{path} does not exist") from None


def read_rows(files: Iterable[Path], columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Rows of Parquet files in order, with `read_batches`."""
    for batch in read_batches(files, columns):
        yield from batch.to_pylist()


def shards(folder: Path, split: str = "test") -> list[Path]:
    """The shard files of a split, in order. UserError if there is none or one is missing."""
    return complete(sorted(folder.glob(f"{split}-*-of-*.parquet")), folder, split)


def complete(found: list[Path], folder: Path, split: str) -> list[Path]:
    """The shard files, if they are all that there should be. UserError if there is none or one is missing."""
    expected = int(found[0].stem.rsplit("-", 1)[1]) if found else 1
    if len(found) != expected:
        raise UserError(f"{folder} holds {len(found)} of {expected} shards of split {split!r}")
    return found
