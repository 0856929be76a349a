"""The rules of `rbtc lint`, one table: what is looked for, for whom, and where that is known from.

Here those for which a request is refused, as providers document it or people have reported it, and how rules
are added; `advice` has those for what is likely to be misread. `docs/own-lint.md` lists both.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from robustbench_tc.schema import Json, dumps

from ..eval.score.matchers.subschemas import anchors, pointed_at
from ..llm.wire_names import safe_name
from .schemas import misfit, walk
from .tools import Entry

Provider: TypeAlias = Literal["openai", "anthropic", "gemini", "mcp"]
Level: TypeAlias = Literal["error", "warning"]
About: TypeAlias = Iterable[tuple[Sequence[Entry], str]]
"""The tools that a finding is about, and what it says."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table."""

    code: str
    check: Callable[[Sequence[Entry], Any], About]
    limit: Any
    """What the check holds the tools to, where it serves several rows."""
    provider: Provider | None
    """Who refuses the request; None: whoever reads the tools."""
    source: str
    level: Level
    """Where no provider is named with `--for`."""


RULES: list[Rule] = []


def rule(
    code: str, provider: Provider | None = None, source: str = "", limit: Any = None, level: Level = "warning"
) -> Callable[[Callable[..., About]], Callable[..., About]]:
    """Adds a row for a check of all tools."""

    def add(check: Callable[..., About]) -> Callable[..., About]:
        RULES.append(Rule(code=code, check=check, limit=limit, provider=provider, source=source, level=level))
        return check

    return add


def of_each(said: str) -> Callable[[Callable[[Entry, Any], Iterable[str]]], Callable[..., About]]:
    """A check of single tools as one of all: what it finds of a tool, told in `said`, is one finding."""

    def make(check: Callable[[Entry, Any], Iterable[str]]) -> Callable[..., About]:
        def all_of(entries: Sequence[Entry], limit: Any) -> About:
            for one in entries:
                if one.raw and not one.is_page and (found := [text[:120] for text in check(one, limit)]):
                    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
                    yield (one,), said.format(", ".join(found[:3]) + more)

        return all_of

    return make


GITHUB = "https://github.com"
GENAI = f"{GITHUB}/googleapis/python-genai/blob/main/google/genai/types.py"
OPENAI = f"{GITHUB}/openai/openai-python/blob/main/src/openai/types/shared_params/function_definition.py"
CLAUDE = "https://platform.claude.com/docs/en/build-with-claude"


@rule("unreadable", level="error")
def _unreadable(entries: Sequence[Entry], _: None) -> About:
    return (((one,), one.problem) for one in entries if one.problem)


# Names


@rule("name", "openai", OPENAI, r"[A-Za-z0-9_-]{1,64}")
@rule("name", "anthropic", f"{GITHUB}/home-assistant/core/issues/147760", r"[A-Za-z0-9_-]{1,128}")
@rule("name", "gemini", GENAI, r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
@of_each("the name {} is refused: up to 64 letters of ASCII, digits, _ and - will do")
def _name(entry: Entry, limit: str) -> Iterable[str]:
    return [name for name in [entry.name] if name.strip() and not re.fullmatch(limit, name)]


@rule("parameter-name", "anthropic", f"{GITHUB}/ComposioHQ/composio/issues/3500", r"[A-Za-z0-9_.-]{1,64}")
@rule("parameter-name", "gemini", GENAI, r"[A-Za-z_][A-Za-z0-9_]{0,63}")
@of_each("parameters are called {}: up to 64 letters of ASCII, digits and _ will do")
def _parameter_name(entry: Entry, limit: str) -> Iterable[str]:
    return [name for name in entry.tool.properties if not re.fullmatch(limit, name)]


# Schemas


@rule("refused-root", level="error")
@of_each('the root of the schema has the type {}, not "object": MCP clients refuse the whole tool list')
def _root(entry: Entry, _: None) -> Iterable[str]:
    stated = entry.tool.parameters.get("type")
    return [] if stated == "object" else [dumps(stated)]


@rule(
    "root-union",
    "openai",
    f"{GITHUB}/langchain-ai/langchainjs/issues/9804",
    "oneOf anyOf allOf enum not",
)
@rule("root-union", "anthropic", f"{GITHUB}/anthropics/claude-code/issues/4886", "oneOf anyOf allOf")
@of_each("the root of the schema has {}: state one object, and the rest in words")
def _root_union(entry: Entry, limit: str) -> Iterable[str]:
    return [word for word in limit.split() if word in entry.tool.parameters]


def _types(node: dict[str, Json]) -> list[Json]:
    stated = node.get("type")
    return stated if isinstance(stated, list) else [stated]


@rule("no-items", "openai", f"{GITHUB}/mark3labs/mcphost/issues/35")
@rule("no-items", "gemini", f"{GITHUB}/kkrishnan90/gemini-desktop/pull/7")
@of_each("an array has no 'items': {}")
def _no_items(entry: Entry, _: None) -> Iterable[str]:
    nodes = walk(entry.tool.parameters)
    return [place or "/" for place, node in nodes if "array" in _types(node) and "items" not in node]


_TYPE = Literal["array", "boolean", "integer", "null", "number", "object", "string"]
_SIZES = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_KINDS: dict[str, Any] = {
    "type": _TYPE | list[_TYPE],
    "items": dict[str, Any] | bool,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), float),
    **dict.fromkeys(_SIZES, int),
    **dict.fromkeys(("title", "description", "pattern", "format", "$schema"), str),
}
"""What a keyword's value has to be in draft 2020-12; in draft 4 bounds were true or false."""


@rule("draft-2020-12", "anthropic", f"{GITHUB}/Dokploy/mcp/issues/74", _KINDS)
@of_each("no JSON Schema of draft 2020-12: {}")
def _draft(entry: Entry, limit: dict[str, Any]) -> Iterable[str]:
    found = ((place, misfit(node, limit)) for place, node in walk(entry.tool.parameters))
    return [f"{place or '/'}: {wrong}" for place, wrong in found if wrong]


_GEMINI = frozenset(
    "type format title description nullable enum items maxItems minItems properties required minProperties "
    "maxProperties minLength maxLength pattern example anyOf propertyOrdering default minimum maximum".split()
)


@rule("keyword", "gemini", f"{GITHUB}/nanbingxyz/5ire/issues/42", _GEMINI)
@of_each("unknown in 'parameters': {}; send the schema as parametersJsonSchema")
def _keyword(entry: Entry, limit: frozenset[str]) -> Iterable[str]:
    return sorted({word for _, node in walk(entry.tool.parameters) for word in node.keys() - limit})


REFERENCES = 1_000
"""References of one schema that are followed."""


@rule("recursion", "gemini", f"{GITHUB}/pydantic/pydantic-ai/issues/1598")
@of_each("the schema contains itself: {}")
def _recursion(entry: Entry, _: None) -> Iterable[str]:
    nodes, anchored = list(walk(entry.tool.parameters)), anchors(entry.tool.parameters)
    places = {id(node): place for place, node in nodes}
    pointing = [(place, node["$ref"]) for place, node in nodes if "$ref" in node][:REFERENCES]
    leads = {
        place: places.get(id(pointed_at(ref, entry.tool.parameters, anchored))) for place, ref in pointing
    }
    graph = {
        at: [one for one in leads if to is not None and f"{one}/".startswith(f"{to}/")]
        for at, to in leads.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(error.args[1][0]) or "/"]
    return []


@rule("strict", "openai", "https://platform.openai.com/docs/guides/structured-outputs")
@rule("strict", "anthropic", f"{CLAUDE}/structured-outputs")
@of_each("strict, but an object lacks 'additionalProperties': false: {}")
def _strict(entry: Entry, _: None) -> Iterable[str]:
    nodes = walk(entry.tool.parameters) if entry.raw.get("strict") is True else ()
    objects = [(place, node) for place, node in nodes if "object" in _types(node)]
    return [place or "/" for place, node in objects if node.get("additionalProperties") is not False]


# The list as a whole


@rule("too-many", "openai", f"{GITHUB}/0x4m4/hexstrike-ai/issues/29", 128)
@rule("too-many", "gemini", GENAI, 512)
def _too_many(entries: Sequence[Entry], limit: int) -> About:
    count = sum(not one.is_page for one in entries)
    if count > limit:
        yield (), f"{count:,} tools; a request has at most {limit}"


@rule("too-large", "openai", "https://platform.openai.com/docs/models/gpt-4o", 128_000)
@rule("too-large", "anthropic", f"{CLAUDE}/context-windows", 200_000)
@rule("too-large", "gemini", "https://ai.google.dev/gemini-api/docs/long-context", 1_048_576)
def _too_large(entries: Sequence[Entry], limit: int) -> About:
    size = tokens(entries)
    if size > limit:
        yield (), f"about {size:,} tokens; a model's context has {limit:,}"


def tokens(entries: Sequence[Entry]) -> int:
    """About how many tokens the tools cost in every request: a token for four bytes as they are sent.

    No tokenizer is asked: each model has its own, and they lie some ten to twenty per cent around this.
    """
    sent = [
        {"name": safe_name(one.name), "description": one.tool.description, "parameters": one.tool.parameters}
        for one in entries
        if not one.is_page
    ]
    return sum(-(-len(dumps({"type": "function", "function": one}).encode()) // 4) for one in sent)


# MCP: a list as the schema of each revision of the protocol has it


_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_Hints = msgspec.defstruct(
    "_Hints", [("title", str | UnsetType, UNSET), *((hint, bool | UnsetType, UNSET) for hint in _HINTS)]
)
_Root = msgspec.defstruct("_Root", [("type", Literal["object"])])
_Object = msgspec.defstruct(
    "_Object",
    [
        ("properties", dict[str, dict[str, Any]] | UnsetType, UNSET),
        ("required", list[str] | UnsetType, UNSET),
    ],
    bases=(_Root,),
)
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
_PAGE: tuple[tuple[str, Any, tuple[str, ...]], ...] = (("nextCursor", str, REVISIONS),)
_TOOL: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("name", str, REVISIONS),
    ("description", str, REVISIONS),
    ("inputSchema", _Object, REVISIONS[:4]),
    ("inputSchema", _Root, REVISIONS[4:]),
    ("annotations", _Hints, REVISIONS[1:]),
    ("title", str, REVISIONS[2:]),
    ("outputSchema", _Object, REVISIONS[2:4]),
    ("outputSchema", dict[str, Any], REVISIONS[4:]),
)
"""Fields, of which kind they are, and in which revisions."""


@rule("mcp-schema", "mcp", "https://modelcontextprotocol.io/specification")
def _mcp_schema(entries: Sequence[Entry], _: None) -> About:
    for entry in entries:
        wrong: dict[str, list[str]] = {}
        for field, kind, revisions in _PAGE if entry.is_page else _TOOL:
            if entry.is_mcp and (field in entry.raw or field in ("name", "inputSchema")):
                try:
                    msgspec.convert(entry.raw.get(field), kind)
                except msgspec.ValidationError as error:
                    wrong.setdefault(f"{field}: {error}", []).extend(revisions)
        for why, several in wrong.items():
            yield (entry,), f"{why} (revisions {', '.join(several)})"
