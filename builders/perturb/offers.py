"""Offers: a second, equivalent tool enters, and metadata decides between the two (paper, §6.2).

Descriptions are annotated with a price per call (cost types) or a response time (time types). The annotations
are true and the gold tool's is better by a factor of 4 or more; the other tool's name suggests the opposite,
or nothing. All by rule; the registry is shuffled. Where a sample accepts other tools than the first answer's,
those are annotated like the distractor and no longer accepted.
"""

import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import chain, count
from types import MappingProxyType
from typing import ClassVar, Literal, TypeVar

from robustbench_tc.schema import Call, Change, GoldenAnswer, Sample, Tool, dumps

from .base import (
    Context,
    Facts,
    NotApplicable,
    Perturbation,
    broken,
)
from .query import called_in_history, wished
from .registry import gold_change, gold_tools, plain

T = TypeVar("T")

FACTORS = (4, 5, 6, 8, 10)
"""How many times worse the distractor is."""

VALUES = {
    "cost": (2, 5, 10, 20, 25, 50),  # thousandths of a dollar
    "time": (80, 120, 150, 200, 250, 400),  # milliseconds
}
"""What a call of the gold tool costs or takes."""

PREFERENCES: dict[str, tuple[str, ...]] = {
    "cost": (
        "Please keep the cost of the call as low as possible.",
        "I would like the option that costs the least per call.",
        "Use whichever tool is the cheapest for this.",
        "My budget is tight, so pick the least expensive tool.",
    ),
    "time": (
        "Please get me the answer as quickly as possible.",
        "I would like the option that responds the fastest.",
        "Use whichever tool has the shortest response time.",
        "I am in a hurry, so pick the tool that answers soonest.",
    ),
}
"""Sentences added to the last user turn. Ours; none holds a digit or a tool's name."""

NAMES_DISTRACTOR = "history_names_distractor"
"""Flag of a row whose transcript already calls the distractor's name."""

_ANNOTATION = re.compile(r"(?:Price per call: \$(\d+\.\d{3})|Typical response time: (\d+) ms)\.\Z")


def annotation(description: str) -> float | None:
    """The price in dollars or the time in milliseconds that a description ends with, if any."""
    found = _ANNOTATION.search(description)
    return float(found.group(1) or found.group(2)) if found else None


_LETTERS = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@lru_cache(30_000)
def abbreviate(name: str, letters: int = 3) -> str:
    """The name with every part cut to its first `letters` that has at least two more: of more than 4 to 3.

    Parts end at characters that are neither letters nor digits (kept), at camelCase borders and between
    letters and digits: `mutation_type.find` → `mut_type.find`, `getCurrentHTTPStatus2` → `getCurHTTPSta2`.
    """

    def cut(run: re.Match[str]) -> str:
        return "".join(part if len(part) < letters + 2 else part[:letters] for part in _CAMEL.split(run[0]))

    return _LETTERS.sub(cut, name)


def free_name(wanted: str, taken: set[str]) -> str:
    """`wanted`, or with the next free number: `f_1` → `f_2`, `f_Fast` → `f_Fast_2`."""
    stem = wanted.removesuffix("_1")
    names = chain((wanted,), (f"{stem}_{number}" for number in count(2)))
    return next(name for name in names if name not in taken)


class Preference(Perturbation, frozen=True, kw_only=True):
    """The common course of all reward types."""

    TRAITS: ClassVar[tuple[str, ...]] = ("quality", "suffix", "stated")
    quality: Literal["cost", "time"]
    """What the annotations say of a call."""
    suffix: str | None
    """Of the distractor's name; None: the gold tool is abbreviated and the distractor keeps its name."""
    stated: bool
    """Whether the query states the preference."""
    wishes: Mapping[str, tuple[str, ...]] = MappingProxyType(PREFERENCES)
    """The sentences that state it, by `quality`."""
    values: Mapping[str, tuple[int, ...]] = MappingProxyType(VALUES)
    factors: tuple[int | Fraction, ...] = FACTORS
    """How many times worse the distractor is; times a value it is a whole number."""
    letters: int = 3
    """How many letters of each part of the gold tool's name an abbreviation keeps."""
    swapped: bool = False
    """Whether the two annotations have changed places: the distractor is the better offer, and the gold."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        return self.drawn(sample, rng)

    def drawn(self, sample: Sample, rng: random.Random) -> Sample:
        """Each gold tool gets its distractor, and both their annotations; see the module's table.

        Draws, in this order, per gold tool its value and the factor, per other accepted tool a factor, the
        preference's sentence, the order of the registry.
        """
        gold, names = gold_tools(sample), self.names(sample)
        others = accepted_names(sample) - gold.keys()
        tools = list(sample.tools)
        worst = 0
        for name, index in gold.items():
            original = tools[index]
            value = rng.choice(self.values[self.quality])
            worst = max(worst, value)
            offers = self._turned((value, int(value * rng.choice(self.factors))))
            tools[index], distractor = (
                _annotated(original, new, offer_text(self.quality, offer))
                for new, offer in zip(names[name], offers, strict=True)
            )
            tools.append(distractor)
        for index, tool in enumerate(sample.tools):
            if tool.name in others:
                worse = offer_text(self.quality, int(worst * rng.choice(self.factors)))
                tools[index] = _annotated(tool, tool.name, worse)
        gold_place = len(sample.tools) if self.swapped else next(iter(gold.values()))
        golden, misled = self._golden(sample, names), self._misled(sample, names)
        return self.shuffled(sample, tools, golden, gold_place, misled, rng)

    def shuffled(
        self,
        sample: Sample,
        tools: Sequence[Tool],
        golden: tuple[GoldenAnswer, ...],
        gold_place: int,
        misled: bool,
        rng: random.Random,
    ) -> Sample:
        """The row with these tools in a drawn order, after the sentence that says what is wanted, if any.

        `tools`: those of the clean registry, treated, and the new ones after them; `gold_place`: of the gold
        tool among them.
        """
        changes, messages = gold_change(sample, golden), sample.messages
        if self.stated:
            messages, change = wished(sample, rng.choice(self.wishes[self.quality]))
            changes.append(change)
        order = list(range(len(tools)))
        rng.shuffle(order)
        changes += tool_changes(sample.tools, tools, order)
        return self.row(
            sample,
            changes,
            flags=(NAMES_DISTRACTOR,) if misled else (),
            messages=messages,
            tools=tuple([tools[at] for at in order]),
            golden_answers=golden,
            gold_tool_index=order.index(gold_place),
        )

    def _turned(self, pair: tuple[T, T]) -> tuple[T, T]:
        """What holds for the gold tool of the clean row and for its distractor → for the better offer and for
        the worse one; and back."""
        return pair[::-1] if self.swapped else pair

    def _misled(self, sample: Sample, names: Iterable[str]) -> bool:
        """Whether the transcript already calls a tool by the name that the worse offer has."""
        return (self.suffix is None) != self.swapped and not called_in_history(sample).isdisjoint(names)

    def _golden(self, sample: Sample, names: Mapping[str, tuple[str, str]]) -> tuple[GoldenAnswer, ...]:
        """The accepted answers that call treated tools only, by the names of the better offers."""
        return tuple(
            tuple(Call(self._turned(names[call.name])[0], call.parameters) for call in answer)
            for answer in sample.golden_answers
            if all(call.name in names for call in answer)
        )

    def names(self, sample: Sample) -> dict[str, tuple[str, str]]:
        """The name of each gold tool → those that its place and the new tool have in the row."""
        taken = {tool.name for tool in sample.tools}
        found: dict[str, tuple[str, str]] = {}
        for name in gold_tools(sample):
            other = self.other_name(name, taken)
            taken.add(other)
            found[name] = (other, name) if self.suffix is None else (name, other)
        return found

    def other_name(self, name: str, taken: set[str]) -> str:
        """The new name that a gold tool brings: its abbreviation, or its distractor's suffixed name."""
        if self.suffix is not None:
            return free_name(name + self.suffix, taken)
        short = abbreviate(name, self.letters)
        if short == name:
            raise NotApplicable("name_cannot_be_abbreviated")
        if short in taken:
            raise NotApplicable("abbreviation_is_taken")
        return short

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """One distractor per gold tool, as `suffix` says; it, and tools that are no longer accepted, are
        worse by one of the factors."""
        gold, names = gold_tools(clean), self.names(clean)
        others = accepted_names(clean) - gold.keys()
        notes = {
            tool.name: found.group() for tool in row.tools if (found := _ANNOTATION.search(tool.description))
        }
        expected: list[Tool] = []
        for index, tool in enumerate(clean.tools):
            treated: tuple[str, ...] = (tool.name,) if tool.name in others else ()
            if gold.get(tool.name) == index:
                treated = names[tool.name]
            expected += [_annotated(tool, name, notes.get(name, "")) for name in treated] or [tool]
        if notes.keys() != {name for pair in names.values() for name in pair} | others or sorted(
            map(dumps, row.tools)
        ) != sorted(map(dumps, expected)):
            return ["the registry is not the clean one with one distractor per gold tool, and their offers"]
        offers = {name: annotation(note) or 0 for name, note in notes.items()}
        sides = [self._turned(pair) for pair in names.values()]
        worst = max(offers[better] for better, _ in sides)
        pairs = [(offers[better], worse, offers[worse]) for better, worse in sides]
        dropped = [tool for tool in row.tools if tool.name in others]
        pairs += [(worst, tool.name, annotation(tool.description) or 0) for tool in dropped]
        wrong = [
            f"{name} is not worse than the gold by a factor of {', '.join(map(str, self.factors))}"
            for better, name, worse in pairs
            if not any(math.isclose(worse, better * factor) for factor in self.factors)
        ]
        wishes = self.wishes[self.quality] if self.stated else ()
        asked = [wished(clean, sentence)[0] for sentence in wishes] or [clean.messages]
        place, first = row.gold_tool_index, clean.golden_answers[0][0].name
        return wrong + broken(
            {
                "the query is not as the type says": row.messages not in asked,
                "the gold is not the clean gold of the treated tools": row.golden_answers
                != self._golden(clean, names),
                "gold_tool_index does not point at the gold tool": place is None
                or not 0 <= place < len(row.tools)
                or row.tools[place].name != self._turned(names[first])[0],
                f"the flag {NAMES_DISTRACTOR} is not as the transcript says": self._misled(clean, names)
                != (NAMES_DISTRACTOR in row.flags),
            }
        )


OFFER: Facts = {
    "component": "reward",
    "level": "reasoning",
    "channel": "offers",
    "method": "rule",
    "applies_to": "one gold tool",
}


@cache
def offer_text(quality: Literal["cost", "time"], value: int) -> str:
    """The annotation that says a value of `VALUES`."""
    if quality == "cost":
        return f"Price per call: ${value / 1000:.3f}."
    return f"Typical response time: {value} ms."


def annotated(description: str, note: str) -> str:
    """The description with the annotation as its last sentence."""
    text = description.rstrip()
    if not text:
        return note
    return f"{text} {note}" if text[-1] in ".!?" else f"{text}. {note}"


def _annotated(tool: Tool, name: str, note: str) -> Tool:
    """The tool under this name, with the annotation."""
    return Tool(name, annotated(tool.description, note), tool.parameters)


def accepted_names(sample: Sample) -> frozenset[str]:
    return frozenset(call.name for answer in sample.golden_answers for call in answer)


def tool_changes(clean: tuple[Tool, ...], tools: Sequence[Tool], order: list[int]) -> list[Change]:
    """Diff entries at the places of the shuffled registry, after one that says how it was reordered.

    `tools`: those of the clean registry, treated, and the new ones after them; `order`: who stands where.
    """
    out = [Change("/tools", [tool.name for tool in clean], [tools[at].name for at in order])]
    for at, before in enumerate(clean):
        after = tools[at]
        if before is after:
            continue
        place = order.index(at)
        if before.name != after.name:
            out.append(Change(f"/tools/{place}/name", before.name, after.name))
        if before.description != after.description:
            out.append(Change(f"/tools/{place}/description", before.description, after.description))
        if before.parameters is not after.parameters:
            out.append(Change(f"/tools/{place}/parameters", before.parameters, after.parameters))
    came = [place for place, at in enumerate(order) if at >= len(clean)]
    return out + [Change(f"/tools/{place}", None, plain(tools[order[place]])) for place in came]
