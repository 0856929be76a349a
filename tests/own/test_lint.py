"""Lint: what would break before any model is asked."""

import json

from robustbench_tc.own.lint import lint
from robustbench_tc.own.tools import parse_tools

GOOD: dict[str, object] = {
    "name": "get_order",
    "description": "Get an order.",
    "parameters": {
        "type": "object",
        "properties": {"id": {"type": "string", "description": "Its id."}},
        "required": ["id"],
    },
}


def codes(*entries: dict[str, object]) -> list[tuple[str, str]]:
    tools = parse_tools(json.dumps(entries).encode(), "crm", "crm.json")
    return [(found.level, found.code) for found in lint(tools)]


def test_a_good_tool_has_no_finding() -> None:
    assert codes(GOOD) == []


def test_names() -> None:
    assert codes(GOOD, GOOD) == [("error", "same-name")]
    assert codes({**GOOD, "name": "a.b"}, {**GOOD, "name": "a b"}) == [("error", "name-collision")]
    long = [{**GOOD, "name": "x" * 64 + end} for end in "ab"]
    assert codes(*long) == [("warning", "long-name")] * 2 + [("error", "name-collision")]


def test_schemas_and_descriptions() -> None:
    assert codes({**GOOD, "parameters": {"properties": {}}}) == [("error", "refused-root")]
    assert codes({**GOOD, "description": " "}) == [("warning", "no-description")]
    bare = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id", "day"]}
    assert codes({**GOOD, "parameters": bare}) == [
        ("warning", "parameter-description"),
        ("warning", "required-undeclared"),
    ]
