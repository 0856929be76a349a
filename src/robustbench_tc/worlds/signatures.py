"""What a tool's signature says: the JSON Schema that an agent is shown, and that its arguments are held to.

Types that a parameter can have: str, int, float, bool, dict, list, list[...] of these, Literal[...], any of
them `| None` with None as the default, and Annotated[type, "description"].
"""

import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal

Json = Any
Method = Callable[..., Any]

_JSON_TYPES: dict[type, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array",
}  # fmt: skip


@functools.cache
def schema(method: Method) -> dict[str, Json]:
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
    if origin is dict:
        return {"type": "object"}
    if isinstance(hint, type) and hint in _JSON_TYPES:
        return {"type": _JSON_TYPES[hint]}
    raise TypeError(
        f"the type {hint!r} cannot be offered: use str, int, float, bool, dict, list, list[...], Literal[...]"
    )
