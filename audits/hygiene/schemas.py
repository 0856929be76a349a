"""Are a tool's parameters a JSON Schema (2020-12) that ends in itself?"""

from collections.abc import Iterator
from functools import cache, lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias
from urllib.parse import unquote

from robustbench_tc.errors import need_extra
from robustbench_tc.eval.score.matchers.subschemas import pointed_at
from robustbench_tc.own.schemas import MAPS, REFS
from robustbench_tc.schema import Json, dumps, loads

Path: TypeAlias = tuple[str, ...]
"""The keys that lead to a place in a schema."""

_FOREIGN = ("$schema", "$id", "$vocabulary", "$anchor", "$dynamicAnchor", "$recursiveAnchor")
"""Keywords that give a schema another address, or another language, than the row says."""

_VALUES = frozenset({"enum", "const", "default", "example", "examples"})
"""Keywords that hold data."""

DEEPEST = 64
"""Levels of a schema in which descriptions are looked for."""


def invalid(parameters: Json) -> str:
    """What is wrong with the schema, or "". Tools that differ in descriptions only are asked about once."""
    return _invalid(dumps(_undescribed(parameters)))


def _undescribed(schema: Json, depth: int = 0) -> Json:
    """The schema with its descriptions, which may be any text, made empty."""
    if isinstance(schema, dict) and depth < DEEPEST:
        return {
            key: "" if key == "description" and isinstance(value, str) else _undescribed(value, depth + 1)
            for key, value in schema.items()
        }
    return schema


@lru_cache(maxsize=65_536)
def _invalid(text: str) -> str:
    schema = loads(text)
    try:
        error = next(_validator().iter_errors(schema), None)
    except RecursionError:
        return "the schema nests too deep"
    if error is not None:
        place = "/".join(map(str, error.absolute_path))
        return f"not a JSON Schema: {error.validator} at /{place}"
    leads: dict[Path, Path] = {}
    for at, value in _keywords(schema):
        if at[-1] in _FOREIGN:
            return f"{at[-1]} in a tool's schema"
        if not str(value).startswith("#"):
            return f"a remote {at[-1]}"
        if not isinstance(pointed_at(value, schema), dict | bool):
            return "a $ref that leads nowhere"
        parts = unquote(str(value)).split("/")[1:]
        leads[at] = tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)
    inside = {one: [other for other in leads if other[: len(to)] == to] for one, to in leads.items()}
    try:
        TopologicalSorter(inside).prepare()
    except CycleError:
        return "a $ref that leads back to itself"
    return ""


def _keywords(schema: Json) -> Iterator[tuple[Path, Json]]:
    """Every reference and foreign keyword, also where no keyword looks: a reference may lead there."""
    stack: list[tuple[Path, Json]] = [((), schema)]
    while stack:
        place, node = stack.pop()
        if isinstance(node, list):
            stack += [((*place, str(at)), inner) for at, inner in enumerate(node)]
        for key, value in node.items() if isinstance(node, dict) else ():
            if key in REFS or key in _FOREIGN:
                yield (*place, key), value
            elif key in MAPS and isinstance(value, dict):
                stack += [((*place, key, name), inner) for name, inner in value.items()]
            elif key not in _VALUES:
                stack.append(((*place, key), value))


@cache
def _validator() -> Any:
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        raise need_extra("jsonschema", "audit") from None
    return Draft202012Validator(Draft202012Validator.META_SCHEMA)
