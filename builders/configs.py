"""The configs of the benchmark: their names, their columns, and the rows of those that hold no samples."""

from collections.abc import Sequence
from typing import Any

from robustbench_tc import schema, taxonomy
from robustbench_tc.column_types import ColumnType, ColumnTypes

VERSION = "1.3.0"
"""Of the rows that this code builds: `datasets` caches them, and clean rows have their digests, under it. A
build has no version, a release has its own."""

CONFIGS = (taxonomy.CLEAN, *taxonomy.codes())
"""The 23 sample configs; `clean` is the default."""

EXTENSIONS = tuple(kind.code for kind in taxonomy.types("extension"))
"""Configs beside them, of types that are built only when named."""

TABLES = ("taxonomy", "evidence", "known_issues")
"""Configs that describe the benchmark instead of holding samples."""

LICENSE = "apache-2.0"

_TABLE_COLUMNS: dict[str, dict[str, ColumnType]] = {
    "taxonomy": {
        "order": "int32",
        "code": "string",
        "display_name": "string",
        "component": "string",
        "what_is_modified": "string",
        "method": "string",
        "status": "string",
        "static": "bool",
        "train_augmentable": "bool",
        "sources": ["string"],
        "ground_truth_changes": "bool",
    },
    "evidence": {
        "type_code": "string",
        "display_name": "string",
        "component": "string",
        "repo": "string",
        "number": "int64",
        "kind": "string",
        "url": "string",
        "title": "string",
        "claim": "string",
        "verdict": "string",
        "note": "string",
        "checked_on": "string",
        "method": "string",
        "role": "string",
        "state": "string",
        "construct_fit": "string",
    },
    "known_issues": {
        "source": "string",
        "file": "string",
        "record": "string",
        "clean_id": "string",
        "reason": "string",
        "detail": "string",
        "status": "string",
    },
}


def columns_of(config: str) -> ColumnTypes:
    """The columns of a config: the same for all 23 sample configs, its own for each table."""
    return _TABLE_COLUMNS.get(config) or schema.sample_columns()


def table_rows(config: str, issues: tuple[Any, ...] = (), codes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The rows of a table config; `issues` are the readers' known issues, `codes` types beside the stated."""
    if config == "taxonomy":
        stated = (kind.code for kind in taxonomy.types("all"))
        return [taxonomy.published(kind) for kind in taxonomy.among((*stated, *codes))]
    if config == "evidence":
        return [{name: row.get(name) for name in _TABLE_COLUMNS[config]} for row in taxonomy.evidence()]
    return [
        {n: None if getattr(i, n) is None else str(getattr(i, n)) for n in _TABLE_COLUMNS[config]}
        for i in issues
    ]
