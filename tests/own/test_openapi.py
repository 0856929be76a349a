"""An OpenAPI file as tools."""

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.own import openapi
from robustbench_tc.own.cases_file import read_cases
from robustbench_tc.own.tools import parse_tools

from ..refusals import refuses

SHOP: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "paths": {
        "/orders/{order_id}": {
            "parameters": [{"$ref": "#/components/parameters/Order"}],
            "get": {"operationId": "get_order", "summary": "Reads an order.", "responses": {}},
            "patch": {
                "operationId": "change_order",
                "description": "Changes an order.",
                "requestBody": {"$ref": "#/components/requestBodies/Change"},
            },
        },
        "/orders": {
            "get": {
                "parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer", "default": 10}}]
            },
            "post": {
                "operationId": "import_orders",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"type": "array", "items": {"type": "integer"}}}
                    },
                },
            },
        },
        "/session": {
            "get": {"operationId": "s", "parameters": [{"name": "sid", "in": "cookie", "required": True}]}
        },
    },
    "components": {
        "parameters": {
            "Order": {
                "name": "order_id",
                "in": "path",
                "required": True,
                "description": "Number of the order.",
                "schema": {"type": "integer"},
            }
        },
        "requestBodies": {
            "Change": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Change"}}}}
        },
        "schemas": {
            "Change": {
                "type": "object",
                "properties": {
                    "address": {"$ref": "#/components/schemas/Address"},
                    "note": {"type": "string"},
                },
                "required": ["address"],
            },
            "Address": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "next": {"$ref": "#/components/schemas/Address"}},
            },
        },
    },
}


def test_each_operation_is_a_tool_with_path_query_and_body() -> None:
    tools = {one.name: one for one in parse_tools(json.dumps(SHOP).encode(), "shop", "shop.json")}
    assert list(tools) == ["get_order", "change_order", "get_orders", "import_orders", "s"]
    assert [one.read_only for one in tools.values()] == [True, False, True, False, True]
    change = tools["change_order"].tool
    assert change.description == "Changes an order."
    assert change.parameters["required"] == ["order_id", "address"]
    assert list(change.parameters["properties"]) == ["order_id", "address", "note"]
    assert change.parameters["properties"]["address"] == {"$ref": "#/$defs/Address"}
    assert change.parameters["$defs"]["Address"]["properties"]["next"] == {"$ref": "#/$defs/Address"}
    assert tools["get_orders"].tool.parameters["properties"] == {"limit": {"type": "integer", "default": 10}}
    assert tools["import_orders"].tool.parameters["required"] == ["body"]
    assert tools["s"].tool.parameters["properties"] == {}


def test_cases_are_drafted_of_it(tmp_path: Path) -> None:
    (tmp_path / "shop.json").write_text(json.dumps(SHOP))
    drafted = api.draft_cases([tmp_path / "shop.json"], tmp_path / "drafted")
    assert (drafted.tools, drafted.problems) == (5, 0)
    assert len(read_cases(tmp_path / "drafted" / "cases.yaml").cases) == drafted.cases


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
ORDER = {
    "type": "object",
    "properties": {"id": NUMBER | {"readOnly": True}, "city": TEXT},
    "required": ["id", "city"],
}


def asked(name: Any = "q", place: str = "query", **more: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": TEXT} | more


def body(schema: Any, kind: str = "application/json", **more: Any) -> dict[str, Any]:
    return {"requestBody": {"content": {kind: {"schema": schema}}, **more}}


def parsed(operation: Any, path: Any = None, **components: Any) -> list[Any]:
    """The tools of a document with one operation."""
    item = {"parameters": path or [], "post": operation}
    document = {"openapi": "3.0.3", "paths": {"/a/{id}": item}, "components": components}
    return [one.tool for one in parse_tools(json.dumps(document).encode(), "shop", "shop.json")]


@pytest.mark.parametrize(
    ("operation", "path", "wanted", "required"),
    [
        (
            {"parameters": [asked()]},
            [asked(required=True)],
            {"q": TEXT},
            [],
        ),  # the operation's own goes before
        ({"parameters": [asked(content={"a/json": {"schema": NUMBER}}, schema=None)]}, [], {"q": NUMBER}, []),
        ({"parameters": [asked(schema=True, description="A q.")]}, [], {"q": {"description": "A q."}}, []),
        ({"parameters": [asked("Authorization", "header"), asked("sid", "cookie")]}, [], {}, []),
        (body(ORDER), [], {"city": TEXT}, ["city"]),
        (body(ORDER), [asked("city", "path", required=True, schema=NUMBER)], {"city": NUMBER}, ["city"]),
        (body({"allOf": [ORDER, {"properties": {"n": NUMBER}}]}), [], {"city": TEXT, "n": NUMBER}, ["city"]),
        (body({"oneOf": [ORDER, TEXT]}, required=True), [], {"body": {"oneOf": [ORDER, TEXT]}}, ["body"]),
        (body(ORDER, "application/x-www-form-urlencoded"), [], {"city": TEXT}, ["city"]),
        (body(TEXT, "text/plain", required=True), [], {"body": TEXT}, ["body"]),
        ({"requestBody": {"content": {"image/png": {}}}}, [], {"body": {}}, []),
        (body({"properties": {"a": TEXT}, "required": [["a"], "a", "b"]}), [], {"a": TEXT}, ["a"]),
    ],
)
def test_what_an_operation_asks_for(operation: Any, path: Any, wanted: Any, required: list[str]) -> None:
    (tool,) = parsed(operation, path)
    assert tool.name == "post_a_id"  # it has no operationId
    assert tool.parameters == {"type": "object", "properties": wanted, "required": required}


def test_only_schemas_that_are_reached_go_along() -> None:
    at = "#/components/schemas/"
    schemas = {
        "A": {"properties": {"b": {"$ref": f"{at}B~1%C2%AB"}}},
        "B/«": {"discriminator": {"mapping": {"c": f"{at}C"}}},
        "C": {"$ref": f"{at}A/properties/b"},
        "D": {"$ref": f"{at}A"},
    }
    (tool,) = parsed(body({"$ref": f"{at}A"}), schemas=schemas)
    assert tool.parameters["$defs"].keys() == {"A", "B/«", "C"}
    assert tool.parameters["$defs"]["C"] == {"$ref": "#/$defs/A/properties/b"}


def test_a_large_file_is_read_or_refused_in_a_line_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    at = "#/components/schemas/S"
    schemas: dict[str, Any] = {
        f"S{n}": {"properties": {"x": {"$ref": f"{at}{n + n % 2}"}}} for n in range(3_001)
    }
    schemas |= {"S": {"properties": {"all": [{"$ref": f"{at}{n}"} for n in range(2_000)]}}}
    needed = {f"/p{n}": {"post": body({"$ref": f"{at}{n}"})} for n in range(500)}

    def parse(paths: Any) -> Any:
        document = {"openapi": "3.1.0", "paths": paths, "components": {"schemas": schemas}}
        return parse_tools(json.dumps(document).encode(), "shop", "shop.json")

    begun = time.process_time()
    tools = [one.tool.parameters for one in parse(needed)]
    assert [len(one["$defs"]) for one in tools] == [1] * 500
    assert sum(len(json.dumps(one)) for one in tools) < 100_000  # with all schemas: 75 MB
    monkeypatch.setattr(openapi, "WHOLE", 300_000)
    refuses(
        "shop.json: post /q.* more than 300,000 bytes",
        parse,
        {f"/q{n}": {"post": body({"$ref": at})} for n in range(9)},
    )
    assert time.process_time() - begun < 10


def test_an_openapi_file_in_yaml_is_called_that(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    for text in ("openapi: 3.0.0\npaths: {}\n", '# Ours\nswagger: "2.0"\n'):
        path.write_text(text)
        for call in (partial(api.lint, [path]), partial(api.draft_cases, [path], tmp_path / "out")):
            refuses("shop.yaml: an OpenAPI document in YAML; write it as JSON", call)


LOOP = {"A": {"allOf": [{"$ref": "#/components/schemas/A"}]}}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"paths": {}}, "shop.json: lists no tools"),
        ({"paths": ["/a"]}, "shop.json: lists no tools"),
        ({"openapi": "2.0"}, "not version 3; convert it"),
        ({"openapi": None, "swagger": "2.0"}, "not version 3; convert it"),
        ({"paths": {"/a": {"$ref": "other.yaml#/a"}}}, "'other.yaml#/a' is not in this file"),
        ({"paths": {"/a": {"$ref": "#/paths/~1a"}}}, "leads to itself"),
        ({"paths": {"/a": {"get": {"parameters": [{"in": "query"}]}}}}, "get /a: a parameter without a name"),
        ({"paths": {"/a": {"get": {"parameters": [asked(7)]}}}}, "get /a: a parameter without a name"),
        ({"paths": {"/a": {"get": {"operationId": 7}}}}, "'name' must be a text"),
        ({"paths": {"/a": {"put": body(LOOP["A"])}}, "components": {"schemas": LOOP}}, "leads to itself"),
        ({"paths": {"/a": {"put": body({"properties": {"x": {"$ref": "#/gone"}}})}}}, "leads nowhere"),
    ],
)
def test_what_cannot_be_read_is_said(changed: dict[str, Any], why: str) -> None:
    refuses(why, parse_tools, json.dumps(SHOP | changed).encode(), "shop", "shop.json")
