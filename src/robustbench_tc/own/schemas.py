"""Whether a parameter schema can be used: well-formed, with references that lead somewhere.

Schemas are kept as they are written; legal recursion is kept too. What no validator can follow is named.
"""

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from urllib.parse import unquote

from robustbench_tc.schema import Json

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


def problem(schema: dict[str, Json]) -> str | None:
    """Why a tool's parameter schema cannot be used; None where it can."""
    nodes = list(walk(schema))
    for place, node in nodes:
        if wrong := _malformed(node):
            return f"{place or 'the schema'}: {wrong}"
    targets: dict[int, list[dict[str, Json]]] = {}
    anchors = _anchors(schema, nodes)
    for place, node in nodes:
        for keyword in sorted(REFS & node.keys()):
            found, reason = target(schema, node[keyword], anchors)
            if reason:
                return f"{place or 'the schema'}: {keyword} {str(node[keyword])[:80]!r} {reason}"
            if isinstance(found, dict):
                targets.setdefault(id(node), []).append(found)
    graph = {id(node): [id(one) for one in _same_value(node, targets)] for _, node in nodes}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:  # a schema that asks for itself about the same value
        at = next(place for place, node in nodes if id(node) == error.args[1][0])
        return f"{at or 'the schema'}: a circle of $ref without content; it describes no value"
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


def _malformed(node: dict[str, Json]) -> str | None:
    for keyword, value in node.items():
        if keyword in MAPS:
            if not isinstance(value, dict):
                return f"{keyword!r} must be an object"
            if bad := next((name for name, one in value.items() if not isinstance(one, (dict, bool))), None):
                return f"{keyword!r}: {bad[:60]!r} must be a schema (an object)"
        elif keyword in LISTS:
            if not isinstance(value, list) or not all(isinstance(one, (dict, bool)) for one in value):
                return f"{keyword!r} must be a list of schemas"
        elif keyword in SINGLE:
            several = value if isinstance(value, list) and keyword == "items" else [value]
            if not all(isinstance(one, (dict, bool)) for one in several):
                return f"{keyword!r} must be a schema (an object)"
    required, types = node.get("required", []), node.get("type", "object")
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return "'required' must be a list of names, beside 'properties'"
    if not all(isinstance(one, str) for one in (types if isinstance(types, list) else [types])):
        return "'type' must be a name or a list of names"
    if not isinstance(node.get("enum", []), list):
        return "'enum' must be a list"
    return None


def _anchors(schema: dict[str, Json], nodes: list[tuple[str, dict[str, Json]]]) -> dict[str, Json]:
    """What a `$ref` may name beside a pointer: the root by its `$id`, schemas by their `$anchor`."""
    found: dict[str, Json] = {"": schema}
    for _, node in nodes:
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(name := node.get(keyword), str):
                found.setdefault(name, node)
    return found


def target(root: dict[str, Json], ref: Json, anchors: dict[str, Json]) -> tuple[Json, str | None]:
    """What a reference means, or why it means nothing."""
    if not isinstance(ref, str):
        return None, "must be a text"
    base, _, fragment = ref.partition("#")
    own = root.get("$id")
    if base and not (isinstance(own, str) and base == own.rstrip("#")):
        return None, "leads out of the file, and nothing is fetched; put the schema under $defs"
    fragment = unquote(fragment)
    if not fragment.startswith("/"):
        if fragment in anchors:
            return anchors[fragment], None
        return None, "leads nowhere: no schema has this $anchor"
    node: Json = root
    for part in fragment[1:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and name in node:
            node = node[name]
        elif isinstance(node, list) and re.fullmatch(r"0|[1-9][0-9]{0,5}", name) and int(name) < len(node):
            node = node[int(name)]
        else:
            return None, "leads nowhere in this schema"
    if not isinstance(node, (dict, bool)):
        return None, "leads to something that is not a schema"
    return node, None


def _same_value(node: dict[str, Json], targets: dict[int, list[dict[str, Json]]]) -> list[dict[str, Json]]:
    found = list(targets.get(id(node), ()))
    for keyword in _SAME_VALUE:
        value = node.get(keyword)
        inner = value if isinstance(value, list) else [value]
        if keyword == "dependentSchemas" and isinstance(value, dict):
            inner = list(value.values())
        found += [one for one in inner if isinstance(one, dict)]
    return found
