"""New tools as a model writes them (`redundant`): read from its text, checked, bounded."""

import json
import re

from robustbench_tc.schema import Json, dumps

from ..perturb.base import TextRequest, normalise_text

MAX_TOOLS = 2
MAX_BYTES = 8192
"""A longer definition is not a tool but an attack on the context window."""

MAX_DEPTH = 8
"""Levels of a parameter schema."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,99}")
_WORDS = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_.\- ]{0,98}[A-Za-z0-9_.\-])?")
"""Names of several words, as rlla's tools have them: only beside a tool that is named so."""
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})

ANSWER_SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "tools": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_TOOLS,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "description": {"type": "string"},
                    "parameters": {
                        "type": "object",
                        "properties": {
                            "type": {"type": "string", "enum": ["object"]},
                            "properties": {"type": "object"},
                            "required": {"type": "array", "items": {"type": "string"}},
                        },
                        "required": ["type", "properties", "required"],
                    },
                },
                "required": ["name", "description", "parameters"],
            },
        }
    },
    "required": ["tools"],
}
"""What a model is asked to answer, for endpoints with structured output."""


def refuse_tools(request: TextRequest, answer: Json) -> str | None:
    """Why `answer` is not a list of new tools for the one that the request names, or None.

    One or two well-formed tools whose names differ from the imitated one and from each other, each with a
    description of its own. Names that a registry already has are the unit's business: registries differ.
    """
    if not isinstance(answer, list) or not answer:
        return "not a list of tools"
    if len(answer) > MAX_TOOLS:
        return f"{len(answer)} tools, at most {MAX_TOOLS} are wanted"
    taken = {(request.tool or "").casefold()}
    for tool in answer:
        if reason := _malformed(tool, _WORDS if " " in (request.tool or "") else _NAME):
            return reason
        if tool["name"].casefold() in taken:
            return f"the name {tool['name']!r} is taken"
        taken.add(tool["name"].casefold())
        if normalise_text(tool["description"]) == normalise_text(request.input):
            return f"{tool['name']!r} repeats the description of the tool it stands beside"
    return None


def _malformed(tool: Json, names: re.Pattern[str]) -> str | None:
    if not isinstance(tool, dict) or set(tool) != {"name", "description", "parameters"}:
        return "a tool holds exactly name, description and parameters"
    name, description, parameters = tool["name"], tool["description"], tool["parameters"]
    if not isinstance(name, str) or not names.fullmatch(name):
        return f"{str(name)[:60]!r} is not a name of a tool"
    if not isinstance(description, str) or not description.strip():
        return f"{name!r} has no description"
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        return f"the parameters of {name!r} are not a JSON Schema object"
    properties, required = parameters.get("properties"), parameters.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return f"the parameters of {name!r} are not a JSON Schema object"
    if any(not isinstance(item, str) or item not in properties for item in required):
        return f"{name!r} requires a parameter that it does not declare"
    if any(not _is_schema(inner, MAX_DEPTH) for inner in properties.values()):
        return f"a parameter of {name!r} is not a JSON Schema"
    if len(dumps(tool).encode()) > MAX_BYTES:
        return f"the definition of {name!r} is longer than {MAX_BYTES} bytes"
    return None


def _is_schema(value: Json, depth: int) -> bool:
    """A schema as far as a registry shows one: a type by name, and nested schemas where they belong."""
    if not isinstance(value, dict) or depth == 0:
        return False
    kind = value.get("type", "string")
    kinds = kind if isinstance(kind, list) else [kind]
    if not all(isinstance(item, str) and item in _TYPES for item in kinds):
        return False
    properties, items = value.get("properties", {}), value.get("items", {})
    return (
        isinstance(properties, dict)
        and all(_is_schema(inner, depth - 1) for inner in properties.values())
        and (items == {} or _is_schema(items, depth - 1))
    )


def read_tools(text: str) -> Json:
    """The list of tools in a model's answer: JSON as asked, or JSON somewhere in the text; None without any.

    A tool keeps only its three fields; a missing `required` becomes an empty list.
    """
    for value in _json_values(text[: 64 * 1024]):
        if isinstance(value, dict):
            value = value.get("tools", [value])
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            return [_tidy(item) for item in value]
    return None


def read_object(text: str) -> Json:
    """The first JSON object in a model's answer; None without any."""
    return next((value for value in _json_values(text[: 64 * 1024]) if isinstance(value, dict)), None)


def _tidy(tool: dict[str, Json]) -> dict[str, Json]:
    if isinstance(tool.get("function"), dict):  # the wire format of the tools parameter
        tool = tool["function"]
    found: dict[str, Json] = {
        name: tool[name] for name in ("name", "description", "parameters") if name in tool
    }
    parameters = found.get("parameters")
    if isinstance(parameters, dict):
        found["parameters"] = {"type": "object", "properties": {}, "required": [], **parameters}
    return found


def _json_values(text: str) -> list[Json]:
    """The outermost JSON objects and lists in a text, a bounded number of them, in order."""
    decoder = json.JSONDecoder()
    found: list[Json] = []
    place = 0
    for _ in range(32):
        start = re.compile(r"[\[{]").search(text, place)
        if start is None:
            break
        try:
            value, place = decoder.raw_decode(text, start.start())
            found.append(value)
        except (ValueError, RecursionError):
            place = start.start() + 1
    return found
