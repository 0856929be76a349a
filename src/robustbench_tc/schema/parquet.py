"""Structs as Parquet: the columns, the Arrow schema and the `datasets` features that their annotations make.

Numbers, texts, objects of texts (messages) and lists of these have columns of their own type; all else lies
as canonical JSON text.
"""

import json as stdlib_json
import typing
from collections.abc import Iterable
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec

from .json import Json, dumps, loads

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

T = TypeVar("T", bound=msgspec.Struct)

Int32: TypeAlias = Annotated[int, "int32"]
"""A field whose column has 32 bits; those of other integers have 64."""

JsonObject: TypeAlias = Annotated[dict[str, Json], "datasets.Json"]
"""A field that `datasets` decodes for whoever loads it: verl wants an object there. What could meet the
limits of that decoder lies inside as text."""

_TYPES: dict[Any, dict[str, Any]] = {
    JsonObject: {"_type": "Json"},
    bool: {"dtype": "bool", "_type": "Value"},
    int: {"dtype": "int64", "_type": "Value"},
    Int32: {"dtype": "int32", "_type": "Value"},
    float: {"dtype": "float64", "_type": "Value"},
    str: {"dtype": "string", "_type": "Value"},
}
"""Annotation → its column, as `datasets` notes it."""

_TEXT = _TYPES[str]


def _columns(*kinds: type[msgspec.Struct]) -> dict[str, Any]:
    """Field → its column as `datasets` notes it."""
    return {name: _column(hint) or _TEXT for kind in kinds for name, hint in _hints(kind).items()}


def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _column(hint: Any) -> dict[str, Any] | None:
    """None for what has no column type of its own."""
    origin, inner = typing.get_origin(hint), [one for one in typing.get_args(hint) if one is not NoneType]
    if origin is Literal:
        return _TEXT
    if origin in (typing.Union, UnionType):
        return _column(inner[0]) if len(inner) == 1 else None
    if origin is tuple:
        item = _column(inner[0])
        return None if item is None else {"feature": item, "_type": "List"}
    if typing.is_typeddict(hint) or (isinstance(hint, type) and issubclass(hint, msgspec.Struct)):
        fields = _hints(hint)  # looked at up to the first that is no text: a fault holds faults
        return dict.fromkeys(fields, _TEXT) if all(_column(one) == _TEXT for one in fields.values()) else None
    return _TYPES.get(hint)


@cache
def json_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields whose columns hold canonical JSON text."""
    return tuple(name for name, hint in _hints(kind).items() if _column(hint) in (None, _TYPES[JsonObject]))


def arrow_schema(*kinds: type[msgspec.Struct]) -> "pa.Schema":
    """The columns of the fields in Arrow's terms (those of a second struct follow), with the note by which
    `datasets` knows them again. It needs no `datasets`, whose import takes longer than many a command."""
    import pyarrow as pa

    def arrow_type(column: dict[str, Any]) -> pa.DataType:
        match column:
            case {"_type": "Json"}:
                return pa.json_(pa.string())
            case {"_type": "List", "feature": item}:
                return pa.list_(arrow_type(item))
            case {"_type": "Value", "dtype": name}:
                found: pa.DataType = pa.type_for_alias(name)
                return found
        return pa.struct([(name, arrow_type(one)) for name, one in column.items()])

    columns = _columns(*kinds)
    schema = pa.schema([(name, arrow_type(one)) for name, one in columns.items()])
    return schema.with_metadata({"huggingface": stdlib_json.dumps({"info": {"features": columns}})})


def features(kind: type[msgspec.Struct]) -> "datasets.Features":
    """The columns for whoever works with `datasets`."""
    from datasets import Features

    return Features.from_dict(_columns(kind))


def columns(records: Iterable[T], kind: type[T]) -> dict[str, list[Any]]:
    """Records as columns ready for Arrow: JSON-valued fields as canonical text, nulls kept."""
    records, out = list(records), dict[str, list[Any]]()
    for name in kind.__struct_fields__:
        values = list(map(attrgetter(name), records))
        if name in json_fields(kind):
            values = [None if value is None else dumps(value) for value in values]
        elif isinstance(next(iter(values), None), tuple):
            values = msgspec.to_builtins(values)
        out[name] = values
    return out


def arrow_table(records: Iterable[T], kind: type[T]) -> "pa.Table":
    """Records as an Arrow table whose schema carries the `datasets` features."""
    import pyarrow as pa

    made, schema = columns(records, kind), arrow_schema(kind)
    return pa.table([pa.array(made[field.name], field.type) for field in schema], schema=schema)


def plain_row(record: msgspec.Struct) -> dict[str, Any]:
    """A record as a row of Parquet or `datasets`."""
    return {name: values[0] for name, values in columns([record], type(record)).items()}


def record(row: dict[str, Any], kind: type[T]) -> T:
    """A Parquet or `datasets` row back as its struct; the inverse of `plain_row`. Unknown columns are
    ignored.

    Raises ValueError (msgspec.ValidationError) with the path of what does not fit.
    """
    plain = {name: row[name] for name in kind.__struct_fields__ if name in row}
    for name in json_fields(kind):
        if isinstance(plain.get(name), str):
            plain[name] = loads(plain[name])
    return msgspec.convert(plain, kind)
