"""Offers: a second, equivalent tool enters, and metadata decides between the two (paper, §6.2).

Descriptions are annotated with a price per call (cost types) or a response time (time types). The annotations
are true and the gold tool's is better by a factor of 4 or more; the other tool's name suggests the opposite,
or nothing. All by rule; the registry is shuffled. Where a sample accepts other tools than the first answer's,
those are annotated like the distractor and no longer accepted.
"""

import random
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import chain, count
from types import MappingProxyType
from typing import ClassVar, Literal

import msgspec

from robustbench_tc.schema import Call, Change, GoldenAnswer, Sample, Tool

from .base import (
    Context,
    Facts,
    NotApplicable,
    Perturbation,
)
from .query import called_in_history, wished
from .registry import gold_tools, plain

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


@lru_cache(30_000)
def abbreviate(name: str, letters: int = 3) -> str:
    """The name with every part cut to its first `letters` that has at least two more: of more than 4 to 3.

    Parts end at characters that are neither letters nor digits (kept), at camelCase borders and between
    letters and digits: `mutation_type.find` → `mut_type.find`, `getCurrentHTTPStatus2` → `getCurHTTPSta2`.
    """
    parts: list[str] = []
    for i, char in enumerate(name):
        if parts and char.isalpha() and parts[-1][-1].isalpha():
            previous, following = name[i - 1], name[i + 1 : i + 2]
            camel = char.isupper() and (previous.islower() or (previous.isupper() and following.islower()))
            if not camel:
                parts[-1] += char
                continue
        elif parts and char.isdigit() and parts[-1][-1].isdigit():
            parts[-1] += char
            continue
        parts.append(char)
    return "".join(
        part[:letters] if part[0].isalpha() and len(part) > letters + 1 else part for part in parts
    )


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
    values: Mapping[str, tuple[int, ...]] = MappingProxyType(VALUES)
    factors: tuple[int | Fraction, ...] = FACTORS
    """How many times worse the distractor is; times a value it is a whole number."""
    letters: int = 3
    """How many letters of each part of the gold tool's name an abbreviation keeps."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """Each gold tool gets its distractor, and both their annotations; see the module's table.

        Draws, in this order, per gold tool its value and the factor, per other accepted tool a factor, the
        preference's sentence, the order of the registry.
        """
        gold = gold_tools(sample)
        others = accepted_names(sample) - gold.keys()
        taken, tools = {tool.name for tool in sample.tools}, list(sample.tools)
        renamed: dict[str, str] = {}
        worst = 0
        changes: list[Change] = []
        for name, index in gold.items():
            original = tools[index]
            other = self.other_name(name, taken)
            value = rng.choice(self.values[self.quality])
            worst = max(worst, value)
            better = offer_text(self.quality, value)
            worse = offer_text(self.quality, int(value * rng.choice(self.factors)))
            gold_name, distractor_name = (other, name) if self.suffix is None else (name, other)
            taken.add(other)
            renamed[name] = gold_name
            tools[index] = Tool(gold_name, annotated(original.description, better), original.parameters)
            tools.append(Tool(distractor_name, annotated(original.description, worse), original.parameters))
        for index, tool in enumerate(sample.tools if others else ()):
            if tool.name in others:
                worse = offer_text(self.quality, int(worst * rng.choice(self.factors)))
                tools[index] = msgspec.structs.replace(tool, description=annotated(tool.description, worse))
        golden = sample.golden_answers
        if others or self.suffix is None:
            golden = tuple(
                tuple(Call(renamed[c.name], c.parameters) for c in answer) for answer in reduced(sample, gold)
            )
            changes.append(
                Change("/golden_answers", *map(msgspec.to_builtins, (sample.golden_answers, golden)))
            )
        messages = sample.messages
        if self.stated:
            messages, change = wished(sample, rng.choice(PREFERENCES[self.quality]))
            changes.append(change)
        order = list(range(len(tools)))
        rng.shuffle(order)
        changes += tool_changes(sample.tools, tools, order)
        named = self.suffix is None and called_in_history(sample) & gold.keys()
        return self.row(
            sample,
            changes,
            flags=(NAMES_DISTRACTOR,) if named else (),
            messages=messages,
            tools=tuple([tools[at] for at in order]),
            golden_answers=golden,
            gold_tool_index=order.index(next(iter(gold.values()))),
        )

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
        """One distractor per gold tool, as `suffix` says, worse by a factor of 4 at least."""
        gold = gold_tools(clean)
        wrong = self._check_messages(clean, row)
        # Of two tools of a name (a namesake that came in before, in a mixed type) the annotated one is meant.
        annotated_last = sorted(row.tools, key=lambda tool: annotation(tool.description) is not None)
        by_name = {tool.name: tool for tool in annotated_last}
        if len(row.tools) != len(clean.tools) + len(gold):
            return [*wrong, "the registry is not the clean one plus one distractor per gold tool"]
        expected = reduced(clean, gold)
        names = {c.name for answer in row.golden_answers for c in answer}
        if [[c.parameters for c in a] for a in row.golden_answers] != [
            [c.parameters for c in a] for a in expected
        ] or not names <= set(by_name):
            wrong.append("the gold is not the clean gold of the treated tools")
        treated, worst_gold = set[str](), 0.0
        for name, index in gold.items():
            original = clean.tools[index]
            short = abbreviate(name, self.letters)
            gold_name = short if self.suffix is None else name
            distractors = [
                tool
                for tool in row.tools
                if tool.parameters == original.parameters
                and tool.name != gold_name
                and (
                    tool.name == name if self.suffix is None else tool.name.startswith(name + self.suffix[:2])
                )
                and annotation(tool.description) is not None
            ]
            if gold_name not in by_name or gold_name not in names or not distractors:
                wrong.append(f"{name} has no distractor, or is not the gold")
                continue
            treated |= {gold_name, *(tool.name for tool in distractors)}
            for tool in (by_name[gold_name], *distractors):
                if not _is_annotated(original.description, tool.description):
                    wrong.append(f"the description of {tool.name} is more than annotated")
            better = annotation(by_name[gold_name].description)
            if better is None or any(not self._much_worse(t, better) for t in distractors):
                wrong.append(f"{gold_name} is not better by a factor of {float(min(self.factors)):g}")
            worst_gold = max(worst_gold, better or 0.0)
        wrong += self._check_others(clean, row, treated, worst_gold)
        place = row.gold_tool_index
        if place is None or row.tools[place].name != row.golden_answers[0][0].name:
            wrong.append("gold_tool_index does not point at the gold tool")
        return wrong

    def _check_others(self, clean: Sample, row: Sample, treated: set[str], gold: float) -> list[str]:
        """The other tools are the clean ones; accepted ones are annotated, the rest untouched."""
        rest = list(clean.tools)
        wrong = []
        for tool in row.tools:
            if tool.name in treated:
                continue
            accepted = tool.name in accepted_names(clean)
            if accepted and not self._much_worse(tool, gold):
                least = f"{float(min(self.factors)):g}"
                wrong.append(
                    f"{tool.name}, no longer accepted, is not worse than the gold by a factor of {least}"
                )
            for original in rest:
                same = (original.name, original.parameters) == (tool.name, tool.parameters)
                if same and (
                    _is_annotated(original.description, tool.description)
                    if accepted
                    else original.description == tool.description
                ):
                    rest.remove(original)
                    break
            else:
                wrong.append(f"{tool.name} is not a tool of the clean registry, or its description changed")
        return wrong

    def _much_worse(self, tool: Tool, gold: float) -> bool:
        """Whether the tool's annotation is worse than the gold's by the least factor, as far as floats can
        tell."""
        value = annotation(tool.description)
        return value is not None and value > float(min(self.factors)) * gold - 1e-9

    def _check_messages(self, clean: Sample, row: Sample) -> list[str]:
        if not self.stated:
            return ["messages changed"] if row.messages != clean.messages else []
        if any(row.messages == wished(clean, sentence)[0] for sentence in PREFERENCES[self.quality]):
            return []
        return ["the query is not the clean one plus a preference"]


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


def bare(description: str) -> str:
    """The description without its annotation."""
    return _ANNOTATION.sub("", description).rstrip()


def _note_of(tool: Tool) -> str:
    """The annotation that the tool's description ends with; "" for none."""
    found = _ANNOTATION.search(tool.description)
    return found.group() if found else ""


def _is_annotated(before: str, after: str) -> bool:
    found = _ANNOTATION.search(after)
    return found is not None and after == annotated(before, found.group())


def accepted_names(sample: Sample) -> frozenset[str]:
    return frozenset(call.name for answer in sample.golden_answers for call in answer)


def reduced(sample: Sample, gold: Mapping[str, int]) -> tuple[GoldenAnswer, ...]:
    """The accepted answers that call treated tools only."""
    return tuple(a for a in sample.golden_answers if {call.name for call in a} <= set(gold))


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
