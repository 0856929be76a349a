"""Upstream type words to JSON Schema, in one place for readers, scorers and oracle vectors.

What the scorers need survives: `float` becomes `number` (accepts integers), `integer` does not accept 5.0,
BFCL's `any` becomes a schema without `type`.
"""

import re

from robustbench_tc.schema import Json

_WORDS = {
    "dict": "object",
    "object": "object",
    "string": "string",
    "str": "string",
    "integer": "integer",
    "int": "integer",
    "float": "number",
    "number": "number",
    "double": "number",
    "boolean": "boolean",
    "bool": "boolean",
    "array": "array",
    "list": "array",
    "tuple": "array",
    "null": "null",
}
_GENERIC = re.compile(r"(?i)(?:list|array|tuple)\s*[(\[<]\s*([\w ]+?)\s*[)\]>]")


def type_schema(word: str) -> dict[str, Json]:
    """The schema of one upstream type word: `str`, `Array[string]`, `list(str)`, `any`; {} when unknown."""
    generic = _GENERIC.fullmatch(word.strip())
    if generic:
        items = type_schema(generic.group(1))
        return {"type": "array", "items": items} if items else {"type": "array"}
    name = _WORDS.get(word.strip().lower())
    return {"type": name} if name else {}


def normalise(schema: Json) -> Json:
    """A copy of an upstream schema with its type words in JSON Schema, everything else kept in order."""
    if not isinstance(schema, dict):
        return schema
    out: dict[str, Json] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            out.update(type_schema(value))
        elif key == "properties" and isinstance(value, dict):
            out[key] = {name: normalise(inner) for name, inner in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = normalise(value)
        else:
            out[key] = value
    return out
