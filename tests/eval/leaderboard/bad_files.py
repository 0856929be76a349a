"""Uploads that have to be refused: each with the check that refuses it and words of its message."""

import gzip
import io
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc import schema

Json = Any


class Upload(NamedTuple):
    """What a user hands in."""

    predictions: Path
    record: Path | None
    name: str | None = None


class Bad(NamedTuple):
    name: str
    step: str
    says: str
    make: Callable[[Path, Path], Upload]
    """(a good run folder, an empty folder) → the upload."""


def _rows(run: Path) -> list[dict[str, Json]]:
    found: list[dict[str, Json]] = pq.read_table(run / "predictions.parquet").to_pylist()
    return found


def _parquet(run: Path, folder: Path, change: Callable[[pa.Table], pa.Table]) -> Upload:
    table = change(pq.read_table(run / "predictions.parquet"))
    path = folder / "predictions.parquet"
    pq.write_table(table, path, compression="zstd")
    return Upload(path, run / "run.json")


def _column(table: pa.Table, name: str, values: list[Json], kind: pa.DataType) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values, kind))


def _jsonl(run: Path, folder: Path, change: Callable[[list[bytes]], list[bytes]]) -> Upload:
    """The run as JSON lines, changed."""
    lines = []
    for row in _rows(run):
        for name in ("tool_calls", "first_tool_calls", "logprobs"):
            row[name] = None if row[name] is None else schema.loads(row[name])
        lines.append(msgspec.json.encode(row))
    path = folder / "predictions.jsonl"
    path.write_bytes(b"\n".join(change(lines)) + b"\n")
    return Upload(path, run / "run.json")


def _raw(content: bytes, name: str = "predictions.parquet") -> Callable[[Path, Path], Upload]:
    def make(run: Path, folder: Path) -> Upload:
        (folder / name).write_bytes(content)
        return Upload(folder / name, run / "run.json")

    return make


class _Trap:
    """Writes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Json, ...]:
        return (Path("/tmp/rbtc-unpickled").touch, ())


def _zip_bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../predictions.parquet", b"\0" * 20_000_000)
    return out.getvalue()


def _first_line(old: bytes, new: bytes) -> Callable[[Path, Path], Upload]:
    def change(lines: list[bytes]) -> list[bytes]:
        assert old in lines[0]
        return [lines[0].replace(old, new, 1), *lines[1:]]

    return lambda run, folder: _jsonl(run, folder, change)


def _cut(run: Path, folder: Path) -> Upload:
    path = folder / "predictions.parquet"
    shutil.copyfile(run / "predictions.parquet", path)
    path.write_bytes(path.read_bytes()[:-100])
    return Upload(path, run / "run.json")


def _dictionary_bomb(run: Path, folder: Path) -> Upload:
    """Three million characters, the same in each row: tiny on disk, a gigabyte as plain strings."""
    table = pq.read_table(run / "predictions.parquet")
    values = pa.array(["a" * 3_000_000]).dictionary_encode()
    indices = pa.array([0] * table.num_rows, pa.int32())
    column = pa.DictionaryArray.from_arrays(indices, values.dictionary)
    table = table.set_column(table.schema.get_field_index("raw_output"), "raw_output", column)
    path = folder / "predictions.parquet"
    pq.write_table(table.replace_schema_metadata({}), path, compression="zstd", store_schema=False)
    return Upload(path, run / "run.json")


def _record(run: Path, folder: Path, change: Callable[[dict[str, Json]], None]) -> Upload:
    record = schema.loads((run / "run.json").read_bytes())
    change(record)
    (folder / "run.json").write_bytes(msgspec.json.encode(record))
    return Upload(run / "predictions.parquet", folder / "run.json")


def _changed(run: Path, folder: Path, change: Callable[[dict[str, Json]], None]) -> Upload:
    """Every row changed in place."""

    def columns(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        for row in rows:
            change(row)
        return pa.Table.from_pylist(rows, schema=table.schema)

    return _parquet(run, folder, columns)


def _other_words(row: dict[str, Json]) -> None:
    row["sample_hash"] = "0" * 16


def _unanswered(row: dict[str, Json]) -> None:
    if row["type_code"] == "CD":
        row.update(status="request_error", raw_output=None)


def _one_pass(row: dict[str, Json]) -> None:
    """Transition rows as if no error had been injected: the reply with the call stands."""
    if row["injected"]:
        row.update(injected=False, first_output=None, first_tool_calls=None)


def _never_called(row: dict[str, Json]) -> None:
    if row["injected"]:
        row.update(first_output="I would rather not.", first_tool_calls=None)


def _named(name: str) -> Callable[[Path, Path], Upload]:
    return lambda run, folder: Upload(run / "predictions.parquet", run / "run.json", name)


def _fingerprint(record: dict[str, Json]) -> None:
    record["settings"]["fingerprint"] = "f" * 32
    record["dataset_version"] = "0.0.1"


def _model(record: dict[str, Json]) -> None:
    record["settings"]["model"] = "somebody-else"


def _selection(record: dict[str, Json]) -> None:
    record["settings"]["selection"]["types"] = ["clean"]


NO_PREDICTION = "line 1 is not a prediction"

BAD = (
    Bad("empty file", "format", "the file is empty", _raw(b"")),
    Bad("plain text", "format", "neither Parquet nor JSON lines", _raw(b"hello, board\n" * 50)),
    Bad("pickle", "format", "neither Parquet nor JSON lines", _raw(pickle.dumps(_Trap()))),
    Bad("zip bomb", "format", "nothing is unpacked here", _raw(_zip_bomb())),
    Bad("gzip", "format", "nothing is unpacked here", _raw(gzip.compress(b"{}\n" * 9), "p.jsonl")),
    Bad("Parquet cut off", "format", "is damaged", _cut),
    Bad("Parquet with a false footer", "format", "is damaged", _raw(b"PAR1" + b"\xff" * 400 + b"PAR1")),
    Bad(
        "column missing",
        "format",
        "no column sample_hash",
        lambda run, folder: _parquet(run, folder, lambda table: table.drop_columns(["sample_hash"])),
    ),
    Bad(
        "column of another type",
        "format",
        "raw_output holds",
        lambda run, folder: _parquet(
            run, folder, lambda t: _column(t, "raw_output", [1] * t.num_rows, pa.int64())
        ),
    ),
    Bad(
        "too many rows",
        "size",
        "has more than",
        lambda run, folder: _parquet(run, folder, lambda table: pa.concat_tables([table] * 6)),
    ),
    Bad("too large", "size", "as much as is read", _raw(b"{" + b" " * 5_000_000, "p.jsonl")),
    Bad(
        "huge text",
        "size",
        "characters, at most",
        lambda run, folder: _changed(run, folder, lambda row: row.update(raw_output="a" * 300_000)),
    ),
    Bad("small file, a gigabyte of text", "size", "at most", _dictionary_bomb),
    Bad("broken line", "format", NO_PREDICTION, _first_line(b'{"id"', b'{"id')),
    Bad(
        "deep nesting",
        "format",
        "nested too deeply",
        _first_line(b'"logprobs":null', b'"logprobs":' + b"[" * 50_000 + b"]" * 50_000),
    ),
    Bad(
        "gigantic integer",
        "format",
        "out of range",
        _first_line(b'"retries":0', b'"retries":1' + b"0" * 5_000),
    ),
    Bad(
        "integer beyond 2^53",
        "format",
        "beyond 2^53",
        _first_line(b'"retries":0', b'"retries":9' + b"0" * 18),
    ),
    Bad("negative count", "format", "negative", _first_line(b'"repeat":0', b'"repeat":-1')),
    Bad(
        "NaN in JSON",
        "format",
        NO_PREDICTION,
        _first_line(b'"latency_s":null', b'"latency_s":NaN'),
    ),
    Bad(
        "NaN in Parquet",
        "format",
        "nan is not a number",
        lambda run, folder: _parquet(
            run, folder, lambda t: _column(t, "latency_s", [float("nan")] * t.num_rows, pa.float64())
        ),
    ),
    Bad("no UTF-8", "format", NO_PREDICTION, _first_line(b'"category":"', b'"category":"\xff\xfe')),
    Bad(
        "half a surrogate",
        "format",
        NO_PREDICTION,
        _first_line(b'r":null', b'r":"\\ud800"'),
    ),
    Bad(
        "another dataset",
        "dataset",
        "version '0.0.1'",
        lambda run, folder: _record(run, folder, _fingerprint),
    ),
    Bad("other words", "dataset", "in other words", lambda run, folder: _changed(run, folder, _other_words)),
    Bad(
        "rows missing",
        "ids",
        "missing",
        lambda run, folder: _parquet(run, folder, lambda table: table.slice(0, 50)),
    ),
    Bad("row unknown", "ids", "1 unknown", _first_line(b'"id":"', b'"id":"<script>alert(1)</script>')),
    Bad(
        "row twice",
        "ids",
        "1 duplicate",
        lambda run, folder: _parquet(run, folder, lambda t: pa.concat_tables([t, t.slice(0, 1)])),
    ),
    Bad("rows unanswered", "ids", "have no answer", lambda run, folder: _changed(run, folder, _unanswered)),
    Bad(
        "no run record",
        "record",
        "there is no run record",
        lambda run, folder: Upload(run / "predictions.parquet", None),
    ),
    Bad(
        "run record that is none",
        "record",
        "cannot be read",
        lambda run, folder: Upload(run / "predictions.parquet", run / "predictions.parquet"),
    ),
    Bad("record of another model", "record", "'somebody-else'", lambda r, f: _record(r, f, _model)),
    Bad("record of a selection", "record", "selected rows", lambda r, f: _record(r, f, _selection)),
    Bad("name with markup", "name", "cannot be listed", _named("<img src=x onerror=alert(1)>")),
    Bad("name with a path", "name", "cannot be listed", _named("../../etc/passwd")),
    Bad("name with a formula", "name", "cannot be listed", _named("=HYPERLINK(1)")),
    Bad("name in another script", "name", "cannot be listed", _named("Qw\u0435n3-8B")),
    Bad("name like a listed one", "name", "looks like 'o4-mini'", _named("04-mini")),
    Bad(
        "error never injected",
        "protocol",
        "was not answered with the error",
        lambda r, f: _changed(r, f, _one_pass),
    ),
    Bad(
        "error without a call",
        "protocol",
        "first reply has no call",
        lambda r, f: _changed(r, f, _never_called),
    ),
)
