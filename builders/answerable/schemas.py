"""What a tool's definition says about a parameter's value: default, choices, format, examples."""

import re

from robustbench_tc.schema import Json, Sample, Tool

from .moments import golden as date_of
from .numbers import number, same


def declared(sample: Sample, name: str, index: int | None = None) -> Tool | None:
    """The definition of a called tool; `index` where a name is listed twice."""
    if index is not None and sample.tools[index].name == name:
        return sample.tools[index]
    return next((tool for tool in sample.tools if tool.name == name), None)


def source(value: Json, schema: Json, tool: Tool | None = None) -> str | None:
    """Where the definition says this value: `default`, `enum`, `yes or no`, `description`; None if nowhere."""
    if not isinstance(schema, dict):
        return None
    if "default" in schema and _equal(value, schema["default"]):
        return "default"
    for choices in (
        schema.get("enum"),
        (schema.get("items") or {}).get("enum") if isinstance(schema.get("items"), dict) else None,
    ):
        if isinstance(choices, list) and any(_equal(value, choice) for choice in choices):
            return "enum"
    if isinstance(value, bool) or (
        schema.get("type") == "boolean" and str(value).lower() in ("true", "false")
    ):
        return "yes or no"
    text = str(schema.get("description") or "")
    if _named(value, text):
        return "description"
    if tool is not None and isinstance(value, str) and _named(value, tool.description):
        return "tool description"
    return None


def _equal(left: Json, right: Json) -> bool:
    a, b = number(left), number(right)
    if a is not None and b is not None:
        return same(a, b)
    if isinstance(left, str) and isinstance(right, str):
        return left.strip().lower() == right.strip().lower()
    return type(left) is type(right) and bool(left == right)


def _named(value: Json, text: str) -> bool:
    """Whether a description names the value as one that may be meant. A date in it is the form, not the day."""
    if isinstance(value, str):
        if len(value) < 1 or date_of(value):
            return False
        return (
            re.search(rf"(?<![0-9A-Za-z]){re.escape(value.lower())}(?![0-9A-Za-z])", text.lower()) is not None
        )
    wanted = number(value)
    if wanted is None:
        return False
    return any(
        same(wanted, found)
        for part in re.findall(r"-?\d+(?:\.\d+)?", text)
        if (found := number(part)) is not None
    )
