"""Edits of a tool registry: pure functions on tuples of tools, and the diff entries they amount to.

New tools in the form of the registry that they join, by code.

A model writes schemas in a form of its own, and the form alone would tell a new tool from an original one. So
the registry gives its form, and nothing else: the keys of the schema and their order, the words for types,
and how many parameters are required, as of the tool that the new one stands beside. Names, descriptions and
parameters stay as they were written and judged: none is copied from another tool, none is added, none goes.

Nothing is drawn: the same registry and the same new tool give the same result.
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from robustbench_tc import sources
from robustbench_tc.schema import CONTROL_TOOLS, OMIT, Call, Change, GoldenAnswer, Json, Sample, Tool, dumps
from robustbench_tc.taxonomy import CLEAN

from .base import NotApplicable, Perturbation

NO_PARAMETERS: dict[str, Json] = {"type": "object", "properties": {}}
"""The schema of a distractor whose type says that it has none."""


def gold_tools(sample: Sample) -> Mapping[str, int]:
    """Index in the registry of each distinct tool that the first answer calls, in calling order.

    Raises NotApplicable where the sample has no single gold tool, no gold call, or calls an unlisted tool.
    """
    source = sources.find(sample.source)
    if source is not None and not source.single_gold_tool:
        raise NotApplicable("no_single_gold_tool")
    if not sample.golden_answers or not sample.golden_answers[0]:
        raise NotApplicable("no_gold_call")
    first = sample.golden_answers[0]
    found: dict[str, int] = {}
    for name in dict.fromkeys(call.name for call in first):
        places = [at for at, tool in enumerate(sample.tools) if tool.name == name]
        if sample.type_code == CLEAN and len(places) > 1:
            raise NotApplicable("gold_tool_listed_twice")
        if name == first[0].name and sample.gold_tool_index is not None:
            places = [sample.gold_tool_index]
        if len(places) > 1:  # an earlier part of a mixed type brought its namesake in
            calls = calls_of(sample, name)
            places = [at for at in places if accepts(sample.tools[at], calls)]
            if len(places) != 1:
                raise NotApplicable("gold_tool_listed_twice")
        if not places:
            raise NotApplicable("gold_tool_not_listed")
        (found[name],) = places
    return found


def accepts(tool: Tool, calls: Iterable[Call]) -> bool:
    """Whether one of these golden calls fits the tool's parameters in some form.

    A parameter whose accepted values hold OMIT may be given or left out: the tool has to declare what the
    shortest form of the call gives, and may require no more than the longest one has.
    """
    declared, required = tool.properties.keys(), set(tool.required)
    return any(declared >= shortest(call) and required <= call.parameters.keys() for call in calls)


def shortest(call: Call) -> frozenset[str]:
    """Names of the parameters that a golden call gives in its shortest form."""
    return frozenset(name for name, values in call.parameters.items() if not may_be_left_out(values))


def may_be_left_out(values: Json) -> bool:
    """Whether a golden parameter's accepted values say that it may be missing."""
    return isinstance(values, list | tuple) and any(isinstance(v, str) and v == OMIT for v in values)


class Gold(NamedTuple):
    """A gold tool, and what a tool beside it must not be."""

    tool: Tool
    calls: tuple[Call, ...]
    """Every call of it in any accepted answer."""
    near: tuple[Tool, ...]
    """The tools of its registry that may lend it wrong parameters."""


def golds(sample: Sample) -> tuple[Gold, ...]:
    """The sample's gold tools in calling order. Raises NotApplicable as `gold_tools`."""
    found = []
    for index in gold_tools(sample).values():
        tool = sample.tools[index]
        calls = calls_of(sample, tool.name)
        near = (one for one in sample.tools if _lends(one, tool) and not accepts(one, calls))
        found.append(Gold(tool, calls, tuple(near)))
    return tuple(found)


def _lends(tool: Tool, gold: Tool, described: bool = False) -> bool:
    """Whether the tool's parameters, with `described` also its description, are not those of gold."""
    properties = tool.properties.keys()
    return (
        bool(properties)
        and tool.name != gold.name
        and tool.name not in CONTROL_TOOLS
        and properties != gold.properties.keys()
        and (not described or (bool(tool.description.strip()) and tool.description != gold.description))
    )


def donor(
    gold: Gold, registry: Sequence[Tool], pool: Sequence[Tool], rng: random.Random, *, described: bool
) -> Tool:
    """A random tool to lend wrong parameters to a namesake of `gold`: of its registry, else of the pool.

    A donor is not a control tool and has a non-empty set of parameter names that differs from gold's; with
    `described`, also a description that differs from gold's. None of the golden calls fits its parameters.
    Raises NotApplicable where there is no such tool.
    """

    def lends(tool: Tool) -> bool:
        return _lends(tool, gold.tool, described)

    near = tuple(filter(lends, gold.near)) if described else gold.near
    if near:
        return rng.choice(near)
    for _ in range(32 if pool else 0):  # almost every tool of a pool fits: draw before looking at them all
        tool = rng.choice(pool)
        if lends(tool) and not accepts(tool, gold.calls):
            return tool
    far = [tool for tool in pool if lends(tool) and not accepts(tool, gold.calls)]
    if not far:
        accepting = any(map(lends, (*registry, *pool)))
        raise NotApplicable("every_donor_accepts_gold_call" if accepting else "no_donor_tool")
    return rng.choice(far)


def donor_pools(samples: Iterable[Sample]) -> dict[str, list[Tool]]:
    """The distinct tools of each source's samples, in order of first appearance."""
    pools: dict[str, dict[str, Tool]] = {}
    for sample in samples:
        pool = pools.setdefault(sample.source, {})
        for tool in sample.tools:
            pool.setdefault(dumps(tool), tool)
    return {source: list(pool.values()) for source, pool in pools.items()}


def calls_of(sample: Sample, name: str) -> tuple[Call, ...]:
    """Every call of the tool in any accepted answer."""
    return tuple(call for answer in sample.golden_answers for call in answer if call.name == name)


def insert(tools: Sequence[Tool], new: Sequence[Tool], rng: random.Random) -> tuple[Tool, ...]:
    """The registry with each new tool at a random place, one after the other."""
    out = list(tools)
    for tool in new:
        out.insert(rng.randrange(len(out) + 1), tool)
    return tuple(out)


def index_of(tools: Sequence[Tool], wanted: Tool) -> int:
    """Index of that very object: with duplicate names, or duplicate tools, equality does not say which."""
    return next(place for place, tool in enumerate(tools) if tool is wanted)


def with_new_tools(
    unit: Perturbation, sample: Sample, new: Sequence[Tool], rng: random.Random, **fields: Any
) -> Sample:
    """The row of the type with these fields, in which the new tools have entered at seeded places."""
    tools, ours = insert(sample.tools, new, rng), {id(tool) for tool in new}
    changes = [Change(f"/tools/{at}", None, plain(tool)) for at, tool in enumerate(tools) if id(tool) in ours]
    gold = None
    if sample.gold_tool_index is not None:
        gold = index_of(tools, sample.tools[sample.gold_tool_index])
    return unit.row(sample, changes, tools=tools, gold_tool_index=gold, **fields)


def plain(tool: Tool) -> dict[str, Json]:
    """The tool as it stands in JSON; the schema is shared, not copied."""
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def keeps_gold(clean: Sample, row: Sample) -> list[str]:
    """Whether the index is still on the clean gold tool, where the clean row has one."""
    if clean.gold_tool_index is None or (
        row.gold_tool_index is not None
        and row.tools[row.gold_tool_index] == clean.tools[clean.gold_tool_index]
    ):
        return []
    return ["gold_tool_index does not point at the gold tool"]


def gold_change(sample: Sample, golden: tuple[GoldenAnswer, ...]) -> list[Change]:
    """The diff entry of the golden answers, where they are other ones."""
    if golden == sample.golden_answers:
        return []
    return [Change("/golden_answers", *map(msgspec.to_builtins, (sample.golden_answers, golden)))]


def surplus(clean: Sequence[Tool], row: Sequence[Tool]) -> list[Tool] | None:
    """The tools of `row` beyond `clean`, if `row` is `clean` in order with tools put in; else None."""
    extra: list[Tool] = []
    rest = list(clean)
    for tool in row:
        if rest and tool == rest[0]:
            rest.pop(0)
        else:
            extra.append(tool)
    return None if rest else extra


def as_pointer(name: str) -> str:
    """A name as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def described_parameters(schema: Json, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Every described parameter of a schema, nested ones too: (JSON pointer, name, description)."""
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        where = f"{path}/properties/{as_pointer(name)}"
        text = inner.get("description") if isinstance(inner, dict) else None
        if isinstance(text, str) and text.strip():
            yield where, name, text
        yield from described_parameters(inner, where)
    yield from described_parameters(schema.get("items"), f"{path}/items")


_SAID = frozenset(("type", "description"))
"""Keys that every parameter may have."""

_OTHER_NUMBER: dict[str, Json] = {"integer": "number", "number": "integer"}

_SAYING_LITTLE = frozenset(
    "a an the of for to in on at by with from and or this that which is are it its one given tool api get "
    "gets return returns retrieve retrieves list lists find finds".split()
)


def in_form_of(registry: Sequence[Tool], tool: Tool, beside: Tool) -> Tool | None:
    """The new tool in the form of a registry (without control tools), of which `beside` is one.

    None where a parameter has a key that no parameter of the registry has, or one that says more of a type
    than its name, in a type that the registry has not: it could only be reshaped.
    """
    own = [inner for one in registry for inner in one.properties.values() if isinstance(inner, dict)]
    words, keys = [inner.get("type") for inner in own], _SAID.union(*own)
    entries = next((inner["items"] for inner in own if "items" in inner), None)
    properties: dict[str, Json] = {}
    for name, inner in tool.properties.items():
        # The registry's word for a type: itself, the other word for numbers, or a text.
        also = (inner.get("type"), _OTHER_NUMBER.get(str(inner.get("type"))))
        word = next((one for one in also if one is not None and one in words), "string")
        if not (inner.keys() <= keys and (word == inner.get("type") or inner.keys() <= _SAID)):
            return None
        typed = {"type": word} | {key: value for key, value in inner.items() if key != "type"}
        if word == "array" and isinstance(entries, dict) and "items" not in inner:
            typed = {"type": word, "items": {"type": entries.get("type", "string")}} | typed
        properties[name] = typed
    form: dict[str, Json] = {"properties": properties, "required": _required(tool, beside)}
    parameters = {key: form.get(key, value) for key, value in beside.parameters.items()}
    return Tool(tool.name, tool.description, {"type": "object", "properties": properties} | parameters)


def _required(tool: Tool, beside: Tool) -> list[str]:
    """As large a share as of the tool beside it, those first that were written as required."""
    names = list(tool.properties)
    if not beside.properties:
        return list(tool.required)
    number = (2 * len(beside.required) * len(names) + len(beside.properties)) // (2 * len(beside.properties))
    if 0 < len(beside.required) < len(beside.properties) and len(names) > 1:  # some are, and some are not
        number = min(max(number, 1), len(names) - 1)
    first = sorted(names, key=lambda name: name not in tool.required)[:number]
    return [name for name in names if name in first]


def near_duplicates(one: Tool, other: Tool) -> bool:
    """Whether two tools are all but the same: by the words of their names, of their descriptions, or both."""
    if one.name == other.name:
        return True
    names = _shared(_name_words(one.name), _name_words(other.name))
    words = _shared(_description_words(one.description), _description_words(other.description))
    return names >= 100 or words >= 60 or names + words >= 105


def _shared(one: frozenset[str], other: frozenset[str]) -> int:
    """How many in a hundred of the words of either are in both, rounded down."""
    return 100 * len(one & other) // len(one | other) if one and other else 0


@lru_cache(10_000)
def _name_words(name: str) -> frozenset[str]:
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    return frozenset(_singular(word.lower()) for word in found)


@lru_cache(10_000)
def _description_words(text: str) -> frozenset[str]:
    words = re.findall(r"[a-z0-9]+", text.lower())
    return frozenset(_singular(word) for word in words if word not in _SAYING_LITTLE)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
