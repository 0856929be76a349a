"""A stranger's run folder into structs, bounded: the record, predictions, episodes.

Only columns of known types are read, a little at a time; nothing is unpacked or evaluated. What cannot be
bounded by looking first (a small page that unpacks to gigabytes) the process's limits bound (`child`).
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Meta

from robustbench_tc import schema
from robustbench_tc.eval.record import FORMAT, RunRecord
from robustbench_tc.schema import Episode, arrow_schema

from .entry import Refused, shown

MAKE = "make it with `rbtc eval`"

FILE_BYTES, RECORD_BYTES, DECODED_BYTES = 64 << 20, 30_000, 512 << 20
"""Of the replies' file, of run.json, and of all columns together once they are unpacked."""

REPEATS = 5
"""Answers to a row."""

REPLY_CHARS, FIELD_CHARS = 200_100, 2_000
"""Of a reply's text and of a call's arguments, which the harness cuts at 200,000; of any other text."""

_LONG = ("raw_output", "first_output", "text")

Row = TypeVar("Row", bound=schema.Prediction | Episode)
_Read = TypeVar("_Read")


class NativeCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A native call as the harness keeps it; the arguments are the raw text, whatever it holds."""

    name: Annotated[str, Meta(max_length=FIELD_CHARS)]
    arguments: Annotated[str, Meta(max_length=REPLY_CHARS)]
    id: Annotated[str, Meta(max_length=FIELD_CHARS)] = ""


_calls = partial(msgspec.convert, type=Annotated[list[NativeCall], Meta(max_length=128)] | None)


def regular(path: Path, most: int) -> bytes:
    """The bytes of a file of the run. Raises Refused for one that is missing, no plain file, or too long."""
    if path.is_symlink() or not path.is_file():
        raise Refused("format", f"{path.name} is missing, a link, or no plain file: {MAKE}")
    if (size := path.stat().st_size) > most:
        raise Refused("size", f"{path.name} has {size:,} bytes: at most {most:,} are read")
    return path.read_bytes()


def record(path: Path) -> RunRecord:
    """`run.json`. Raises Refused."""
    text = regular(path, RECORD_BYTES)
    found = _fits(text, "run.json", msgspec.json.Decoder(RunRecord).decode, "record")
    if found.format != FORMAT:
        raise Refused("record", f"run.json is of format {found.format}: ask again with this version")
    return found


def rows(path: Path, kind: type[Row], most: int) -> list[Row]:
    """At most so many predictions or episodes, checked for form and size, without log probabilities. Raises
    Refused."""
    found: list[Row] = []
    for number, plain in enumerate(_plain(path, kind, most), 1):
        where = f"row {number}"
        found.append(_fits(plain, where, partial(schema.record, kind=kind)))
        for part in (found[-1], *getattr(found[-1], "replies", ())):
            _check_sizes(part, where)
    return found


def _fits(value: Any, where: str, read: Callable[[Any], _Read], step: str = "format") -> _Read:
    """The value as what it is meant to be. Raises Refused."""
    try:
        return read(value)
    except (ValueError, RecursionError, OverflowError) as error:
        raise Refused(step, f"{where} cannot be read ({shown(str(error), 200)}): {MAKE}") from None


def _check_sizes(of: msgspec.Struct, where: str) -> None:
    """Native calls, lengths of texts and sizes of numbers. Raises Refused."""
    for name in of.__struct_fields__:
        value, most = getattr(of, name), REPLY_CHARS if name in _LONG else FIELD_CHARS
        if name in ("tool_calls", "first_tool_calls"):
            _fits(value, f"{where}, {name}", _calls)
        if isinstance(value, str) and len(value) > most:
            raise Refused("size", f"{where}, {name}: {len(value):,} characters, at most {most:,} are read")
        if isinstance(value, int | float) and not (math.isfinite(value) and 0 <= value < 2**31):
            raise Refused("format", f"{where}, {name}: {shown(str(value), 30)} is out of range")


def _plain(path: Path, kind: type[msgspec.Struct], most: int) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file with the columns of a struct, as their types. Raises Refused."""
    number = total = 0
    large = Refused("size", f"{path.name} unpacks to more than {DECODED_BYTES:,} bytes")
    try:
        with pq.ParquetFile(
            path,
            pre_buffer=False,  # a little of it at a time
            thrift_string_size_limit=4 << 20,
            thrift_container_size_limit=100_000,
            arrow_extensions_enabled=False,  # type: ignore[call-arg]
        ) as parquet:
            there = set(parquet.schema_arrow.names) - {"logprobs"}
            columns = pa.schema([field for field in arrow_schema(kind) if field.name in there])
            for batch in parquet.iter_batches(64, columns=columns.names, use_threads=False):
                total += batch.nbytes
                number += batch.num_rows
                if total > DECODED_BYTES:
                    raise large
                if number > most:
                    raise Refused("size", f"{path.name} has more than the {most:,} rows that are asked")
                yield from batch.select(columns.names).cast(columns).to_pylist()
    except MemoryError:  # pyarrow's is one too
        raise large from None
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, RecursionError) as error:
        why = shown(str(error).strip().partition("\n")[0], 200)
        raise Refused("format", f"{path.name} is damaged ({why}): {MAKE}") from None
    if not number:
        raise Refused("format", f"{path.name} has no rows: {MAKE}")
