"""Columns of a Parquet file, stated once: as `datasets.Features`, and as the Arrow schema that those make.

The second needs no `datasets`, whose import takes longer than many a command; a test holds the two together.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

ColumnType: TypeAlias = str | list[Any] | dict[str, Any]
"""A type's name ("string", "int32", "json", …), a list with the type of its items, or a struct's fields."""

ColumnTypes: TypeAlias = Mapping[str, ColumnType]
"""Column → its type, in the order of the columns."""

_ARROW = {"bool": "bool_"}
"""Names of types that `pyarrow` spells otherwise."""


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
