"""An OpenAPI 3 file as tools: each operation one, as servers and bridges of such files offer them."""

import re
from typing import Any

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

_METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")


def is_openapi(value: Json) -> bool:
    """Whether a value is an OpenAPI 3 document."""
    return isinstance(value, dict) and "openapi" in value and isinstance(value.get("paths"), dict)


def tools_of(document: dict[str, Any], where: str) -> list[Json]:
    """Its operations as plain tools, with the schemas that they refer to in `$defs`. Raises UserError.

    Parameters of path, query and header, and the fields of a JSON body, are the tool's parameters; a body that
    is no object is the parameter `body`.
    """
    defined = _object(_object(document.get("components")).get("schemas"))
    found: list[Json] = []
    for path, entry in document["paths"].items():
        item = _resolved(document, entry, where)
        for method in _METHODS:
            if isinstance(one := item.get(method), dict):
                body = _parameters(
                    document, [*_list(item.get("parameters")), *_list(one.get("parameters"))], one, where
                )
                if "#/components/schemas/" in repr(body):
                    body["$defs"] = defined
                found.append(
                    {
                        "name": one.get("operationId") or re.sub(r"\W+", "_", f"{method} {path}").strip("_"),
                        "description": "\n".join(filter(None, (one.get("summary"), one.get("description")))),
                        "parameters": _moved(body),
                        "annotations": {"readOnlyHint": method in ("get", "head", "options")},
                    }
                )
    return found


def _parameters(document: dict[str, Any], stated: list[Json], operation: Json, where: str) -> dict[str, Any]:
    """The schema of an operation's parameters."""
    properties: dict[str, Json] = {}
    required: list[str] = []
    for entry in stated:
        one = _resolved(document, entry, where)
        name, schema = str(one.get("name")), _object(one.get("schema"))
        if one.get("in") != "cookie":
            about = {"description": one["description"]} if "description" in one else {}
            properties[name] = {**about, **schema}
            required += [name] if one.get("required") is True and name not in required else []
    body = _resolved(document, operation.get("requestBody"), where)
    media = _object(body.get("content"))
    kind = next((kind for kind in media if "json" in kind), None)
    schema = _resolved(document, _object(media.get(kind)).get("schema"), where)
    if isinstance(fields := schema.get("properties"), dict):
        properties = {**fields, **properties}
        required += [name for name in _list(schema.get("required")) if name not in required]
    elif schema:
        properties["body"] = schema
        required += ["body"] if body.get("required") is True else []
    return {"type": "object", "properties": properties, "required": required}


def _resolved(document: dict[str, Any], entry: Json, where: str) -> dict[str, Any]:
    """An entry, or the component that it refers to; what is none as an empty one."""
    for _ in range(20):
        reference = _object(entry).get("$ref")
        if reference is None:
            return _object(entry)
        entry = document
        for part in str(reference).removeprefix("#/").split("/"):
            entry = _object(entry).get(part.replace("~1", "/").replace("~0", "~"))
        if entry is None:
            raise UserError(f"{where}: {str(reference)[:100]!r} is not in this file; put all of it into one")
    raise UserError(f"{where}: {str(reference)[:100]!r} leads to itself")


def _moved(value: Json) -> Json:
    """A schema whose references lead to `$defs`."""
    if isinstance(value, dict):
        return {
            key: one.replace("#/components/schemas/", "#/$defs/")
            if key == "$ref" and isinstance(one, str)
            else _moved(one)
            for key, one in value.items()
        }
    return list(map(_moved, value)) if isinstance(value, list) else value


def _object(value: Json) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Any]:
    return value if isinstance(value, list) else []
