"""Whether a parameter schema can be used: well-formed, with references that lead somewhere.

Schemas are kept as they are written; legal recursion is kept too. What no validator can follow is named.
"""

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from robustbench_tc.schema import Json

from ..eval.score.matchers.subschemas import anchors, pointed_at

MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords that hold schemas by name."""
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
SINGLE = frozenset(
    {"items", "additionalProperties", "additionalItems", "contains", "propertyNames", "not", "if", "then"}
    | {"else", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
)
REFS = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
"""Keywords whose schemas judge the value itself, not a part of it."""
_KINDS: dict[str, Any] = {
    **dict.fromkeys(MAPS, dict[str, dict[str, Any] | bool]),
    **dict.fromkeys(LISTS, list[dict[str, Any] | bool]),
    **dict.fromkeys(SINGLE, dict[str, Any] | bool),
    "items": dict[str, Any] | bool | list[dict[str, Any] | bool],
    "required": list[str],
    "type": str | list[str],
    "enum": list[Any],
}
"""What a keyword's value has to be for a schema to be read at all."""


def problem(schema: dict[str, Json]) -> str | None:
    """Why a tool's parameter schema cannot be used; None where it can."""
    nodes, anchored = list(walk(schema)), anchors(schema)
    targets: dict[int, list[dict[str, Json]]] = {}
    for place, node in nodes:
        if wrong := misfit(node, _KINDS):
            return f"{place or 'the schema'}: {wrong}"
        for keyword in sorted(REFS & node.keys()):
            found = pointed_at(node[keyword], schema, anchored)
            if isinstance(found, dict):
                targets.setdefault(id(node), []).append(found)
            elif not isinstance(found, bool):
                why = "leads nowhere in this schema, and nothing is fetched; put what it names under $defs"
                return f"{place or 'the schema'}: {keyword} {str(node[keyword])[:80]!r} {why}"
    graph = {id(node): [id(one) for one in _same_value(node, targets)] for _, node in nodes}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:  # a schema that asks for itself about the same value
        at = next(place for place, node in nodes if id(node) == error.args[1][0])
        return f"{at or 'the schema'}: a circle of $ref without content; it describes no value"
    return None


def misfit(node: dict[str, Json], kinds: dict[str, Any]) -> str | None:
    """The first keyword of a schema whose value is not of its kind; None where all are."""
    for keyword in node:
        if keyword not in kinds:
            continue
        try:
            msgspec.convert(node[keyword], kinds[keyword])
        except msgspec.ValidationError as error:
            return f"{keyword!r}: {error}"
    return None


def walk(schema: dict[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    """Every schema object with its JSON pointer, the root first; data (`enum`, `default`) is left out."""
    stack: list[tuple[str, Json]] = [("", schema)]
    while stack:
        place, node = stack.pop()
        if not isinstance(node, dict):
            continue
        yield place, node
        parts: list[tuple[str, Json]] = []
        for keyword, value in node.items():
            at = f"{place}/{keyword}"
            if keyword in MAPS and isinstance(value, dict):
                parts += [
                    (f"{at}/{name.replace('~', '~0').replace('/', '~1')}", inner)
                    for name, inner in value.items()
                ]
            elif isinstance(value, list) and (keyword in LISTS or keyword == "items"):
                parts += [(f"{at}/{index}", inner) for index, inner in enumerate(value)]
            elif keyword in SINGLE:
                parts.append((at, value))
        stack += reversed(parts)


def _same_value(node: dict[str, Json], targets: dict[int, list[dict[str, Json]]]) -> list[dict[str, Json]]:
    found = list(targets.get(id(node), ()))
    for keyword in (one for one in _SAME_VALUE if one in node):
        value = node[keyword]
        inner = value if isinstance(value, list) else [value]
        if keyword == "dependentSchemas" and isinstance(value, dict):
            inner = list(value.values())
        found += [one for one in inner if isinstance(one, dict)]
    return found
