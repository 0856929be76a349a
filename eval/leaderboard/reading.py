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

from robustbench_tc import schema
from robustbench_tc.column_types import arrow_schema, in_struct
from robustbench_tc.eval.live.conversation import MAX_TEXT
from robustbench_tc.eval.live.record import LiveRecord
from robustbench_tc.eval.record import RunRecord
from robustbench_tc.live import Episode, Reply
from robustbench_tc.schema import Prediction

from .entry import Refused
from .names import shown

MAKE = "make it with `rbtc eval` or `rbtc live run`"

MB = 1 << 20
FILE_BYTES, RECORD_BYTES, DECODED_BYTES = 64 * MB, MB, 512 * MB
"""Of the replies' file, of run.json, and of all columns together once they are unpacked."""

SETTINGS_CHARS = 20_000
REPEATS = 5
"""Answers to a row."""

REPLY_CHARS, FIELD_CHARS, CALLS = 200_000, 2_000, 128
"""Of a reply's text and of a call's arguments; of any other text; native calls of a reply."""

_INTEGERS = 2**31
_LONG = ("raw_output", "first_output", "text")

_Record = TypeVar("_Record", RunRecord, LiveRecord)
_Read = TypeVar("_Read")
_Field = Annotated[str, msgspec.Meta(max_length=FIELD_CHARS)]


class NativeCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A native call as the harness keeps it; the arguments are the raw text, whatever it holds."""

    name: _Field
    arguments: Annotated[str, msgspec.Meta(max_length=REPLY_CHARS)]
    id: _Field = ""


_calls = msgspec.json.Decoder(Annotated[list[NativeCall], msgspec.Meta(max_length=CALLS)] | None).decode
_replies = msgspec.json.Decoder(tuple[Reply, ...]).decode


def regular(path: Path, most: int) -> bytes:
    """The bytes of a file of the run. Raises Refused for one that is missing, no plain file, or too long."""
    if path.is_symlink() or not path.is_file():
        raise Refused("format", f"{path.name} is missing, a link, or no plain file: {MAKE}")
    if (size := path.stat().st_size) > most:
        raise Refused("size", f"{path.name} has {size:,} bytes: at most {most:,} are read")
    return path.read_bytes()


def record(path: Path, kind: type[_Record]) -> _Record:
    """`run.json`. Raises Refused."""
    text = regular(path, RECORD_BYTES)
    found = _fits(text, "run.json", msgspec.json.Decoder(kind).decode, "record")
    if found.format != kind.__struct_defaults__[0]:
        raise Refused("record", f"run.json is of format {found.format}: ask again with this version")
    if len(schema.dumps(found.settings)) > SETTINGS_CHARS:
        raise Refused("record", f"the settings in run.json are longer than any run's: {MAKE}")
    return found


def predictions(path: Path, most: int) -> list[Prediction]:
    """At most so many rows, checked for form and size, without log probabilities. Raises Refused."""
    found = []
    for number, row in enumerate(_rows(path, Prediction, most, without=("logprobs",)), 1):
        for name in ("tool_calls", "first_tool_calls"):
            calls = _fits(row.get(name) or "null", f"row {number}, {name}", _calls)
            row[name] = msgspec.to_builtins(calls)
        found.append(_fits(row, f"row {number}", partial(msgspec.convert, type=Prediction)))
        _check_sizes(found[-1], f"row {number}", REPLY_CHARS)
    return found


def episodes(path: Path, most: int) -> list[Episode]:
    """At most so many episodes, checked for form and size. Raises Refused."""
    found = []
    for number, row in enumerate(_rows(path, Episode, most), 1):
        where = f"episode {number}"
        row["replies"] = _fits(row["replies"] or "[]", where, _replies)
        found.append(_fits(row, where, partial(msgspec.convert, type=Episode)))
        for reply in found[-1].replies:
            _fits(schema.dumps(reply.tool_calls), where, _calls)
            _check_sizes(reply, where, MAX_TEXT + 100)
        _check_sizes(found[-1], where, FIELD_CHARS)
    return found


def _fits(value: Any, where: str, read: Callable[[Any], _Read], step: str = "format") -> _Read:
    """The value as what it is meant to be. Raises Refused."""
    try:
        return read(value)
    except (ValueError, RecursionError, OverflowError) as error:
        raise Refused(step, f"{where} cannot be read ({shown(str(error), 200)}): {MAKE}") from None


def _check_sizes(of: msgspec.Struct, where: str, longest: int) -> None:
    """Lengths of texts and sizes of numbers. Raises Refused."""
    for name in of.__struct_fields__:
        value = getattr(of, name)
        most = longest if name in _LONG else FIELD_CHARS
        if isinstance(value, str) and len(value) > most:
            raise Refused("size", f"{where}, {name}: {len(value):,} characters, at most {most:,} are read")
        if isinstance(value, int | float) and not (math.isfinite(value) and 0 <= value < _INTEGERS):
            raise Refused("format", f"{where}, {name}: {shown(str(value), 30)} is out of range")


def _rows(
    path: Path, kind: type[msgspec.Struct], most: int, without: tuple[str, ...] = ()
) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file with the columns of a struct, as their types. Raises Refused."""
    if regular(path, FILE_BYTES)[:4] != b"PAR1":
        raise Refused("format", f"{path.name} is no Parquet file: {MAKE}")
    large = Refused("size", f"{path.name} unpacks to more than {DECODED_BYTES:,} bytes")
    many = Refused("size", f"{path.name} has more than {most:,} rows, which is as many as the dataset asks")
    number = total = 0
    try:
        with pq.ParquetFile(
            path,
            pre_buffer=False,  # a little of it at a time
            thrift_string_size_limit=4 * MB,
            thrift_container_size_limit=100_000,
            arrow_extensions_enabled=False,  # type: ignore[call-arg]
        ) as parquet:
            meta = parquet.metadata
            if sum(meta.row_group(at).total_byte_size for at in range(meta.num_row_groups)) > DECODED_BYTES:
                raise large
            there = set(parquet.schema_arrow.names).difference(without)
            columns = arrow_schema({name: of for name, of in in_struct(kind).items() if name in there})
            for batch in parquet.iter_batches(64, columns=columns.names, use_threads=False):
                total += batch.nbytes
                number += batch.num_rows
                if total > DECODED_BYTES:
                    raise large
                if number > most:
                    raise many
                yield from batch.select(columns.names).cast(columns).to_pylist()
    except MemoryError:  # pyarrow's is one too
        raise large from None
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, RecursionError) as error:
        line = str(error).strip().splitlines() or [type(error).__name__]
        raise Refused("format", f"{path.name} is damaged: {shown(line[0], 200)}") from None
    if not number:
        raise Refused("format", f"{path.name} has no rows: {MAKE}")
