"""An OpenAPI 3 file as tools: each operation one, as servers and bridges of such files offer them."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from ..eval.score.matchers.subschemas import pointed_at
from .files import BYTES
from .logs.chat import each, first_of

_READS = ("get", "head", "options")
_WRITES = ("put", "post", "delete", "patch", "trace")
_NOT_ASKED = {("header", name) for name in ("accept", "authorization", "content-type")}
"""Parameters that OpenAPI itself says to ignore: a client sets them, not who calls the operation."""
_SCHEMAS = "#/components/schemas/"
_NAMED = re.compile(f'"{_SCHEMAS}([^"/]+)')
_IN_YAML = re.compile(rb"^(?:openapi|swagger)\s*:", re.MULTILINE)

WHOLE = 2 * BYTES
"""Bytes of all tools as JSON: each brings the schemas that it needs."""
_PARTS = 100
"""Schemas that a body is made of by `allOf`."""


def is_openapi(value: Json) -> bool:
    """Whether a value is an OpenAPI document, of version 3 or not."""
    return isinstance(first_of(value, "openapi", "swagger"), str)


def refuse_yaml(data: bytes, where: str) -> None:
    """Raises UserError for an OpenAPI document that is written in YAML."""
    if _IN_YAML.search(data[:10_000]):
        raise UserError(f"{where}: an OpenAPI document in YAML; write it as JSON, into a file NAME.json")


def tools_of(document: dict[str, Any], where: str) -> list[Json]:
    """Its operations as plain tools, with the schemas that they refer to in `$defs`. Raises UserError.

    Parameters of path, query and header, and the fields of a body, are the tool's parameters; a body that is
    no object, or one of several, is the parameter `body`.
    """
    if not str(document.get("openapi")).startswith("3."):
        raise UserError(f"{where}: an OpenAPI document, but not version 3; convert it")
    found: list[Json] = []
    size = 0
    paths = document.get("paths")
    for path, entry in paths.items() if isinstance(paths, dict) else ():
        item = _resolved(document, entry, where)
        for method in (one for one in item if one in (*_READS, *_WRITES)):
            operation = _resolved(document, item[method], where)
            at = f"{where}: {method} {path[:100]}"
            stated = [*each(item.get("parameters")), *each(operation.get("parameters"))]
            properties, required = _parameters([_resolved(document, one, where) for one in stated], at)
            body = _resolved(document, operation.get("requestBody"), where)
            fields, needed = _fields(document, body, where)
            for name, schema in fields.items():
                properties.setdefault(name, schema)  # a parameter of the same name goes before
            needed = list(dict.fromkeys([*required, *needed]))
            whole = {"type": "object", "properties": properties, "required": needed}
            parameters = _with_definitions(document, whole)
            size += len(parameters)
            if size > WHOLE:
                raise UserError(
                    f"{at}: up to here its tools take more than {WHOLE:,} bytes; keep fewer paths"
                )
            about = (operation.get("summary"), operation.get("description"))
            found.append(
                {
                    "name": operation.get("operationId")
                    or re.sub(r"\W+", "_", f"{method} {path}").strip("_"),
                    "description": "\n".join(one for one in about if isinstance(one, str)),
                    "parameters": json.loads(parameters),
                    "annotations": {"readOnlyHint": method in _READS},
                }
            )
    return found


def _parameters(stated: Sequence[dict[str, Any]], at: str) -> tuple[dict[str, Json], list[str]]:
    """Schemas of parameters by their names, and the required ones; of two of one name the later counts."""
    known = {}
    for one in stated:
        if not isinstance(name := one.get("name"), str):
            raise UserError(f"{at}: a parameter without a name")
        if one.get("in") != "cookie" and (one.get("in"), name.lower()) not in _NOT_ASKED:
            known[name] = one
    properties: dict[str, Json] = {}
    for name, one in known.items():
        about = {"description": one["description"]} if "description" in one else {}
        schema = first_of(one, "schema") or _content(one)
        properties[name] = about | schema if isinstance(schema, dict) else about
    return properties, [name for name, one in known.items() if one.get("required") is True]


def _content(described: Mapping[str, Json]) -> Json:
    """The schema of a body or parameter: in JSON, else in its first form; None without any."""
    media = first_of(described, "content")
    if not isinstance(media, dict) or not media:
        return None
    kind = next((kind for kind in media if "json" in kind), next(iter(media)))
    return first_of(media[kind], "schema") or {}


def _fields(document: dict[str, Any], body: dict[str, Any], where: str) -> tuple[dict[str, Json], list[str]]:
    """The fields of a body, those of an `allOf` together, else it itself as `body`; and the required ones."""
    schema = _content(body)
    if schema is None:
        return {}, []
    parts = [_resolved(document, schema, where)]
    for part in parts:  # which grow meanwhile
        parts += [_resolved(document, one, where) for one in each(part.get("allOf"))]
        if len(parts) > _PARTS:
            raise UserError(f"{where}: an allOf of more than {_PARTS} schemas, or one that leads to itself")
    fields: dict[str, Json] = {}
    for part in parts:
        fields |= part["properties"] if isinstance(part.get("properties"), dict) else {}
    if not fields or any(part.keys() & {"oneOf", "anyOf"} for part in parts):
        return {"body": schema}, ["body"] * (body.get("required") is True)
    needed = {one for part in parts for one in each(part.get("required")) if isinstance(one, str)}
    asked = {name: one for name, one in fields.items() if first_of(one, "readOnly") is not True}
    return asked, [name for name in asked if name in needed]


def _with_definitions(document: dict[str, Any], schema: dict[str, Any]) -> str:
    """A schema as JSON, what it refers to, also from there, in its `$defs`; what is nowhere stays away."""
    schemas = first_of(document.get("components"), "schemas")
    definitions: dict[str, Json] = {}
    waiting: list[Json] = [schema]
    while waiting:
        for name in dict.fromkeys(_NAMED.findall(json.dumps(waiting.pop(), ensure_ascii=False))):
            key = unquote(name).replace("~1", "/").replace("~0", "~")
            if key not in definitions and (found := first_of(schemas, key)) is not None:
                definitions[key] = found
                waiting.append(found)
    whole = schema | ({"$defs": definitions} if definitions else {})
    return json.dumps(whole, ensure_ascii=False).replace(f'"{_SCHEMAS}', '"#/$defs/')


def _resolved(document: dict[str, Any], entry: Json, where: str) -> dict[str, Any]:
    """An entry, or the component that it refers to; what is no object as an empty one."""
    for _ in range(20):
        reference = first_of(entry, "$ref")
        if reference is None:
            return entry if isinstance(entry, dict) else {}
        entry = pointed_at(reference, document, {})
        if entry is None:
            raise UserError(
                f"{where}: {str(reference)[:100]!r} is not in this file; put everything into one file"
            )
    raise UserError(f"{where}: a reference leads to itself")
