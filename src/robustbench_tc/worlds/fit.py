"""Whether arguments fit a tool's JSON Schema, and the tool's errors as the agent reads them."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from ..schema import Json

_DEEPEST = 20
"""Schemas are looked into so far: one of a user's own may be deeper than Python's stack."""


class WrongType(NamedTuple):
    """An argument whose JSON type is not the declared one."""

    field: str
    """Its place: `items[0].quantity`."""
    expected: str
    """The schema's word for the type."""


def wrong_type(parameters: Mapping[str, Json], arguments: Mapping[str, Json]) -> WrongType | None:
    """The first argument whose JSON type differs from the schema's; None where all agree.

    Undeclared arguments and types that the schema leaves open are not looked at.
    """
    return _in_object(parameters, arguments, "", 0)


def fits(parameters: Mapping[str, Json], arguments: Mapping[str, Json]) -> bool:
    """Whether a call with these arguments can be meant for this schema: names, required ones and types."""
    properties = parameters.get("properties") or {}
    required = parameters.get("required") or ()
    return (
        all(name in properties for name in arguments)
        and all(name in arguments for name in required)
        and wrong_type(parameters, arguments) is None
    )


def error(text: str) -> str:
    """A tool's error as worlds write it."""
    return json.dumps({"error": text}, ensure_ascii=False)


def failed(text: str) -> bool:
    """Whether a result says that the call was not carried out, in the words of our worlds or of BFCL's."""
    if text.startswith("Error during execution:"):
        return True
    if not text.startswith("{"):
        return False
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "error" in found


def _in_object(
    schema: Mapping[str, Json], value: Mapping[str, Json], at: str, depth: int
) -> WrongType | None:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or depth > _DEEPEST:
        return None
    for name, inner in value.items():
        declared = properties.get(name)
        if isinstance(declared, dict):
            found = _in_value(declared, inner, f"{at}.{name}" if at else name, depth + 1)
            if found is not None:
                return found
    return None


def _in_value(schema: Mapping[str, Json], value: Json, at: str, depth: int) -> WrongType | None:
    word = schema.get("type")
    if not _is(value, word):
        return WrongType(at, str(word))
    if isinstance(value, dict):
        return _in_object(schema, value, at, depth)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict) and depth <= _DEEPEST:
        for index, one in enumerate(value):
            if (found := _in_value(items, one, f"{at}[{index}]", depth + 1)) is not None:
                return found
    return None


_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool,
    "array": (list, tuple), "object": dict, "null": type(None),
}  # fmt: skip


def _is(value: Json, word: Json) -> bool:
    if not isinstance(word, str) or word not in _TYPES:
        return True
    if isinstance(value, bool):
        return word == "boolean"
    return isinstance(value, _TYPES[word])
