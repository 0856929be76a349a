"""Whether gold arguments fit their tool's schema: a wrong gold must not become rows."""

from collections.abc import Mapping

from robustbench_tc.schema import Json

from ..eval.score.matchers import kind, matches
from ..eval.score.matchers.subschemas import pointed_at

_PARTS = 100
"""Schemas looked at behind one (`$ref`, `allOf`, `anyOf`); what lies beyond is not checked."""


def problem(arguments: Mapping[str, Json], schema: dict[str, Json], extra: bool) -> tuple[str, str] | None:
    """The first argument that does not fit, and why; None where all do."""
    properties, required, open_ = declared(schema, schema)
    for name, value in arguments.items():
        if name in properties:
            if found := _misfit(value, properties[name], schema, name in required):
                return name, found
        elif not extra and not open_:
            known = ", ".join(list(properties)[:20]) or "none"
            return name, f"is not a parameter of the tool (it has: {known[:200]})"
    for name in required:
        if name not in arguments:
            return name, "is required by the tool and missing"
    return None


def declared(
    schema: Json, root: dict[str, Json], left: list[None] | None = None
) -> tuple[dict[str, Json], list[str], bool]:
    """Parameters, required names and whether others are allowed by word; `$ref` and `allOf` included."""
    left = [None] * _PARTS if left is None else left
    if not isinstance(schema, dict):
        return {}, [], False
    if not left:
        return {}, [], True
    left.pop()
    properties: dict[str, Json] = {}
    required: list[str] = []
    open_ = bool(schema.get("additionalProperties", False)) or bool(schema.get("patternProperties"))
    inner = [(one, True) for one in schema.get("allOf", [])]
    inner += [(one, False) for word in ("anyOf", "oneOf") for one in schema.get(word, [])]
    if "$ref" in schema:
        inner.append((pointed_at(schema["$ref"], root), True))
    for one, always in inner:
        more, needed, also = declared(one, root, left)
        properties |= more
        required += needed if always else []
        open_ = open_ or also
    return properties | schema.get("properties", {}), [*required, *schema.get("required", [])], open_


def _misfit(value: Json, schema: Json, root: dict[str, Json], needed: bool = False) -> str | None:
    """Why a gold value cannot be right under a schema."""
    if kind(value) is not None:
        return next((found for one in _choices(value) if (found := _misfit(one, schema, root))), None)
    if value is None and not needed:
        return None  # null or absent
    types = _types(schema, root, [None] * _PARTS)
    word = _word(value)
    if types is not None and word not in types and not (word == "integer" and "number" in types):
        return f"is of type {word}, the tool wants {' or '.join(sorted(types)) or 'nothing'}"
    if not isinstance(schema, dict):
        return None
    choices = schema.get("enum")
    if (
        isinstance(value, str)
        and choices
        and not any(matches(value, {"exact": one}, None) for one in choices)
    ):
        allowed = ", ".join(str(one) for one in choices[:10])
        return f"is {value[:60]!r}, the tool allows: {allowed[:200]}"
    if isinstance(value, dict):
        properties, required, _ = declared(schema, root)
        for name, inner in value.items():
            if name in properties and (found := _misfit(inner, properties[name], root, name in required)):
                return f"{name[:60]!r} {found}"
        missing = next((name for name in required if name not in value), None)
        return None if missing is None else f"lacks {missing[:60]!r}, which the tool requires"
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return next((found for one in value if (found := _misfit(one, schema["items"], root, True))), None)
    return None


def _choices(matcher: dict[str, Json]) -> list[Json]:
    """The plain values that a matcher states of the parameter itself."""
    if "exact" in matcher:
        return [] if isinstance(matcher["exact"], dict) else [matcher["exact"]]
    stated = matcher.get("one_of")
    return stated if isinstance(stated, list) else []


def _word(value: Json) -> str:
    if isinstance(value, float) and value.is_integer():
        return "integer"
    words = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return words.get(type(value), "null")


_KNOWN = frozenset({"boolean", "integer", "number", "string", "array", "object", "null"})


def _types(schema: Json, root: dict[str, Json], left: list[None]) -> frozenset[str] | None:
    """JSON types that a schema allows; None where it does not say, or in words of its own."""
    if not isinstance(schema, dict) or not left:
        return None
    left.pop()
    if "$ref" in schema:
        return _types(pointed_at(schema["$ref"], root), root, left)
    if "type" in schema:
        words = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        found = frozenset(words) | ({"null"} if schema.get("nullable") is True else set())
        return found if found <= _KNOWN else None
    inner = [_types(one, root, left) for word in ("anyOf", "oneOf") for one in schema.get(word, [])]
    if not inner or None in inner:
        return None
    return frozenset().union(*(one for one in inner if one is not None))
