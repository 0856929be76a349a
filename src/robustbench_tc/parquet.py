"""Parquet in fixed shards: the same rows give the same bytes, with any number of workers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from .errors import UserError

if TYPE_CHECKING:
    import datasets

SHARD_ROWS = 50_000
"""Rows of a shard. Borders are a function of the row number alone."""

BATCH_ROWS = 2_000
"""Rows of a row group: what a reader has to hold at once."""

_OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "write_page_index": True,  # the Hub's viewer reads pages, not files
    "use_content_defined_chunking": True,  # a changed row re-uploads its chunk, not its file
}

T = TypeVar("T")


def batches(rows: Iterable[T], size: int = BATCH_ROWS) -> Iterator[list[T]]:
    """Consecutive lists of up to `size` rows."""
    batch: list[T] = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def table(columns: Mapping[str, Sequence[Any]], features: "datasets.Features") -> pa.Table:
    """Columns as an Arrow table whose schema carries the `datasets` features."""
    schema = features.arrow_schema
    return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def write_shards(tables: Iterable[pa.Table], folder: Path, split: str, schema: pa.Schema) -> int:
    """Writes `folder/split-00000-of-0000N.parquet` from tables of any size; returns the number of rows.

    An empty stream still leaves one file, so that the config loads. The folder is expected to be new: shards
    get their final names when their number is known.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done: list[Path] = []
    total = 0
    rest = schema.empty_table()

    def write(group: pa.Table) -> None:
        path = folder / f"{split}-{len(done):05d}.partial"
        pq.write_table(group, path, row_group_size=BATCH_ROWS, **_OPTIONS)
        done.append(path)

    for part in tables:
        total += part.num_rows
        rest = pa.concat_tables([rest, part])
        while rest.num_rows >= SHARD_ROWS:
            write(rest.slice(0, SHARD_ROWS))
            rest = rest.slice(SHARD_ROWS)
    if rest.num_rows or not done:
        write(rest)
    for number, path in enumerate(done):
        path.rename(folder / f"{split}-{number:05d}-of-{len(done):05d}.parquet")
    return total


def read_rows(files: Iterable[Path], columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Rows of Parquet files in order, a row group at a time. A broken file is a UserError that names it."""
    for path in files:
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(
                    BATCH_ROWS, columns=None if columns is None else list(columns)
                ):
                    yield from batch.to_pylist()
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            raise UserError(f"{path} is no readable Parquet file: {error}") from None
        except FileNotFoundError:
            raise UserError(f"{path} does not exist") from None


def shards(folder: Path, split: str = "test") -> list[Path]:
    """The shard files of a split, in order. UserError if there is none or one is missing."""
    found = sorted(folder.glob(f"{split}-*-of-*.parquet"))
    expected = int(found[0].stem.rsplit("-", 1)[1]) if found else 1
    if len(found) != expected:
        raise UserError(f"{folder} holds {len(found)} of {expected} shards of split {split!r}")
    return found
