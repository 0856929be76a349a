"""What of a tool registry would break before any model is asked."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Literal

import msgspec

from robustbench_tc.schema import Json, Tool, dumps

from ..llm.wire_names import MAX_NAME, safe_name
from . import instructions
from .cases import OwnTool
from .instructions import LONGEST
from .words import lacks_unit, words_of

ROOT = 'the root of the schema lacks "type": "object": MCP clients refuse the whole tool list'

COMPARED = 1_000
"""Tools that are compared with each other, the first of a registry."""

LISTED = 1_000
"""Pairs of tools that are reported as alike at most."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding. Errors fail a check in CI, warnings do under `--strict`."""

    level: Literal["error", "warning"]
    code: str
    tools: tuple[str, ...]
    """`prefix:name` of each tool it is about; none of a world's."""
    message: str


def lint(tools: Sequence[OwnTool]) -> tuple[Finding, ...]:
    """All findings; those about what is said of parameters last."""
    return (
        *_names(tools),
        *(_error("refused-root", ROOT, one) for one in tools if one.tool.parameters.get("type") != "object"),
        *_instructions(tools),
        *_alike(tools),
        *_descriptions(tools),
    )


def tokens(tools: Sequence[OwnTool]) -> int:
    """About how many tokens the registry costs in every request: a token for four bytes of it as it is sent.

    No tokenizer is asked: each model has its own, and they lie some ten to twenty per cent around this.
    """
    sent = [
        {"name": safe_name(one.name), "description": one.tool.description, "parameters": one.tool.parameters}
        for one in tools
    ]
    return sum(-(-len(dumps({"type": "function", "function": one}).encode()) // 4) for one in sent)


def _error(code: str, message: str, *tools: OwnTool) -> Finding:
    titles = tuple(f"{tool.prefix}:{tool.name}" for tool in tools)
    return Finding(level="error", code=code, tools=titles, message=message)


def _warning(code: str, message: str, *tools: OwnTool) -> Finding:
    return msgspec.structs.replace(_error(code, message, *tools), level="warning")


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
            found.append(_warning("long-name", said, tool))
    for name, several in same.items():
        if len(several) > 1:
            said = f"{len(several)} tools are called {name[:80]!r}; rename all but one"
            found.append(_error("same-name", said, *several))
    for sent, by_name in wire.items():
        if len(by_name) > 1:
            said = f"{len(by_name)} names become {sent!r} as clients send them; rename all but one"
            found.append(_error("name-collision", said, *by_name.values()))
    return found


def _descriptions(tools: Sequence[OwnTool]) -> list[Finding]:
    found = []
    for tool in tools:
        if not tool.tool.description.strip():
            found.append(_warning("no-description", "the tool has no description", tool))
        properties = tool.tool.properties
        for name, schema in properties.items():
            if isinstance(schema, dict) and not str(schema.get("description") or "").strip():
                said = f"the parameter {name[:60]!r} has no description"
                found.append(_warning("parameter-description", said, tool))
            if isinstance(schema, dict) and lacks_unit(name, schema):
                said = f"the number {name[:60]!r} is of something measured, and no unit is named"
                found.append(_warning("no-unit", said, tool))
        for name in tool.tool.required:
            if name not in properties:
                said = f"requires {name[:60]!r}, which its properties do not declare"
                found.append(_warning("required-undeclared", said, tool))
    return found


def _instructions(tools: Sequence[OwnTool]) -> list[Finding]:
    found = []
    for tool in tools:
        for where, text in texts_of(tool.tool):
            if (what := instructions.found(text)) is not None:
                said = f"{where} {what}: a description describes; whoever may write here steers the agent"
                found.append(_error("instruction", said, tool))
    return found


def _alike(tools: Sequence[OwnTool]) -> list[Finding]:
    """Pairs of tools that a model can hardly tell apart; those of one name on the wire are `_names`'."""
    wire = [safe_name(tool.name) for tool in tools]
    found: dict[tuple[int, int], str] = {}
    for what, least, sets in (
        ("names", 0.6, [words_of(tool.name) for tool in tools]),
        ("descriptions", 0.9, [words_of(tool.tool.description[:LONGEST]) for tool in tools]),
    ):
        for one, other in alike(sets, least):
            if len(found) >= LISTED:
                break
            if wire[one] != wire[other]:
                found.setdefault((one, other), what)
    return [
        _warning(
            "near-duplicate",
            f"their {what} are nearly the same: say in both what only this one does",
            tools[one],
            tools[other],
        )
        for (one, other), what in sorted(found.items())
    ]


def alike(sets: Sequence[frozenset[str]], least: float) -> Iterator[tuple[int, int]]:
    """Places of two sets whose Jaccard index is `least` or more, each pair once; empty sets are like none."""
    for one, other in combinations(range(min(len(sets), COMPARED)), 2):
        shared = len(sets[one] & sets[other])
        if shared and shared >= least * len(sets[one] | sets[other]) - 1e-9:
            yield one, other


def texts_of(tool: Tool) -> Iterator[tuple[str, str]]:
    """Every text of a tool that a model reads, and where it stands."""
    yield "the description", tool.description
    left: list[tuple[str, Json]] = [("the schema", tool.parameters)]
    while left:
        where, value = left.pop()
        if isinstance(value, dict):
            for key, inner in value.items():
                if key in ("description", "title", "examples", "default") and isinstance(inner, str):
                    yield f"a {key} in {where}", inner
                left.append((f"{key[:40]!r}" if isinstance(inner, dict) else where, inner))
        elif isinstance(value, list):
            left += [(where, inner) for inner in value]
