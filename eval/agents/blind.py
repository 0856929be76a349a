"""Blind policies: rules that choose a tool from the registry alone, without a word of the request.

A policy is a function of the listed tools, so it can see neither the conversation nor the gold. Where it
chooses the gold tool, nothing had to be read. Each looks at the *confusable* tools of a registry: those that
share their name with another one (namesakes); where there are none, those that differ from another one in
nothing but their name and the numbers in their description (lookalikes); where there are none either, every
tool but the control tools. Namesakes of one name, or lookalikes of each other, are a group, and one tool of
every group is chosen: where an answer calls two tools, each has a distractor of its own.

As reference agents they call what they choose. The arguments are the gold's, like those of the other
reference agents, since a policy says only which tool is called; of a wrong tool every parameter gets a text
that no gold accepts.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from math import prod
from pathlib import Path
from typing import NamedTuple

import msgspec

from robustbench_tc.schema import CONTROL_TOOLS, Call, GoldenAnswer, Sample, Tool

from ..score import scoring_tools
from ..score.golden import concrete
from .base import JUNK, Agent, AgentContext, takes_junk

_OFFER = re.compile(
    r"(?:per (?:call|(?P<many>1,000) calls): )?\$\s?(?P<price>\d{1,15}(?:\.\d{1,15})?)"
    r"|(?<!\d)(?P<time>\d{1,15}(?:\.\d{1,15})?)\s?(?P<unit>ms|s)\b"
)
"""Bounded, and never begun within a number: a text of a million digits is read once."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


# --- what a registry shows ----------------------------------------------------------------------------------


class Look(NamedTuple):
    """What of one tool the policies compare."""

    name: str
    schema: str
    described: bool
    length: int
    """Characters of the description, every offer counted as one, and of the parameters as JSON."""
    masked: str
    """The description with every number as `0`, a price's or a time's unit included."""
    offer: float | None
    """The price in dollars per call or the time in milliseconds that the description states last."""
    style: tuple[frozenset[str], frozenset[str], frozenset[str]]
    """Keys of the parameters' schema, keys of the parameters, their types."""


def look(tool: Tool) -> Look:
    schema = json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":"))  # odd texts too
    without_offers = _OFFER.sub("0", tool.description)
    inner = [one for one in tool.properties.values() if isinstance(one, dict)]
    return Look(
        tool.name,
        schema,
        bool(tool.description.strip()),
        len(without_offers) + len(schema),
        _NUMBER.sub("0", without_offers),
        _offer(tool.description),
        (
            frozenset(tool.parameters),
            frozenset(key for one in inner for key in one),
            frozenset(str(one.get("type")) for one in inner),
        ),
    )


def _offer(description: str) -> float | None:
    *_, found = [None, *_OFFER.finditer(description)]
    if found is None:
        return None
    if found["price"] is not None:
        return float(found["price"]) / (1000 if found["many"] else 1)
    return float(found["time"]) * (1000 if found["unit"] == "s" else 1)


class Seen(NamedTuple):
    """What a registry shows to whoever chooses by it alone."""

    looks: list[Look]
    """Of its tools, in their order."""
    groups: list[list[int]]
    """`confusable`."""


def see(tools: Sequence[Tool]) -> Seen:
    """Looks at a registry once, for all policies."""
    looks = list(map(look, tools))
    return Seen(looks, confusable(looks))


def confusable(looks: Sequence[Look]) -> list[list[int]]:
    """Groups of places between whose tools a policy chooses; see the module's text. [] for no tools only."""
    names: dict[str, list[int]] = defaultdict(list)
    alike: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, seen in enumerate(looks):
        names[seen.name].append(place)
        alike[seen.schema, seen.masked].append(place)
    if len(names) < len(looks):
        return [group for group in names.values() if len(group) > 1]
    if groups := [group for group in alike.values() if len(group) > 1]:
        return groups
    acting = [place for place, seen in enumerate(looks) if seen.name not in CONTROL_TOOLS]
    return [acting or list(range(len(looks)))] if looks else []


# --- the policies -------------------------------------------------------------------------------------------


Choice = Callable[[Seen], frozenset[int]]
"""The places of the chosen tools: one of every group of `confusable`; none where no tool is listed."""


class Policy(NamedTuple):
    """A rule of choice, and what it does in words."""

    about: str
    choose: Choice


def _least(rank: Callable[[Look], tuple[float, ...]], seen: Seen) -> frozenset[int]:
    """Of every group the tool with the least rank; of equals the one that is listed first."""
    return frozenset(min(group, key=lambda place: (*rank(seen.looks[place]), place)) for group in seen.groups)


def _odd(seen: Seen) -> frozenset[int]:
    styles = Counter(tool.style for tool in seen.looks)
    return _least(lambda tool: (styles[tool.style],), seen)


POLICIES: Mapping[str, Policy] = {
    "picks-best-offer": Policy(
        "takes the confusable tool that states the lowest price or the shortest time, else the first",
        partial(_least, lambda tool: (tool.offer is None, tool.offer or 0.0)),
    ),
    "picks-shortest-twin": Policy(
        "takes the confusable tool with the shortest name, and reads no price",
        partial(_least, lambda tool: (len(tool.name),)),
    ),
    "picks-longest-definition": Policy(
        "takes the confusable tool that has a description, of several the one with the longest definition "
        "(description without its offer, and parameters)",
        partial(_least, lambda tool: (not tool.described, -tool.length)),
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


class _Answer(NamedTuple):
    """An accepted answer whose tools are all listed."""

    calls: GoldenAnswer
    first: int
    """Place of the tool that it calls first."""
    tools: frozenset[int]


def _answers(row: Sample) -> list[_Answer]:
    """The accepted answers with the places of their tools.

    A name means the first tool that is listed under it; the gold tool's name means the gold tool.
    """
    places = {tool.name: place for place, tool in reversed(list(enumerate(row.tools)))}
    gold = row.gold_tool_index
    if gold is not None and 0 <= gold < len(row.tools):
        places[row.tools[gold].name] = gold
    return [
        _Answer(answer, places[answer[0].name], frozenset(places[call.name] for call in answer))
        for answer in row.golden_answers
        if answer and all(call.name in places for call in answer)
    ]


def _fitting(row: Sample, chosen: frozenset[int]) -> GoldenAnswer | None:
    """The accepted answer that calls all the chosen tools, one of them first; None where none does."""
    return next((one.calls for one in _answers(row) if one.first in chosen and chosen <= one.tools), None)


class Tried(NamedTuple):
    """What comes of choosing blindly in one row."""

    groups: list[list[int]]
    """`confusable`."""
    gold: frozenset[int]
    """Places of the tools that are right to choose."""
    chance: Fraction
    """That tools drawn at random, one of every group, are right."""
    right: dict[str, bool]
    """Policy → whether its choice is right."""


def try_blind(row: Sample) -> Tried:
    """Lets every policy choose in the row's registry.

    A choice is right if an accepted answer calls all the tools that were chosen, one of them first.
    """
    seen, answers = see(row.tools), _answers(row)
    groups = seen.groups
    right = {name: _fitting(row, one.choose(seen)) is not None for name, one in POLICIES.items()}
    if len(groups) == 1:
        gold = frozenset(one.first for one in answers)
        return Tried(groups, gold, Fraction(len(gold.intersection(groups[0])), len(groups[0])), right)
    drawn = [
        prod((Fraction(len(tools.intersection(group)), len(group)) for group in groups), start=Fraction(1))
        for _, first, tools in answers
        if any(first in group for group in groups)
    ]
    gold = frozenset(place for one in answers for place in one.tools)
    return Tried(groups, gold, max(drawn, default=Fraction(0)), right)


# --- as reference agents ------------------------------------------------------------------------------------


def _called(choose: Choice, scene: AgentContext) -> tuple[Call, ...] | str:
    """The accepted answer that calls the chosen tools; else calls of these that no gold accepts."""
    row = scene.row
    chosen = choose(see(row.tools))
    found = _fitting(row, chosen)
    if found is not None:
        return concrete(found, scoring_tools(row, scene.clean), source=row.source)
    called = (row.tools[place] for place in sorted(chosen))
    return (
        tuple(Call(tool.name, dict.fromkeys(tool.properties, JUNK)) for tool in called)
        or "No tool is listed."
    )


def _is_right(choose: Choice, scene: AgentContext) -> bool:
    """Whether an accepted answer calls the chosen tools, or takes junk in their parameters."""
    row = scene.row
    chosen = choose(see(row.tools))
    if _fitting(row, chosen) is not None:
        return True
    tools = {row.tools[place].name: row.tools[place] for place in chosen}
    return any(
        Counter(call.name for call in answer) == Counter(row.tools[place].name for place in chosen)
        and all(takes_junk(row, call, set(tools[call.name].properties)) for call in answer)
        for answer in row.golden_answers
        if answer
    )


BLIND: Mapping[str, Agent] = {
    name: Agent(policy.about, partial(_called, policy.choose), partial(_is_right, policy.choose))
    for name, policy in POLICIES.items()
}


# --- the figures of a dataset -------------------------------------------------------------------------

AUDIT = "audit_report.json"

COUNTED = 20_000
"""Rows that are counted at most. A larger dataset that nobody audited has no figures; the tables say so."""


class TypeFigures(msgspec.Struct, frozen=True, omit_defaults=True):
    """The counts of one type, or of `clean`."""

    type_code: str
    rows: int
    chance: float
    right: dict[str, int]
    """Blind policy → rows in which it chooses the gold tool."""
    classifier: int | None = None
    """The same of the audit's classifier; None where the rows alone were at hand."""

    def __post_init__(self) -> None:
        counts = (*self.right.values(), self.classifier or 0)
        if self.rows < 1 or not 0 <= self.chance <= 1 or not all(0 <= n <= self.rows for n in counts):
            raise ValueError("figures that no rows have")


class _Audit(msgspec.Struct):
    """What is read of an audit's report."""

    shortcuts: tuple[TypeFigures, ...] = ()


def audited(folder: Path, rows: Mapping[str, int]) -> tuple[TypeFigures, ...]:
    """What the audit's report in `folder` says, if it is about as many rows of each type; else nothing."""
    try:
        found = msgspec.json.decode((folder / AUDIT).read_bytes(), type=_Audit).shortcuts
    except (OSError, ValueError, RecursionError):
        return ()
    return found if sorted((one.type_code, one.rows) for one in found) == sorted(rows.items()) else ()


def counted(rows: Iterable[Sample]) -> tuple[TypeFigures, ...]:
    """The same from the rows: everything but the classifier, which the audit alone trains."""
    tried: dict[str, list[Tried]] = defaultdict(list)
    for row in rows:
        tried[row.type_code].append(try_blind(row))
    return tuple(
        TypeFigures(
            code,
            len(found),
            round(float(sum(one.chance for one in found) / len(found)), 4),
            {name: sum(one.right[name] for one in found) for name in POLICIES},
        )
        for code, found in tried.items()
    )
