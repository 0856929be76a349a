"""A tool's signature as a JSON Schema, whether arguments fit one, and the tool's errors as agents read them.

Types that a parameter of a world's tool can have: str, int, float, bool, dict, list, list[...] of these,
Literal[...], any of them `| None` with None as the default, and Annotated[type, "description"].
"""

import functools
import inspect
import itertools
import json
import math
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple

Json = Any

MAX_ARGUMENT_CHARACTERS = 100_000
"""Texts of one argument, keys included, taken together; every other value counts as one character."""

MAX_ARGUMENT_DEPTH = 32
"""Lists and objects within each other."""

_DEEPEST = 20
"""Schemas are looked into so far: one of a user's own may be deeper than Python's stack."""

_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool,
    "array": (list, tuple), "object": dict, "null": type(None),
}  # fmt: skip


_JSON_TYPES: dict[type, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array",
}  # fmt: skip


@functools.cache
def schema(method: Callable[..., Any]) -> dict[str, Json]:
    """The JSON Schema of a tool's parameters, without self. Raises TypeError for a signature that no schema
    can say."""
    try:
        hints = typing.get_type_hints(method, include_extras=True)
    except Exception as error:  # annotations are code: a misspelt name, a module that is not there
        raise TypeError(f"its types cannot be read: {error}") from None
    properties, required = {}, []
    for name, parameter in list(inspect.signature(method).parameters.items())[1:]:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"parameter {name!r} must be an ordinary one, without * or /")
        if name not in hints:
            raise TypeError(f"parameter {name!r} has no type: write {name}: str, or what it is")
        try:
            properties[name] = type_schema(hints[name])
        except TypeError as error:
            raise TypeError(f"parameter {name!r}: {error}") from None
        if typing.get_origin(hints[name]) is Annotated:
            properties[name]["description"] = str(typing.get_args(hints[name])[1])
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is not None:
            properties[name]["default"] = parameter.default
    return {"type": "object", "properties": properties, "required": required}


def type_schema(hint: Any) -> dict[str, Json]:
    """The JSON Schema of a type. Raises TypeError for one that parameters cannot have."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return type_schema(inner[0])
    if origin is Literal and len({type(one) for one in inner}) == 1 and type(inner[0]) in _JSON_TYPES:
        return {"type": _JSON_TYPES[type(inner[0])], "enum": list(inner)}
    if origin in (types.UnionType, typing.Union):
        given = [one for one in inner if one is not type(None)]
        if len(given) == 1:
            return type_schema(given[0])
    if origin is list:
        return {"type": "array", "items": type_schema(inner[0])}
    plain = dict if origin is dict else hint
    if isinstance(plain, type) and plain in _JSON_TYPES:
        return {"type": _JSON_TYPES[plain]}
    raise TypeError(
        f"the type {hint!r} cannot be offered: use str, int, float, bool, dict, list, list[...], Literal[...]"
    )


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
    return next(_in_object(parameters, arguments, "", 0), None)


def fits(parameters: Mapping[str, Json], arguments: Mapping[str, Json]) -> bool:
    """Whether a call with these arguments can be meant for this schema: names, required ones and types."""
    properties = parameters.get("properties") or {}
    required = parameters.get("required") or ()
    return (
        all(name in properties for name in arguments)
        and all(name in arguments for name in required)
        and wrong_type(parameters, arguments) is None
    )


def _in_object(
    schema: Mapping[str, Json], value: Mapping[str, Json], at: str, depth: int
) -> Iterator[WrongType]:
    properties = schema.get("properties")
    if isinstance(properties, dict) and depth <= _DEEPEST:
        for name, inner in value.items():
            if isinstance(declared := properties.get(name), dict):
                yield from _in_value(declared, inner, f"{at}.{name}" if at else name, depth + 1)


def _in_value(schema: Mapping[str, Json], value: Json, at: str, depth: int) -> Iterator[WrongType]:
    word, items = schema.get("type"), schema.get("items")
    if isinstance(word, str) and word in _TYPES:
        of_type = word == "boolean" if isinstance(value, bool) else isinstance(value, _TYPES[word])
        if not of_type:
            yield WrongType(at, word)
    if isinstance(value, dict):
        yield from _in_object(schema, value, at, depth)
    elif isinstance(value, list) and isinstance(items, dict) and depth <= _DEEPEST:
        for index, one in enumerate(value):
            yield from _in_value(items, one, f"{at}[{index}]", depth + 1)


def misfit(parameters: Mapping[str, Json], arguments: Mapping[str, Json]) -> str | None:
    """What is wrong with the arguments of a world's own tool, in a few words; None where they fit.

    `parameters`: of `schema`. An argument may be None where that is its default."""
    properties = parameters["properties"]
    for name in arguments:
        if name not in properties:
            return f"unknown parameter {shortened(name)}"
    for name, declared in properties.items():
        required = name in parameters["required"]
        if name not in arguments:
            if required:
                return f"missing parameter {name!r}"
            continue
        value = arguments[name]
        if (unbounded := _unbounded(value)) is not None:
            return f"parameter {name!r} {unbounded}"
        is_default = value is None and not required and "default" not in declared
        if not is_default and not _is_one_of(declared, value):
            return f"parameter {name!r} must be {_expected(declared)}"
    return None


def _is_one_of(declared: Mapping[str, Json], value: Json) -> bool:
    """Whether a value has the declared type and is one of the values that are listed, in lists too."""
    if any(_in_value(declared, value, "", 0)) or value not in declared.get("enum", [value]):
        return False
    return "items" not in declared or all(_is_one_of(declared["items"], one) for one in value)


def _expected(declared: Mapping[str, Json]) -> str:
    if "enum" in declared:
        return f"one of {declared['enum']}"
    if "items" in declared:
        return f"a list of items {_expected(declared['items'])}"
    return f"of type {declared['type']}"


def relaxed(parameters: Mapping[str, Json], arguments: Mapping[str, Json]) -> dict[str, Json]:
    """The arguments with numbers and booleans that are written as text turned into what the tool takes."""
    open_types = {name: one["type"] for name, one in parameters["properties"].items() if "enum" not in one}
    return {
        name: _read_from_text(value, open_types.get(name)) if isinstance(value, str) else value
        for name, value in arguments.items()
    }


def _read_from_text(text: str, word: str | None) -> Json:
    if word in ("integer", "number") and re.fullmatch("-?[0-9]{1,18}", text):
        return int(text)
    if word == "number" and re.fullmatch(r"-?[0-9]{1,18}\.[0-9]{1,18}", text):
        return float(text)
    return {"true": True, "false": False}.get(text.lower(), text) if word == "boolean" else text


def _unbounded(value: Json) -> str | None:
    """Why no tool can take a value."""
    parts = list(itertools.islice(_parts(value), MAX_ARGUMENT_CHARACTERS + 1))  # a cycle has no end
    objects = [one for one, _ in parts if isinstance(one, dict)]
    texts = "".join(one for one, _ in parts if isinstance(one, str))
    wrong = {
        f"is nested deeper than {MAX_ARGUMENT_DEPTH} levels": any(
            depth > MAX_ARGUMENT_DEPTH for one, depth in parts if isinstance(one, dict | list)
        ),
        "has characters that are not valid Unicode": re.search("[\ud800-\udfff]", texts) is not None,
        "has a number beyond 64 bits": any(
            not -(2**63) <= one < 2**63 for one, _ in parts if isinstance(one, int)
        ),
        "has a number that is not finite": any(
            not math.isfinite(one) for one, _ in parts if isinstance(one, float)
        ),
        "has a key that is not a text": not all(isinstance(key, str) for one in objects for key in one),
        f"is longer than {MAX_ARGUMENT_CHARACTERS} characters": len(parts) + len(texts)
        > MAX_ARGUMENT_CHARACTERS,
        "is not JSON": not all(isinstance(one, str | int | float | dict | list | None) for one, _ in parts),
    }
    return next((why for why, found in wrong.items() if found), None)


def _parts(value: Json) -> Iterator[tuple[Json, int]]:
    """Every value and key in a value, with how deep it lies. Without recursion: that is up to the model."""
    left = [(value, 1)]
    while left:
        one, depth = left.pop()
        yield one, depth
        if isinstance(one, dict):
            left += [(key, depth) for key in one]
        if isinstance(one, dict | list):
            left += [(inner, depth + 1) for inner in (one.values() if isinstance(one, dict) else one)]


def shortened(text: object) -> str:
    """What a model wrote, as it may stand in an error: quoted, at most 80 characters of it."""
    said = str(text)
    return repr(said if len(said) <= 80 else f"{said[:79]}…")


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
