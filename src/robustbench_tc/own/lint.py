"""What of a tool registry would break before any model is asked: names, schemas, descriptions.

Texts that speak to the model instead of describing the tool, as an attacker would plant them, are looked for
narrowly: `docs/own-lint.md` says which, and what is found in public registries.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json, Tool, dumps
from robustbench_tc.worlds.check import check
from robustbench_tc.worlds.handle import load_file

from ..llm.wire_names import MAX_NAME, safe_name
from .cases import OwnTool
from .read import read_cases
from .tools import read_tools

_SAID: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (what, re.compile(pattern, re.IGNORECASE))
    for what, pattern in (
        (
            "tells the model to disregard what it was told",
            r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|other|all)"
            r"\b.{0,20}\b(?:instructions?|prompts?|messages?|rules|tools)\b",
        ),
        (
            "tells the model to hide something from the user",
            r"\b(?:do not|don't|never|without)\b.{0,20}\b(?:tell|inform|mention|reveal|notify|alert)"
            r"\w*\b.{0,40}\b(?:user|customer|human|person)\b",
        ),
        (
            "tells the model when to call it",
            r"\balways (?:call|use|invoke|prefer|choose|select|run) (?:this|it)\b|"
            r"\b(?:before|instead of) (?:using|calling|any use of) (?:any|all|every|the) other tools?\b|"
            r"\byou (?:must|have to|are required to|should always) (?:first |always )?"
            r"(?:call|use|invoke|run) (?:this|it)\b",
        ),
        (
            "asks for secrets or the conversation",
            r"\b(?:send|include|pass|append|upload|forward|provide)\b.{0,60}\b(?:system prompt|chat history|"
            r"conversation history|entire conversation|private key|ssh key|\.ssh|\.env\b)",
        ),
        ("imitates a system message", r"<\|?(?:im_start|system|important)\|?>|\[/?(?:INST|SYSTEM)\]|<<SYS>>"),
    )
)
_HIDDEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
"""Characters that no reader sees, or that turn the order in which he reads."""

LONGEST = 20_000
"""Characters of a text that are looked at."""


def addressed_to_model(text: str) -> str | None:
    """What a text does that a description should not; None where it only describes."""
    text = text[:LONGEST]
    if _HIDDEN.search(text):
        return "holds characters that nobody sees"
    plain = " ".join(text.split())
    return next((what for what, pattern in _SAID if pattern.search(plain)), None)


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+|\d+")


def words_of(text: str) -> frozenset[str]:
    """Its distinct words in small letters; `getOrder_byId` has get, order, by and id."""
    return frozenset(word.casefold() for word in _WORD.findall(text))


_MEASURED = frozenset(
    "timeout duration delay interval ttl elapsed lifetime deadline uptime "  # time
    "price amount cost budget fee salary income payment balance revenue rent wage "  # money
    "size length width height weight depth thickness volume capacity mass "  # size
    "distance radius altitude elevation mileage "  # distance
    "temperature temp".split()
)
"""Words of a parameter's name that ask for a unit."""

_COUNTED = frozenset("page batch sample font pool window list array chunk".split())
"""Words beside `size` and `length` that make it a count."""

_UNITS = frozenset(
    "s sec secs second seconds ms millisecond milliseconds us microseconds ns min mins minute minutes h "
    "hr hrs hour hours day days week weeks month months year years epoch unix timestamp "
    "usd eur gbp jpy cny inr chf euro euros dollar dollars cent cents pound pounds yen yuan rupees currency "
    "byte bytes kb mb gb tb kib mib gib bit bits px pixel pixels pt "
    "m cm mm km meter meters metre metres centimeter centimeters centimetres kilometer kilometers kilometres "
    "mile miles foot feet ft inch inches in yard yards "
    "g kg mg gram grams kilogram kilograms lb lbs ounce ounces oz ton tons tonnes "
    "l ml liter liters litre litres gallon gallons "
    "celsius fahrenheit kelvin degree degrees c f k percent percentage ratio fraction rate unit units "
    "character characters letters words tokens items rows elements count number".split()
)
_SIGNS = re.compile(r"[%$€£¥°]")


def lacks_unit(name: str, schema: dict[str, Json]) -> bool:
    """Whether a numeric parameter is of time, money, size, distance or temperature, and no unit is named."""
    types = schema.get("type")
    words = types if isinstance(types, list) else [types]
    if not {"integer", "number"} & {word for word in words if isinstance(word, str)}:
        return False
    named = words_of(name)
    if not named & _MEASURED or named & _COUNTED:
        return False
    said = str(schema.get("description") or "")
    if "enum" in schema or "const" in schema or _SIGNS.search(said):
        return False
    return not ((named - _MEASURED) | words_of(said)) & _UNITS


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
    rootless = (one for one in tools if one.tool.parameters.get("type") != "object")
    return (
        *_names(tools),
        *(_finding("refused-root", ROOT, one, level="error") for one in rootless),
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


def _finding(
    code: str, message: str, *tools: OwnTool, level: Literal["error", "warning"] = "warning"
) -> Finding:
    titles = tuple(f"{tool.prefix}:{tool.name}" for tool in tools)
    return Finding(level=level, code=code, tools=titles, message=message)


def _names(tools: Sequence[OwnTool]) -> Iterator[Finding]:
    """Names that are equal, or become equal when a client cuts them and replaces what it does not accept."""
    same: dict[str, list[OwnTool]] = {}
    wire: dict[str, dict[str, OwnTool]] = {}
    for tool in tools:
        same.setdefault(tool.name, []).append(tool)
        wire.setdefault(safe_name(tool.name), {}).setdefault(tool.name, tool)
        if len(tool.name) > MAX_NAME:
            said = f"the name has {len(tool.name)} characters, clients cut it after {MAX_NAME}"
            yield _finding("long-name", said, tool)
    for name, several in same.items():
        if len(several) > 1:
            said = f"{len(several)} tools are called {name[:80]!r}; rename all but one"
            yield _finding("same-name", said, *several, level="error")
    for sent, by_name in wire.items():
        if len(by_name) > 1:
            said = f"{len(by_name)} names become {sent!r} as clients send them; rename all but one"
            yield _finding("name-collision", said, *by_name.values(), level="error")


def _descriptions(tools: Sequence[OwnTool]) -> Iterator[Finding]:
    for tool in tools:
        if not tool.tool.description.strip():
            yield _finding("no-description", "the tool has no description", tool)
        properties = tool.tool.properties
        for name, schema in properties.items():
            if isinstance(schema, dict) and not str(schema.get("description") or "").strip():
                said = f"the parameter {name[:60]!r} has no description"
                yield _finding("parameter-description", said, tool)
            if isinstance(schema, dict) and lacks_unit(name, schema):
                said = f"the number {name[:60]!r} is of something measured, and no unit is named"
                yield _finding("no-unit", said, tool)
        for name in tool.tool.required:
            if name not in properties:
                said = f"requires {name[:60]!r}, which its properties do not declare"
                yield _finding("required-undeclared", said, tool)


def _instructions(tools: Sequence[OwnTool]) -> Iterator[Finding]:
    for tool in tools:
        for where, text in texts_of(tool.tool):
            if (what := addressed_to_model(text)) is not None:
                said = f"{where} {what}: a description describes; whoever may write here steers the agent"
                yield _finding("instruction", said, tool, level="error")


def _alike(tools: Sequence[OwnTool]) -> Iterator[Finding]:
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
    for (one, other), what in sorted(found.items()):
        said = f"their {what} are nearly the same: say in both what only this one does"
        yield _finding("near-duplicate", said, tools[one], tools[other])


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


YAML = (".yaml", ".yml")
"""Endings of a cases file."""

SHOWN = 50
"""Findings of one code that are shown."""


class Linted(msgspec.Struct, frozen=True, kw_only=True):
    """What `rbtc lint` found."""

    files: tuple[str, ...]
    tools: int
    """But for those of worlds."""
    tokens: int
    """What the registry costs in every request, about."""
    findings: tuple[Finding, ...]
    exit_code: int
    """1 where an error was found, with `strict` where anything was."""

    def shown(self) -> Iterator[str]:
        """The findings, errors first, and the summary."""
        of_code = Counter[str]()
        for one in sorted(self.findings, key=lambda one: one.level):
            of_code[one.code] += 1
            if of_code[one.code] <= SHOWN:
                tools = f"{', '.join(one.tools[:4])}: " if one.tools else ""
                yield f"{one.level}: {one.code}: {tools}{one.message}"
        for code, count in of_code.items():
            if count > SHOWN:
                yield f"{code}: {count - SHOWN} more (--json shows them)"
        errors = sum(one.level == "error" for one in self.findings)
        tools = f"{self.tools:,} tools, about {self.tokens:,} tokens in every request"
        what = tools if self.tools else f"worlds {len(self.files)}"
        yield f"{what}: errors {errors}, warnings {len(self.findings) - errors}"


def lint_files(
    files: Sequence[Path], live: Sequence[OwnTool] = (), server: str = "", strict: bool = False
) -> Linted:
    """The findings over all files together, and over the tools of a live server.

    A world's file is loaded: its code runs. Raises UserError for a file that cannot be read, and for none.
    """
    tools: list[OwnTool] = list(live)
    read: dict[str, Path | str] = {one.prefix: server for one in live}
    worlds = [file for file in files if file.suffix == ".py"]
    for file in files:
        if file in worlds:
            continue
        found: Sequence[OwnTool] = read_cases(file).tools if file.suffix in YAML else read_tools(file)
        for prefix in dict.fromkeys(tool.prefix for tool in found):
            if prefix in read:
                raise UserError(f"{file}: {read[prefix]} has the stem {prefix!r} too; rename one")
            read[prefix] = file
        tools += found
    if not tools and not worlds:
        raise UserError("no tools: name a tools file, or an MCP server behind --")
    mistakes = [one for file in worlds for one in check(load_file(file))]
    findings = (
        *(Finding(level="error", code="world", tools=(), message=one) for one in mistakes),
        *lint(tools),
    )
    return Linted(
        files=(*map(str, files), *([server] if server else ())),
        tools=len(tools),
        tokens=tokens(tools),
        findings=findings,
        exit_code=int(any(strict or one.level == "error" for one in findings)),
    )
