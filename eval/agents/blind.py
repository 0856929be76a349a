"""Blind policies: rules that choose a tool from the registry alone, without a word of the request.

A policy is a function of the listed tools, so it can see neither the conversation nor the gold. Where it
chooses the gold tool, nothing had to be read. Each looks at the *confusable* tools of a registry: those that
share their name with another one (namesakes); where there are none, those that differ from another one in
nothing but their name and the numbers in their description (lookalikes); where there are none either, every
tool but the control tools.

As reference agents they call what they choose. The arguments are the gold's, like those of the other
reference agents, since a policy says only which tool is called; of a wrong tool every parameter gets a text
that no gold accepts.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from robustbench_tc.memo import remembered
from robustbench_tc.schema import CONTROL_TOOLS, Call, Json, Sample, Tool, dumps

from ..render import concrete
from ..score import scoring_tools
from .base import Agent, AgentContext, takes_junk
from .scripted import JUNK

Registry = tuple[Tool, ...]

Choice = Callable[[Registry], int | None]
"""The place of the chosen tool; None where no tool is listed."""

_OFFER = re.compile(r"\$\s?(?P<price>\d+(?:\.\d+)?)|(?P<time>\d+(?:\.\d+)?)\s?(?P<unit>ms|s)\b")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Policy(NamedTuple):
    """A rule of choice, and what it does in words."""

    about: str
    choose: Choice


# --- what a registry shows ----------------------------------------------------------------------------------


class Look(NamedTuple):
    """What of one tool the policies compare."""

    schema: str
    described: bool
    length: int
    """Characters of the description and of the parameters as JSON."""
    masked: str
    """The description with every number as `0`."""
    offer: float | None
    """The price in dollars or the time in milliseconds that the description states last."""
    style: tuple[frozenset[str], frozenset[str], frozenset[str]]
    """Keys of the parameters' schema, keys of the parameters, their types."""


@remembered(50_000)  # the tools of a clean sample stand in the rows of every type
def look(tool: Tool) -> Look:
    schema = _text(tool.parameters)
    described = bool(tool.description.strip())
    return Look(
        schema,
        described,
        len(tool.description) + len(schema),
        _NUMBER.sub("0", tool.description),
        _offer(tool.description),
        _style(tool),
    )


def _text(parameters: Json) -> str:
    """The parameters as text; odd ones too (a lone surrogate is no JSON)."""
    try:
        return dumps(parameters)
    except (ValueError, TypeError, RecursionError):
        return repr(parameters)


def _offer(description: str) -> float | None:
    found = None
    for found in _OFFER.finditer(description):  # noqa: B007
        pass
    if found is None:
        return None
    if found["price"] is not None:
        return float(found["price"])
    return float(found["time"]) * (1000 if found["unit"] == "s" else 1)


def _style(tool: Tool) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    inner = [one for one in tool.properties.values() if isinstance(one, dict)]
    return (
        frozenset(tool.parameters),
        frozenset(key for one in inner for key in one),
        frozenset(str(one.get("type")) for one in inner),
    )


@remembered(5_000)  # every policy asks for the same registry in turn
def confusable(tools: Registry) -> list[int]:
    """Places of the tools between which a policy chooses; see the module's text. Empty for no tools only."""
    names = Counter(tool.name for tool in tools)
    if len(names) < len(tools):
        return [place for place, tool in enumerate(tools) if names[tool.name] > 1]
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, tool in enumerate(tools):
        seen = look(tool)
        groups[seen.schema, seen.masked].append(place)
    if alike := sorted(place for group in groups.values() if len(group) > 1 for place in group):
        return alike
    acting = [place for place, tool in enumerate(tools) if tool.name not in CONTROL_TOOLS]
    return acting or list(range(len(tools)))


# --- the policies -------------------------------------------------------------------------------------------


def _least(rank: Callable[[Tool], tuple[float, ...]], tools: Registry) -> int | None:
    """The confusable tool with the least rank; of equals the one that is listed first."""
    return min(confusable(tools), key=lambda place: (*rank(tools[place]), place), default=None)


def _offered(tool: Tool) -> tuple[float, ...]:
    offer = look(tool).offer
    return (1.0, 0.0) if offer is None else (0.0, offer)


def _defined(tool: Tool) -> tuple[float, ...]:
    seen = look(tool)
    return (not seen.described, -seen.length)


def _odd(tools: Registry) -> int | None:
    styles = Counter(look(tool).style for tool in tools)
    return _least(lambda tool: (styles[look(tool).style],), tools)


POLICIES: Mapping[str, Policy] = {
    "picks-best-offer": Policy(
        "takes the confusable tool that states the lowest price or the shortest time, else the first",
        partial(_least, _offered),
    ),
    "picks-shortest-twin": Policy(
        "takes the confusable tool with the shortest name, and reads no price",
        partial(_least, lambda tool: (len(tool.name),)),
    ),
    "picks-longest-definition": Policy(
        "takes the confusable tool that has a description, of several the one with the longest definition "
        "(description and parameters)",
        partial(_least, _defined),
    ),
    "picks-odd-schema": Policy(
        "takes the confusable tool whose schema is written as the fewest of the registry are (keys, types)",
        _odd,
    ),
    "picks-by-position": Policy(
        "takes the confusable tool that is listed first",
        partial(_least, lambda tool: ()),
    ),
}


def gold_places(row: Sample) -> frozenset[int]:
    """Places in the registry of the tools that are right to choose.

    That is the gold tool; beside it, where other answers are accepted, the tools that begin those. A namesake
    of the gold tool is not one of them.
    """
    begun = {answer[0].name for answer in row.golden_answers if answer}
    gold = row.gold_tool_index
    if gold is None or not 0 <= gold < len(row.tools):
        return frozenset(place for place, tool in enumerate(row.tools) if tool.name in begun)
    begun.discard(row.tools[gold].name)
    return frozenset(place for place, tool in enumerate(row.tools) if place == gold or tool.name in begun)


class Tried(NamedTuple):
    """What comes of choosing blindly in one row."""

    gold: frozenset[int]
    """`gold_places`."""
    among: list[int]
    """`confusable`."""
    right: dict[str, bool]
    """Policy → whether its choice is right."""

    @property
    def chance(self) -> Fraction:
        """That one of the confusable tools, drawn at random, is right."""
        return Fraction(len(self.gold.intersection(self.among)), len(self.among) or 1)


def try_blind(row: Sample) -> Tried:
    """Lets every policy choose in the row's registry."""
    gold = gold_places(row)
    right = {name: one.choose(row.tools) in gold for name, one in POLICIES.items()}
    return Tried(gold, confusable(row.tools), right)


# --- as reference agents ------------------------------------------------------------------------------------


def _called(choose: Choice, scene: AgentContext) -> tuple[Call, ...] | str:
    """An accepted answer that the chosen tool begins; else a call of the chosen tool that no gold accepts."""
    row = scene.row
    place = choose(row.tools)
    if place is None:
        return "No tool is listed."
    tool = row.tools[place]
    if place in gold_places(row):
        answer = next((one for one in row.golden_answers if one and one[0].name == tool.name), None)
        if answer is not None:
            return concrete(answer, scoring_tools(row, scene.clean), source=row.source)
    return (Call(tool.name, dict.fromkeys(tool.properties, JUNK)),)


def _is_right(choose: Choice, scene: AgentContext) -> bool:
    row = scene.row
    place = choose(row.tools)
    if place is None:
        return False
    if place in gold_places(row):
        return True
    tool = row.tools[place]
    return any(
        len(answer) == 1 and answer[0].name == tool.name and takes_junk(row, answer[0], set(tool.properties))
        for answer in row.golden_answers
    )


BLIND: Mapping[str, Agent] = {
    name: Agent(policy.about, partial(_called, policy.choose), partial(_is_right, policy.choose))
    for name, policy in POLICIES.items()
}
