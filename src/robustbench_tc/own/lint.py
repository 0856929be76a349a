"""What of a tool registry would break, or mislead a model, before any model is asked."""

import json
from collections.abc import Sequence
from typing import Literal

import msgspec

from .cases import OwnTool
from .instructions import instructions
from .near import DESCRIPTIONS, NAMES, alike, words
from .units import missing_units
from .wire_names import MAX_NAME, safe_name


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding. Errors fail a check in CI, warnings do under `--strict`."""

    level: Literal["error", "warning"]
    code: str
    tools: tuple[str, ...]
    """`prefix:name` of each tool it is about."""
    message: str


def lint(tools: Sequence[OwnTool]) -> tuple[Finding, ...]:
    """Findings by kind, each kind in the order of the tools."""
    return (
        *_names(tools),
        *_roots(tools),
        *_descriptions(tools),
        *_instructions(tools),
        *_units(tools),
        *_near(tools),
    )


def _title(tool: OwnTool) -> str:
    return f"{tool.prefix}:{tool.name}"


def _names(tools: Sequence[OwnTool]) -> list[Finding]:
    """Names that are equal, or become equal when a client cuts them and replaces what it does not accept."""
    same: dict[str, list[OwnTool]] = {}
    wire: dict[str, dict[str, OwnTool]] = {}
    found = []
    for tool in tools:
        same.setdefault(tool.name, []).append(tool)
        wire.setdefault(safe_name(tool.name), {}).setdefault(tool.name, tool)
        if len(tool.name) > MAX_NAME:
            said = f"the name has {len(tool.name)} characters, clients cut it after {MAX_NAME}"
            found.append(Finding(level="warning", code="long-name", tools=(_title(tool),), message=said))
    for name, several in same.items():
        if len(several) > 1:
            said = f"{len(several)} tools are called {name[:80]!r}; rename all but one"
            titles = tuple(map(_title, several))
            found.append(Finding(level="error", code="same-name", tools=titles, message=said))
    for sent, equal in wire.items():
        if len(equal) > 1:
            said = f"{len(equal)} names become {sent!r} as clients send them; rename all but one"
            titles = tuple(map(_title, equal.values()))
            found.append(Finding(level="error", code="name-collision", tools=titles, message=said))
    return found


def _roots(tools: Sequence[OwnTool]) -> list[Finding]:
    said = 'the root of the schema lacks "type": "object": MCP clients refuse the whole tool list'
    return [
        Finding(level="error", code="refused-root", tools=(_title(tool),), message=said)
        for tool in tools
        if tool.tool.parameters.get("type") != "object"
    ]


def _descriptions(tools: Sequence[OwnTool]) -> list[Finding]:
    found = []
    for tool in tools:
        titles = (_title(tool),)
        if not tool.tool.description.strip():
            said = "the tool has no description"
            found.append(Finding(level="warning", code="no-description", tools=titles, message=said))
        properties = tool.tool.properties
        for name, schema in properties.items():
            if isinstance(schema, dict) and not str(schema.get("description") or "").strip():
                said = f"the parameter {name[:60]!r} has no description"
                found.append(
                    Finding(level="warning", code="parameter-description", tools=titles, message=said)
                )
        for name in tool.tool.required:
            if name not in properties:
                said = f"requires {name[:60]!r}, which its properties do not declare"
                found.append(Finding(level="warning", code="required-undeclared", tools=titles, message=said))
    return found


def _instructions(tools: Sequence[OwnTool]) -> list[Finding]:
    found = []
    for tool in tools:
        for place, what in instructions(tool.tool):
            said = f"{place[:100]!r} holds {what}; say what the tool does, not what the model must do"
            found.append(Finding(level="error", code="instruction", tools=(_title(tool),), message=said))
    return found


def _units(tools: Sequence[OwnTool]) -> list[Finding]:
    found = []
    for tool in tools:
        for name, kind in missing_units(tool.tool):
            said = f"the parameter {name[:60]!r} seems to be a {kind} and states no unit; name it"
            found.append(Finding(level="warning", code="no-unit", tools=(_title(tool),), message=said))
    return found


def _near(tools: Sequence[OwnTool]) -> list[Finding]:
    """Names and descriptions that resemble an earlier tool's; equal names are a finding of their own."""
    kept = list({tool.name: tool for tool in reversed(tools)}.values())[::-1]
    found = []
    for what, threshold, texts in (
        ("name", NAMES, [tool.name for tool in kept]),
        ("description", DESCRIPTIONS, [tool.tool.description for tool in kept]),
    ):
        for place, earlier in alike([words(text) for text in texts], threshold):
            titles = tuple(_title(kept[at]) for at in (*earlier, place))
            said = f"the {what} shares most of its words with an earlier tool's; say what sets them apart"
            found.append(Finding(level="warning", code=f"near-{what}", tools=titles, message=said))
    return found


def registry_tokens(tools: Sequence[OwnTool]) -> int:
    """About how many tokens the registry costs per request: UTF-8 bytes of its compact JSON over 4."""
    sent = [
        {
            "type": "function",
            "function": {"name": tool.tool.name, "description": tool.tool.description}
            | {"parameters": tool.tool.parameters},
        }
        for tool in tools
    ]
    return -(-len(json.dumps(sent, ensure_ascii=False, separators=(",", ":")).encode()) // 4)
