"""Tool files: four shapes as one, schemas as they are written, one line for what cannot be read."""

import json
from pathlib import Path

import pytest

from robustbench_tc.own.cases import OwnTool
from robustbench_tc.own.tools import parse_tools, read_tools

from ..refusals import refuses

SCHEMA = {
    "type": "object",
    "required": ["node"],
    "properties": {
        "node": {"$ref": "#/$defs/node"},
        "kind": {"enum": ["a", None, {"$ref": "http://data.not/schema"}]},
        "when": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": {"$ref": 1}},
        "$ref": {"type": ["integer", "null"]},
    },
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
}
FUNCTION = {"name": "walk", "description": "Walk.", "parameters": SCHEMA}
MCP = {"name": "walk", "description": "Walk.", "inputSchema": SCHEMA}


def parse(value: object) -> tuple[OwnTool, ...]:
    return parse_tools(json.dumps(value).encode(), "crm", "crm.json")


@pytest.mark.parametrize(
    "value",
    [
        [{"type": "function", "function": FUNCTION}],
        [FUNCTION],
        {"tools": [FUNCTION]},
        {"tools": [MCP]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [MCP]}},
        [{"name": "walk", "description": "Walk.", "input_schema": SCHEMA}],
        [{"type": "custom", "name": "walk", "description": "Walk.", "input_schema": SCHEMA}],
    ],
)
def test_every_shape_is_the_same_tool(value: object) -> None:
    (found,) = parse(value)
    assert (found.name, found.prefix, found.place) == ("walk", "crm", 0)
    assert found.tool.description == "Walk."
    assert json.dumps(found.tool.parameters) == json.dumps(SCHEMA)  # exactly, key order included


def test_pages_are_joined(tmp_path: Path) -> None:
    pages = [{"tools": [MCP], "nextCursor": "x"}, {"result": {"tools": [{**MCP, "name": "run"}]}}]
    (tmp_path / "hr.jsonl").write_text("\n".join(json.dumps(page) for page in pages))
    assert [tool.name for tool in parse(pages)] == ["walk", "run"]
    assert [(tool.name, tool.prefix) for tool in read_tools(tmp_path / "hr.jsonl")] == [
        ("walk", "hr"),
        ("run", "hr"),
    ]
    refuses("page 1 states a nextCursor", parse, pages[:1])
    refuses("page 1 states no nextCursor", parse, pages[::-1])


def test_extras_and_hints_are_kept() -> None:
    hints = {"readOnlyHint": True, "idempotentHint": False}
    (found,) = parse({"tools": [{**MCP, "title": "T", "annotations": hints, "outputSchema": {}}]})
    assert found.read_only and not found.idempotent
    assert found.extras == {"title": "T", "annotations": hints, "outputSchema": {}}
    (found,) = parse([{"type": "function", "function": {**FUNCTION, "strict": True}}])
    assert found.extras == {"strict": True}


def test_a_name_twice_is_two_tools() -> None:
    assert [tool.place for tool in parse([FUNCTION, FUNCTION])] == [0, 1]


def test_no_parameters_are_an_empty_list_of_them() -> None:
    (found,) = parse([{"name": "ping"}])
    assert found.tool.parameters == {"type": "object", "properties": {}}


def ref(target: str, **more: object) -> list[object]:
    return [{"name": "f", "parameters": {"type": "object", "properties": {"p": {"$ref": target}}, **more}}]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "lists no tools"),
        ({"a": 1}, "no tools found"),
        ([1], "tool 0: must be an object"),
        ([FUNCTION, {"name": " "}], "tool 1: 'name' must be a text"),
        ([{"name": "f", "parameters": [1]}], r"tool 0 \('f'\): 'parameters' must be a JSON Schema"),
        ([{"name": "f", "description": 1}], "'description' must be a text"),
        ([{"type": "web_search", "name": "w"}], "built into a provider"),
        ([{"name": "f", "parameters": {}, "inputSchema": {}}], "keep one"),
        ([{"name": "f", "parameters": {"required": [[]]}}], "'required' must be a list of names"),
        ([{"name": "f", "parameters": {"properties": {"a": 3}}}], "'a' must be a schema"),
        ({"error": {"message": "no"}}, "error of the server"),
        (ref("https://x.test/y"), "nothing is fetched"),
        (ref("#/$defs/gone"), "leads nowhere"),
        (ref("#name"), r"no schema has this \$anchor"),
        (ref("#/type"), "not a schema"),
        (ref("#/$defs/a", **{"$defs": {"a": {"$ref": "#/$defs/a"}}}), "a circle of"),
        (ref("#/$defs/a", **{"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}),
         "a circle of"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_one_line(value: object, said: str) -> None:
    caught = refuses(said, parse, value)
    assert caught.startswith("crm.json: ")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"\xff", "not UTF-8 at byte 0"),
        (b"[", "line 1, column 2: not JSON"),
        (b'{"tools": [],\n"tools": []}', "a key is given twice in one object: 'tools'"),
        (b"[NaN]", "NaN is not JSON"),
        (b"[1e999]", "beyond what JSON readers hold"),
        (b"[" + b"9" * 5000 + b"]", "a number has more than 1,000 digits"),
        (b'["\\ud800"]', "half a surrogate pair"),
        (b"[" * 20_000 + b"]" * 20_000, "20,000 levels deep"),
        (b" " * 8_000_001, "at most 8,000,000"),
        (b'{"name": "a"}\n{"name": ', "line 2, column 10: not JSON"),
    ],
)
def test_a_file_that_is_not_json_is_one_line(data: bytes, said: str) -> None:
    refuses(said, parse_tools, data, "crm", "crm.json")
