"""An OpenAPI 3 file as tools: each operation one, as servers and bridges of such files offer them."""

import json
import re
from typing import Any

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from .logs.chat import each, first_of

_READS = ("get", "head", "options")
_WRITES = ("put", "post", "delete", "patch", "trace")


def is_openapi(value: Json) -> bool:
    """Whether a value is an OpenAPI 3 document."""
    return isinstance(first_of(value, "openapi"), str) and isinstance(first_of(value, "paths"), dict)


def tools_of(document: dict[str, Any], where: str) -> list[Json]:
    """Its operations as plain tools, with the schemas that they refer to in `$defs`. Raises UserError.

    Parameters of path, query and header, and the fields of a JSON body, are the tool's parameters; a body
    that is no object is the parameter `body`.
    """
    found: list[Json] = []
    for path, entry in document["paths"].items():
        item = _resolved(document, entry, where)
        for method in (one for one in item if one in (*_READS, *_WRITES)):
            operation = _resolved(document, item[method], where)
            stated = [*each(item.get("parameters")), *each(operation.get("parameters"))]
            schema = _parameters(document, stated, operation, where)
            if "#/components/schemas/" in json.dumps(schema):
                schema["$defs"] = first_of(first_of(document, "components"), "schemas")
            moved = json.dumps(schema).replace('"#/components/schemas/', '"#/$defs/')
            about = (operation.get("summary"), operation.get("description"))
            found.append(
                {
                    "name": operation.get("operationId")
                    or re.sub(r"\W+", "_", f"{method} {path}").strip("_"),
                    "description": "\n".join(one for one in about if isinstance(one, str)),
                    "parameters": json.loads(moved),
                    "annotations": {"readOnlyHint": method in _READS},
                }
            )
    return found


def _parameters(document: dict[str, Any], stated: list[Json], operation: Json, where: str) -> dict[str, Any]:
    """The schema of an operation's parameters."""
    properties: dict[str, Json] = {}
    required: list[Json] = []
    for entry in stated:
        one = _resolved(document, entry, where)
        if one.get("in") != "cookie":
            about = {"description": one["description"]} if "description" in one else {}
            properties[str(one.get("name"))] = about | (first_of(one, "schema") or {})
            required += [one.get("name")] * (one.get("required") is True)
    body = _resolved(document, first_of(operation, "requestBody"), where)
    media = first_of(body, "content")
    kind = next((kind for kind in media if "json" in kind), "") if isinstance(media, dict) else ""
    schema = _resolved(document, first_of(first_of(media, kind), "schema"), where)
    if isinstance(fields := schema.get("properties"), dict):
        properties = {**properties, **fields, **properties}
        required += each(schema.get("required"))
    elif schema:
        properties["body"] = schema
        required += ["body"] * (body.get("required") is True)
    return {"type": "object", "properties": properties, "required": list(dict.fromkeys(required))}


def _resolved(document: dict[str, Any], entry: Json, where: str) -> dict[str, Any]:
    """An entry, or the component that it refers to; what is no object as an empty one."""
    for _ in range(20):
        reference = first_of(entry, "$ref")
        if reference is None:
            return entry if isinstance(entry, dict) else {}
        entry = document
        for part in str(reference).removeprefix("#/").split("/"):
            entry = first_of(entry, part.replace("~1", "/").replace("~0", "~"))
        if entry is None:
            raise UserError(f"{where}: {str(reference)[:100]!r} is not in this file; put all of it into one")
    raise UserError(f"{where}: a reference leads to itself")
