"""The form in which ToolRL's prompts hold a registry and a dialogue.

    1. Name: find_city
    Description: Looks a city up.
    Parameters: {"q": {"description": "What to look for.", "type": "str, optional", "default": ""}}
    2. Name: …

Parsing keeps each original parameter text beside the schema made from it, so that a tool nobody touched is
written back byte for byte; a new tool is written in the same form and type words. The training data and
evaluation in its form write their tools here.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from robustbench_tc.schema import Json, Tool, dumps, loads

from . import json_schema

CALL_THOUGHT = (
    "<think> I should use the appropriate tool with proper parameters to respond to the user's need. </think>"
)
REPLY_THOUGHT = "<think> I should directly respond to the user's need. </think>"
"""The two thoughts that every gold of the RL files begins with."""

HISTORY = "**Dialogue Records History**\n"
"""What every user text begins with."""

Originals: TypeAlias = Mapping[str, str]
"""Upstream's parameter texts by the schemas made from them (as canonical JSON)."""

NONE_LENT: Originals = {}

_DECODER = json.JSONDecoder()
_TYPE_WORDS = {"integer": "int", "number": "float", "object": "dict"}
"""How upstream mostly writes a JSON Schema type; the others it writes as they are."""


class Registry(NamedTuple):
    """A system text taken apart."""

    head: str
    """What stands before the first tool."""
    tools: tuple[Tool, ...]
    tail: str
    """What stands after the last tool."""
    originals: Originals


def observation(text: str) -> str:
    """What tools answered, as the turn after their calls."""
    return f"<obs> {text} </obs>"


def parse_system(text: str) -> Registry:
    """The registry of a system text. Raises ValueError where the text is not of the form."""
    listed = text.find("**Available Tools**")
    start = end = at = text.find("\n1. Name: ", max(listed, 0)) + 1
    if listed < 0 or start == 0:
        raise ValueError("not a list of tools")
    tools: list[Tool] = []
    originals: dict[str, str] = {}
    while text.startswith(opening := f"{len(tools) + 1}. Name: ", at):
        name, described_at = _until(text, at + len(opening), "\nDescription: ")
        stop, declared_at = described_at, described_at
        while True:  # a description may itself hold a line like the one that ends it
            _, declared_at = _until(text, stop, "\nParameters: ")
            stop = declared_at - len("\nParameters: ")
            try:
                declared, end = _DECODER.raw_decode(text, declared_at)
            except ValueError:
                stop = declared_at
                continue
            break
        schema = parameter_schema(declared)
        tools.append(Tool(name, text[described_at:stop], schema))
        originals.setdefault(dumps(schema), text[declared_at:end])
        at = end + 1
    return Registry(text[:start], tuple(tools), text[end:], originals)


def _until(text: str, start: int, mark: str) -> tuple[str, int]:
    """The text from `start` to `mark`, and where the text after `mark` begins. Raises ValueError."""
    end = text.find(mark, start)
    if end < 0:
        raise ValueError(f"{mark.strip()!r} is missing")
    return text[start:end], end + len(mark)


def parameter_schema(declared: Json) -> dict[str, Json]:
    """`{"q": {"description": …, "type": "str, optional", "default": ""}}` as a JSON Schema object.

    A type word that is not JSON Schema's own stays beside its translation as `x-type`. Nothing is required:
    upstream marks no parameter so. Raises ValueError.
    """
    if not isinstance(declared, dict):
        raise ValueError("parameters are not an object")
    properties: dict[str, Json] = {}
    for name, about in declared.items():
        if not isinstance(about, dict):
            properties[name] = about
            continue
        properties[name] = out = dict[str, Json]()
        for key, value in about.items():
            if key == "type" and isinstance(value, str):
                word = value.removesuffix(", optional").partition("[")[0]
                out.update({k: v for k, v in json_schema.type_schema(word).items() if k == "type"})
                if out.get("type") != value:
                    out["x-type"] = value
            else:
                out[key] = value
    return {"type": "object", "properties": properties}


def system_text(registry: Registry, tools: Sequence[Tool], lent: Originals = NONE_LENT) -> str:
    """The system text with `tools` as its registry; untouched tools come out byte for byte.

    `lent` holds the parameter texts of tools that another row may have given parameters from.
    """
    entries = [
        f"{number}. Name: {tool.name}\nDescription: {tool.description}\n"
        f"Parameters: {parameter_text(tool.parameters, registry.originals, lent)}"
        for number, tool in enumerate(tools, start=1)
    ]
    return registry.head + "\n".join(entries) + registry.tail


def parameter_text(schema: dict[str, Json], own: Originals, lent: Originals) -> str:
    """A schema in upstream's form: the original text where there is one, else that of the same tool with the
    schema's descriptions or with some of its parameters, else a new text."""
    key = dumps(schema)
    if (original := own.get(key) or lent.get(key)) is not None:
        return original
    masked = _masked(schema)
    for known, text in own.items():
        if _masked(loads(known)) == masked:
            declared = json.loads(text)
            for name, about in _objects(schema.get("properties")).items():
                if "description" in about:
                    declared[name]["description"] = about["description"]
            return json.dumps(declared)
    for known, text in own.items():
        if _is_part(schema, loads(known)):
            return json.dumps({k: v for k, v in json.loads(text).items() if k in schema["properties"]})
    return json.dumps({name: _declared(about) for name, about in _objects(schema.get("properties")).items()})


def _is_part(schema: dict[str, Json], whole: dict[str, Json]) -> bool:
    """Whether it has some of the parameters of `whole`, as they are there."""
    properties, known = schema.get("properties"), whole.get("properties")
    if not properties or not isinstance(properties, dict) or not isinstance(known, dict):
        return False
    return all(name in known and known[name] == about for name, about in properties.items())


def _masked(schema: dict[str, Json]) -> str:
    """A schema without its parameters' descriptions, as text."""
    properties = {
        name: about | {"description": ""} if "description" in about else about
        for name, about in _objects(schema.get("properties")).items()
    }
    return dumps(schema | {"properties": properties})


def _objects(value: Json) -> dict[str, dict[str, Json]]:
    """The members of an object that are objects."""
    if not isinstance(value, dict):
        return {}
    return {name: about for name, about in value.items() if isinstance(about, dict)}


def _declared(about: dict[str, Json]) -> dict[str, Json]:
    """A new parameter as upstream declares one: exactly description, type word and default."""
    text = str(about.get("description") or "")
    if isinstance(about.get("enum"), list):
        text = f"{text} One of: {', '.join(map(str, about['enum']))}.".strip()
    return {"description": text, "type": _type_word(about), "default": about.get("default", "")}


def _type_word(schema: Any) -> str:
    word = schema.get("type", "string") if isinstance(schema, dict) else "string"
    if word == "array" and isinstance(schema.get("items"), dict):
        return f"List[{_type_word(schema['items'])}]"
    return _TYPE_WORDS.get(word, word) if isinstance(word, str) else "string"
