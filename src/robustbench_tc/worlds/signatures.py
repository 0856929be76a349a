"""What a tool's signature says: the JSON Schema that an agent is shown, and whether arguments fit it.

Types that a parameter can have: str, int, float, bool, dict, list, list[...] of these, Literal[...], any of
them `| None` with None as the default, and Annotated[type, "description"].
"""

import functools
import inspect
import itertools
import math
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

Json = Any
Method = Callable[..., Any]

MAX_ARGUMENT_CHARACTERS = 100_000
"""Texts of one argument, keys included, taken together; every other value counts as one character."""

MAX_ARGUMENT_DEPTH = 32
"""Lists and objects within each other."""

_JSON_TYPES: dict[type, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array",
}  # fmt: skip


class Parameter(NamedTuple):
    """A parameter of a tool."""

    hint: Any
    description: str
    default: Any
    """`inspect.Parameter.empty` where the parameter is required."""

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


@functools.cache
def parameters(method: Method) -> dict[str, Parameter]:
    """The parameters by name, without self. Raises TypeError for a signature that no schema can say."""
    try:
        hints = typing.get_type_hints(method, include_extras=True)
    except Exception as error:  # annotations are code: a misspelt name, a module that is not there
        raise TypeError(f"its types cannot be read: {error}") from None
    found = {}
    for name, parameter in list(inspect.signature(method).parameters.items())[1:]:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"parameter {name!r} must be an ordinary one, without * or /")
        if name not in hints:
            raise TypeError(f"parameter {name!r} has no type: write {name}: str, or what it is")
        hint, about = hints[name], ""
        if typing.get_origin(hint) is Annotated:
            hint, about = typing.get_args(hint)[:2]
        try:
            type_schema(hint)
        except TypeError as error:
            raise TypeError(f"parameter {name!r}: {error}") from None
        found[name] = Parameter(hint, str(about), parameter.default)
    return found


def schema(method: Method) -> dict[str, Json]:
    """The JSON Schema of a tool's parameters."""
    properties, required = {}, []
    for name, parameter in parameters(method).items():
        properties[name] = type_schema(parameter.hint)
        if parameter.description:
            properties[name]["description"] = parameter.description
        if parameter.required:
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
    if origin is dict:
        return {"type": "object"}
    if isinstance(hint, type) and hint in _JSON_TYPES:
        return {"type": _JSON_TYPES[hint]}
    raise TypeError(
        f"the type {hint!r} cannot be offered: use str, int, float, bool, dict, list, list[...], Literal[...]"
    )


def misfit(method: Method, arguments: Mapping[str, Json]) -> str | None:
    """What is wrong with the arguments, in a few words; None where they fit."""
    declared = parameters(method)
    for name in arguments:
        if name not in declared:
            return f"unknown parameter {shortened(name)}"
    for name, parameter in declared.items():
        if name not in arguments:
            if parameter.required:
                return f"missing parameter {name!r}"
            continue
        value = arguments[name]
        if (unbounded := _unbounded(value)) is not None:
            return f"parameter {name!r} {unbounded}"
        if value is None and parameter.default is None:
            continue
        try:
            msgspec.convert(value, parameter.hint)
        except msgspec.ValidationError:
            return f"parameter {name!r} must be {_expected(parameter.hint)}"
    return None


def relaxed(method: Method, arguments: Mapping[str, Json]) -> dict[str, Json]:
    """The arguments with numbers and booleans that are written as text turned into what the tool takes."""
    declared = parameters(method)
    return {
        name: _read_from_text(value, _bare(declared[name].hint)) if name in declared else value
        for name, value in arguments.items()
    }


def _read_from_text(value: Json, hint: Any) -> Json:
    if not isinstance(value, str):
        return value
    if hint in (int, float) and _WHOLE.fullmatch(value):
        return int(value)
    if hint is float and _DECIMAL.fullmatch(value):
        return float(value)
    if hint is bool:
        return {"true": True, "false": False}.get(value.lower(), value)
    return value


_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DECIMAL = re.compile(r"-?[0-9]{1,18}\.[0-9]{1,18}")


def shortened(text: object) -> str:
    """What a model wrote, as it may stand in an error: quoted, at most 80 characters of it."""
    said = str(text)
    return repr(said if len(said) <= 80 else f"{said[:79]}…")


def _unbounded(value: Json) -> str | None:
    """Why no tool can take a value."""
    parts = list(itertools.islice(_parts(value), MAX_ARGUMENT_CHARACTERS + 1))  # a cycle has no end
    objects = [one for one, _ in parts if isinstance(one, dict)]
    texts = "".join(one for one, _ in parts if isinstance(one, str))
    wrong = {
        f"is nested deeper than {MAX_ARGUMENT_DEPTH} levels": any(
            depth > MAX_ARGUMENT_DEPTH for one, depth in parts if isinstance(one, dict | list)
        ),
        "has characters that are not valid Unicode": _SURROGATE.search(texts) is not None,
        "has a number beyond 64 bits": any(
            not -(2**63) <= one < 2**63 for one, _ in parts if isinstance(one, int)
        ),
        "has a number that is not finite": any(
            not math.isfinite(one) for one, _ in parts if isinstance(one, float)
        ),
        "has a key that is not a text": not all(isinstance(key, str) for one in objects for key in one),
        f"is longer than {MAX_ARGUMENT_CHARACTERS} characters": len(parts) + len(texts)
        > MAX_ARGUMENT_CHARACTERS,
        "is not JSON": not all(isinstance(one, (*_JSON_TYPES, type(None))) for one, _ in parts),
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


_SURROGATE = re.compile("[\ud800-\udfff]")


def _expected(hint: Any) -> str:
    found = type_schema(hint)
    if "enum" in found:
        return f"one of {found['enum']}"
    if "items" in found:
        return f"a list of items {_expected(typing.get_args(_bare(hint))[0])}"
    return f"of type {found['type']}"


def _bare(hint: Any) -> Any:
    """The type without Annotated and `| None`."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _bare(inner[0])
    if origin in (types.UnionType, typing.Union):
        return _bare(next(one for one in inner if one is not type(None)))
    return hint
