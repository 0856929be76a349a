"""An uploaded predictions file into rows, bounded: Parquet or JSON lines, distinguished by content alone.

The name of the file plays no part, nothing is unpacked, and only columns of known types are read. What cannot
be bound by looking first (a small page that unpacks to gigabytes) the process's limits bound (`worker`).
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

from robustbench_tc.schema import Json, Prediction

from .limits import Limits
from .names import shown
from .refusal import Refused

MAKE = "make it with `rbtc eval`, or `rbtc export` for JSON lines"

_INT_BOUND = 2**53


class NativeCall(msgspec.Struct, frozen=True):
    """A native call as the harness keeps it; the arguments are the raw text, whatever it holds."""

    name: str
    arguments: str
    id: str = ""


class Line(Prediction, frozen=True, kw_only=True):
    """A row as uploaded. Of the verdict columns that a scored run has, only the claim is looked at."""

    tool_calls: list[NativeCall] | None = None
    first_tool_calls: list[NativeCall] | None = None
    logprobs: Json = None
    correct: bool | None = None


class JsonLine(Line, frozen=True, kw_only=True):
    """A line of a JSON lines upload."""

    logprobs: msgspec.Raw = msgspec.Raw(b"null")
    """Never looked into."""


_TEXT = ("tool_calls", "first_tool_calls")
_DROPPED = ("logprobs",)
_REPLIES = ("raw_output", "first_output")
_FIELDS = tuple(name for name in Line.__struct_fields__ if name not in _DROPPED)
_KINDS: dict[str, Literal["int", "bool", "float"]] = {
    "repeat": "int",
    "injected": "bool",
    "prompt_tokens": "int",
    "completion_tokens": "int",
    "latency_s": "float",
    "retries": "int",
    "attempts": "int",
    "correct": "bool",
}
_REQUIRED = tuple(
    field.name for field in msgspec.structs.fields(Prediction) if field.default is msgspec.NODEFAULT
)
_decode_line = msgspec.json.Decoder(JsonLine).decode
_decode_calls = msgspec.json.Decoder(list[NativeCall] | None).decode


def read(path: Path, rows: int, limits: Limits) -> list[Line]:
    """The rows of an upload, at most `rows`, checked for form and size. Raises Refused."""
    size = path.stat().st_size
    if size > limits.file_bytes:
        raise Refused("size", f"the file has {size:,} bytes: at most {limits.file_bytes:,} are read")
    if size == 0:
        raise Refused("format", f"the file is empty: {MAKE}")
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(0)
        if head == b"PAR1":
            found = _parquet(file, rows, limits)
        elif head[:1] == b"{":
            found = _json_lines(file, rows, limits)
        else:
            raise Refused("format", f"{_what(head)}: upload predictions.parquet or .jsonl ({MAKE})")
        lines = []
        for number, line in enumerate(found, 1):
            _bounded(line, f"row {number}", limits)
            lines.append(line)
    if not lines:
        raise Refused("format", f"the file has no rows: {MAKE}")
    return lines


def _what(head: bytes) -> str:
    if head[:2] in (b"PK", b"\x1f\x8b", b"BZ") or head in (b"7z\xbc\xaf", b"\x28\xb5\x2f\xfd", b"\xfd7zX"):
        return "this is an archive or a compressed file, and nothing is unpacked here"
    return "the file is neither Parquet nor JSON lines"


def _json_lines(file: BinaryIO, rows: int, limits: Limits) -> Iterator[Line]:
    longest = 8 * limits.reply_chars
    number = 0
    while raw := file.readline(longest + 1):
        number += 1
        if len(raw) > longest:
            raise Refused("size", f"line {number} has more than {longest:,} bytes")
        if not raw.strip():
            if file.read(1):
                raise Refused("format", f"line {number} is empty: one prediction a line")
            return
        if number > rows:
            raise _too_many(rows)
        try:
            yield _decode_line(raw)
        except RecursionError:
            raise Refused("format", f"line {number} is nested too deeply") from None
        except (
            ValueError,
            OverflowError,
        ) as error:  # msgspec's errors and UnicodeDecodeError are ValueErrors
            raise Refused("format", f"line {number} is not a prediction: {shown(str(error), 200)}") from None


def _parquet(file: BinaryIO, rows: int, limits: Limits) -> Iterator[Line]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(
            file,
            pre_buffer=False,  # a little of it at a time
            thrift_string_size_limit=4 * 1024 * 1024,
            thrift_container_size_limit=100_000,
            arrow_extensions_enabled=False,  # type: ignore[call-arg]
        ) as parquet:
            meta = parquet.metadata
            if meta.num_rows > rows:
                raise _too_many(rows)
            unpacked = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
            if unpacked > limits.decoded_bytes:
                raise Refused(
                    "size", f"the file unpacks to {unpacked:,} bytes: at most {limits.decoded_bytes:,}"
                )
            names = _columns(parquet.schema_arrow)
            number = total = 0
            for batch in parquet.iter_batches(64, columns=names, use_threads=False):
                total += batch.nbytes
                if total > limits.decoded_bytes:
                    raise Refused("size", f"the file unpacks to more than {limits.decoded_bytes:,} bytes")
                for row in batch.to_pylist():
                    number += 1
                    if number > rows:
                        raise _too_many(rows)
                    yield _line(row, number)
    except MemoryError:  # pyarrow's is one too
        raise Refused("size", "the file needs more memory than is allowed once it is unpacked") from None
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, RecursionError) as error:
        line = str(error).strip().splitlines() or [type(error).__name__]
        raise Refused("format", f"the Parquet file is damaged: {shown(line[0], 200)}") from None


def _too_many(rows: int) -> Refused:
    return Refused(
        "size", f"the file has more than {rows:,} rows, which is as many as this board's dataset asks"
    )


def _columns(schema: Any) -> list[str]:
    """The columns to read, each there once and of its type. Raises Refused."""
    import pyarrow.types as kinds

    fits: dict[str, Callable[[Any], bool]] = {
        "int": kinds.is_integer,
        "bool": kinds.is_boolean,
        "float": lambda kind: kinds.is_floating(kind) or kinds.is_integer(kind),
        "str": lambda kind: kinds.is_string(kind) or kinds.is_large_string(kind),
    }
    if missing := [name for name in _REQUIRED if name not in schema.names]:
        raise Refused("format", f"the file has no column {', '.join(missing)}: {MAKE}")
    names = []
    for name in _FIELDS:
        places = schema.get_all_field_indices(name)
        if len(places) > 1:
            raise Refused("format", f"the column {name} is there {len(places)} times: {MAKE}")
        if not places:
            continue
        kind = schema.field(places[0]).type
        wanted = _KINDS.get(name, "str")
        if str(kind) != "null" and not fits[wanted](kind):
            raise Refused("format", f"the column {name} holds {shown(str(kind))}, not {wanted}: {MAKE}")
        names.append(name)
    return names


def _line(row: dict[str, Any], number: int) -> Line:
    for name in _TEXT:
        text = row.get(name)
        if text is None:
            continue
        try:
            row[name] = _decode_calls(text)
        except RecursionError:
            raise Refused("format", f"row {number}, {name}: nested too deeply") from None
        except (ValueError, OverflowError) as error:
            raise Refused("format", f"row {number}, {name}: {shown(str(error), 200)}") from None
    try:
        return msgspec.convert(row, Line)
    except msgspec.ValidationError as error:
        raise Refused("format", f"row {number} is not a prediction: {shown(str(error), 200)}") from None


def _bounded(line: Line, where: str, limits: Limits) -> None:
    """Lengths of texts, sizes of numbers, and what Unicode or arithmetic do not hold. Raises Refused."""
    for name in _FIELDS:
        value = getattr(line, name)
        if isinstance(value, str):
            bound = limits.reply_chars if name in _REPLIES else limits.field_chars
            _text(value, f"{where}, {name}", bound)
        elif isinstance(value, list):
            if len(value) > limits.calls:
                raise Refused(
                    "size", f"{where}, {name}: {len(value):,} calls, at most {limits.calls} are read"
                )
            for call in value:
                _text(call.arguments, f"{where}, {name}", limits.reply_chars)
                _text(call.name, f"{where}, {name}", limits.field_chars)
                _text(call.id, f"{where}, {name}", limits.field_chars)
        elif isinstance(value, float) and not math.isfinite(value):
            raise Refused("format", f"{where}, {name}: {value} is not a number")
        elif isinstance(value, int | float) and not 0 <= value <= _INT_BOUND:
            raise Refused("format", f"{where}, {name}: {'negative' if value < 0 else 'beyond 2^53'}")


def _text(value: str, where: str, bound: int) -> None:
    if len(value) > bound:
        raise Refused("size", f"{where}: {len(value):,} characters, at most {bound:,} are read")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused("format", f"{where}: half a surrogate pair, which is not text") from None
