"""Are a tool's parameters a JSON Schema (2020-12) that ends in itself?"""

from functools import cache, lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

from robustbench_tc.errors import need_extra
from robustbench_tc.own.schemas import REFS, target, walk
from robustbench_tc.schema import Json, dumps, loads

_FOREIGN = ("$schema", "$id", "$vocabulary", "$anchor", "$dynamicAnchor", "$recursiveAnchor")
"""Keywords that give a schema another address, or another language, than the row says."""

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
    nodes = list(walk(schema))
    for _, node in nodes:
        for keyword, value in node.items():
            if keyword in _FOREIGN:
                return f"{keyword} in a tool's schema"
            if keyword in REFS and not str(value).startswith("#"):
                return f"a remote {keyword}"
    return _references(schema, nodes)


def _references(schema: Json, nodes: list[tuple[str, dict[str, Json]]]) -> str:
    """What is wrong with where its local references lead, or ""."""
    places = {id(node): place for place, node in nodes}
    leads: dict[str, str] = {}
    for place, node in nodes:
        for keyword in REFS & node.keys():
            found, why = target(schema, node[keyword], {"": schema})
            if why is not None:
                return "a $ref that leads nowhere"
            leads[f"{place}/{keyword}"] = places.get(id(found), "-")
    inside = {
        one: [other for other in leads if other.startswith(f"{place}/")] for one, place in leads.items()
    }
    try:
        TopologicalSorter(inside).prepare()
    except CycleError:
        return "a $ref that leads back to itself"
    return ""


@cache
def _validator() -> Any:
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        raise need_extra("jsonschema", "audit") from None
    return Draft202012Validator(Draft202012Validator.META_SCHEMA)
