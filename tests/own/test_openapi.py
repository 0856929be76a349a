"""An OpenAPI file as tools."""

import json
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.own.read import read_cases
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


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"paths": {}}, "shop.json: lists no tools"),
        ({"paths": {"/a": {"$ref": "other.yaml#/a"}}}, "'other.yaml#/a' is not in this file"),
        ({"paths": {"/a": {"$ref": "#/paths/~1a"}}}, "leads to itself"),
    ],
)
def test_what_is_not_in_the_file_is_said(changed: dict[str, Any], why: str) -> None:
    refuses(why, parse_tools, json.dumps(SHOP | changed).encode(), "shop", "shop.json")
