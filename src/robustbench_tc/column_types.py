"""Columns of a Parquet file, stated once: in the struct of its rows; as `datasets.Features`, and as the Arrow
schema that those make.

The last needs no `datasets`, whose import takes longer than many a command; a test holds the two together.
"""

import json
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

ColumnType: TypeAlias = str | list[Any] | dict[str, Any]
"""A type's name ("string", "int32", "json", …), a list with the type of its items, or a struct's fields."""

ColumnTypes: TypeAlias = Mapping[str, ColumnType]
"""Column → its type, in the order of the columns."""

Int32: TypeAlias = Annotated[int, "int32"]
"""A field whose column has 32 bits; those of other integers have 64."""

_PLAIN: dict[Any, ColumnType] = {
    bool: "bool",
    int: "int64",
    Int32: "int32",
    float: "float64",
    str: "string",
}

_ARROW = {"bool": "bool_"}
"""Names of types that `pyarrow` spells otherwise."""


def in_struct(kind: type[msgspec.Struct]) -> dict[str, ColumnType]:
    """The columns of a struct's fields: numbers, texts, lists of texts, objects of texts (messages) and lists
    of these; all else lies as canonical JSON text (`json_fields`)."""
    return {name: _column_type(hint) or "string" for name, hint in _hints(kind).items()}


@cache
def json_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields whose columns hold canonical JSON text."""
    return tuple(name for name, hint in _hints(kind).items() if _column_type(hint) is None)


def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _column_type(hint: Any) -> ColumnType | None:
    """None for what has no column type of its own."""
    origin, inner = get_origin(hint), [one for one in get_args(hint) if one is not NoneType]
    if origin is Literal:
        return "string"
    if origin in (Union, UnionType):
        return _column_type(inner[0]) if len(inner) == 1 else None
    if origin is tuple:
        item = _column_type(inner[0])
        return None if item is None else [item]
    if is_typeddict(hint) or (isinstance(hint, type) and issubclass(hint, msgspec.Struct)):
        fields = {name: _column_type(one) for name, one in _hints(hint).items()}
        return fields if all(one == "string" for one in fields.values()) else None
    return _PLAIN.get(hint)


def features(columns: ColumnTypes) -> "datasets.Features":
    """The columns for whoever works with `datasets`."""
    from datasets import Features, Json, List, Value

    def feature(given: ColumnType) -> Any:
        if isinstance(given, str):
            return Json() if given == "json" else Value(given)
        if isinstance(given, list):
            return List(feature(given[0]))
        return {name: feature(one) for name, one in given.items()}

    return Features({name: feature(given) for name, given in columns.items()})


def arrow_schema(columns: ColumnTypes) -> "pa.Schema":
    """The columns in Arrow's terms, with the note by which `datasets` knows them again."""
    import pyarrow as pa

    def type_of(given: ColumnType) -> pa.DataType:
        if isinstance(given, str):
            if given == "json":
                return pa.json_(pa.string())
            found: pa.DataType = getattr(pa, _ARROW.get(given, given))()
            return found
        if isinstance(given, list):
            return pa.list_(type_of(given[0]))
        return pa.struct([(name, type_of(one)) for name, one in given.items()])

    def note(given: ColumnType) -> dict[str, Any]:
        if isinstance(given, str):
            return {"_type": "Json"} if given == "json" else {"dtype": given, "_type": "Value"}
        if isinstance(given, list):
            return {"feature": note(given[0]), "_type": "List"}
        return {name: note(one) for name, one in given.items()}

    said = {"info": {"features": {name: note(given) for name, given in columns.items()}}}
    schema = pa.schema([(name, type_of(given)) for name, given in columns.items()])
    return schema.with_metadata({"huggingface": json.dumps(said)})
