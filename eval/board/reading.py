"""A stranger's run folder into structs, bounded: the record, predictions, episodes.

Only columns of known types are read, a little at a time; nothing is unpacked or evaluated. What cannot be
bounded by looking first (a small page that unpacks to gigabytes) the process's limits bound (`child`).
"""

import math
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds

from robustbench_tc import schema
from robustbench_tc.column_types import in_struct
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
_ANSWERS = ("raw_output", "first_output", "text")

_Record = TypeVar("_Record", RunRecord, LiveRecord)


class NativeCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A native call as the harness keeps it; the arguments are the raw text, whatever it holds."""

    name: str
    arguments: str
    id: str = ""


_calls = msgspec.json.Decoder(list[NativeCall] | None).decode
_replies = msgspec.json.Decoder(tuple[Reply, ...]).decode


def regular(path: Path, most: int, step: str = "size") -> bytes:
    """The bytes of a file of the run. Raises Refused for one that is missing, no plain file, or too long."""
    try:
        found = path.lstat()
    except OSError:
        raise Refused("format", f"there is no {path.name}: {MAKE}") from None
    if not stat.S_ISREG(found.st_mode):
        raise Refused("format", f"{path.name} is a link or no plain file")
    if found.st_size > most:
        raise Refused(step, f"{path.name} has {found.st_size:,} bytes: at most {most:,} are read")
    return path.read_bytes()


def record(path: Path, kind: type[_Record]) -> _Record:
    """`run.json`. Raises Refused."""
    text = regular(path, RECORD_BYTES)
    try:
        found = msgspec.json.decode(text, type=kind)
        if len(schema.dumps(found.settings)) > SETTINGS_CHARS:
            raise ValueError("its settings are longer than any run's")
    except (ValueError, RecursionError, OverflowError) as error:
        raise Refused("record", f"run.json cannot be read ({shown(str(error), 160)}): {MAKE}") from None
    if found.format != kind.__struct_defaults__[0]:
        raise Refused("record", f"run.json is of format {found.format}: ask again with this version")
    _text(found.settings.model, "the model's name", FIELD_CHARS)
    return found


def predictions(path: Path, most: int) -> list[Prediction]:
    """At most so many rows, checked for form and size, without log probabilities. Raises Refused."""
    found = []
    for number, row in enumerate(_rows(path, Prediction, most, without=("logprobs",)), 1):
        where = f"row {number}"
        for name in ("tool_calls", "first_tool_calls"):
            row[name] = _native(row.get(name), f"{where}, {name}", _calls)
        found.append(_converted(row, Prediction, where))
    return found


def episodes(path: Path, most: int) -> list[Episode]:
    """At most so many episodes, checked for form and size. Raises Refused."""
    found = []
    for number, row in enumerate(_rows(path, Episode, most), 1):
        where = f"episode {number}"
        row["replies"] = _decoded(row["replies"] or "[]", f"{where}, replies", _replies)
        for reply in row["replies"]:
            _bounded(reply, where, MAX_TEXT + 100)
            _native(schema.dumps(reply.tool_calls), where, _calls)
        found.append(_converted(row, Episode, where))
    return found


def _native(text: str | None, where: str, decode: Callable[[str], list[NativeCall] | None]) -> Any:
    """Native calls as they lie in a `Prediction`."""
    if text is None:
        return None
    calls = _decoded(text, where, decode)
    if calls is not None and len(calls) > CALLS:
        raise Refused("size", f"{where}: {len(calls):,} calls, at most {CALLS} are read")
    for call in calls or ():
        _text(call.arguments, where, REPLY_CHARS)
        _text(call.name, where, FIELD_CHARS)
        _text(call.id, where, FIELD_CHARS)
    return msgspec.to_builtins(calls)


def _decoded(text: str, where: str, decode: Callable[[str], Any]) -> Any:
    try:
        return decode(text)
    except RecursionError:
        raise Refused("format", f"{where}: nested too deeply") from None
    except (ValueError, OverflowError) as error:
        raise Refused("format", f"{where}: {shown(str(error), 200)}") from None


def _converted(row: dict[str, Any], kind: type[Any], where: str) -> Any:
    try:
        made = msgspec.convert(row, kind)
    except (ValueError, RecursionError, OverflowError) as error:
        raise Refused("format", f"{where} is none ({shown(str(error), 200)}): {MAKE}") from None
    _bounded(made, where, REPLY_CHARS)
    return made


def _bounded(of: msgspec.Struct, where: str, longest: int) -> None:
    """Lengths of texts and sizes of numbers. Raises Refused."""
    for name in of.__struct_fields__:
        value = getattr(of, name)
        if isinstance(value, str):
            _text(value, f"{where}, {name}", longest if name in _ANSWERS else FIELD_CHARS)
        elif isinstance(value, int | float) and not (math.isfinite(value) and 0 <= value < _INTEGERS):
            raise Refused("format", f"{where}, {name}: {shown(str(value), 30)} is out of range")


def _text(value: str, where: str, most: int) -> None:
    if len(value) > most:
        raise Refused("size", f"{where}: {len(value):,} characters, at most {most:,} are read")


def _rows(
    path: Path, kind: type[msgspec.Struct], most: int, without: tuple[str, ...] = ()
) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file with the columns of a struct. Raises Refused."""
    head = regular(path, FILE_BYTES)[:4]
    if head != b"PAR1":
        raise Refused("format", f"{path.name} is no Parquet file: {MAKE}")
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
            unpacked = sum(meta.row_group(at).total_byte_size for at in range(meta.num_row_groups))
            if meta.num_rows > most:
                raise _too_many(path, most)
            if unpacked > DECODED_BYTES:
                raise _too_large(path)
            names = _columns(path, parquet.schema_arrow, kind, without)
            for batch in parquet.iter_batches(64, columns=names, use_threads=False):
                total += batch.nbytes
                number += batch.num_rows
                if total > DECODED_BYTES:
                    raise _too_large(path)
                if number > most:
                    raise _too_many(path, most)
                yield from batch.to_pylist()
    except MemoryError:  # pyarrow's is one too
        raise _too_large(path) from None
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, RecursionError) as error:
        line = str(error).strip().splitlines() or [type(error).__name__]
        raise Refused("format", f"{path.name} is damaged: {shown(line[0], 200)}") from None
    if not number:
        raise Refused("format", f"{path.name} has no rows: {MAKE}")


def _too_many(path: Path, most: int) -> Refused:
    return Refused("size", f"{path.name} has more than {most:,} rows, which is as many as the dataset asks")


def _too_large(path: Path) -> Refused:
    return Refused("size", f"{path.name} unpacks to more than {DECODED_BYTES:,} bytes")


def _columns(path: Path, found: pa.Schema, kind: type[msgspec.Struct], without: tuple[str, ...]) -> list[str]:
    """The columns to read, each there once and of its type. Raises Refused."""
    fits: dict[str, Callable[[pa.DataType], bool]] = {
        "int": kinds.is_integer,
        "bool": kinds.is_boolean,
        "float": lambda of: kinds.is_floating(of) or kinds.is_integer(of),
        "string": lambda of: kinds.is_string(of) or kinds.is_large_string(of),
    }
    needed = [one.name for one in msgspec.structs.fields(kind) if one.default is msgspec.NODEFAULT]
    if missing := [name for name in needed if name not in found.names]:
        raise Refused("format", f"{path.name} has no column {', '.join(missing)}: {MAKE}")
    names = []
    for name, column in in_struct(kind).items():
        places = found.get_all_field_indices(name)
        if not places or name in without:
            continue
        of, wanted = found.field(places[0]).type, str(column).rstrip("0123456789")
        if len(places) > 1 or (str(of) != "null" and not fits[wanted](of)):
            raise Refused("format", f"{path.name}: the column {name} is not one of {wanted}: {MAKE}")
        names.append(name)
    return names
