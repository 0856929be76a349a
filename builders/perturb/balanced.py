"""Balanced offers: what a rule cannot answer that takes the best offer, or the plain name.

design   what the two tools differ in                          what decides
inv      price and time, in opposite orders                    which of the two the request asks for
unit     the same offer in other units                         the offers after conversion
moot     the cheaper or quicker one lacks a parameter          whether the request needs that parameter

A choice that could give the gold away is made by a draw that the CD type and the TD type of a design share,
and one of the two takes its opposite: over both together the suffixed name is the gold in exactly half of
the rows, and so are the smaller number (unit) and the complete tool (moot). Of `inv` both types have the very
same registry. So they apply to the same samples; those that call two tools, or accept another one than the
first answer's, are left out.
"""

import random
import re
from typing import ClassVar, NamedTuple

from robustbench_tc.schema import Call, GoldenAnswer, Json, Sample, Tool, dumps

from .base import (
    Context,
    Facts,
    NotApplicable,
    broken,
)
from .offers import (
    FACTORS,
    NAMES_DISTRACTOR,
    OFFER,
    VALUES,
    Preference,
    accepted_names,
    annotated,
    free_name,
)
from .query import called_in_history, wished
from .registry import gold_tools

Schema = dict[str, Json]


class Side(NamedTuple):
    """What one of the two tools offers."""

    note: str
    """What its description ends with."""
    parameters: Schema


class Two(NamedTuple):
    """The two tools of a row: what the gold tool offers, and the other one."""

    gold: Side
    other: Side


def the_gold_tool(sample: Sample) -> int:
    """The place of the one tool that every accepted answer calls. Raises NotApplicable."""
    found = gold_tools(sample)
    if len(found) > 1:
        raise NotApplicable("several_gold_tools")
    if accepted_names(sample) != found.keys():
        raise NotApplicable("other_tools_accepted")
    return next(iter(found.values()))


class Balanced(Preference, frozen=True, kw_only=True):
    """The common course of the types whose gold has the suffixed name in half of the rows."""

    TRAITS: ClassVar[tuple[str, ...]] = (*Preference.TRAITS, "design")
    design: str
    mirrored: bool = False
    """Whether the shared draws are taken the other way round."""

    def two(self, sample: Sample, tool: Tool, second: bool, rng: random.Random) -> Two:
        """What the gold tool and the other one offer. Raises NotApplicable.

        `second` is the shared draw beside the one of the names: which number is smaller, which tool lacks
        what, which annotation stands last.
        """
        raise NotImplementedError

    def answers(self, sample: Sample, gold: Side) -> tuple[GoldenAnswer, ...]:
        """The accepted answers, by the clean name, of a tool with the parameters of `gold`."""
        return sample.golden_answers

    def suffixed(self, drawn: bool) -> bool:
        """Whether the gold tool has the suffixed name."""
        return drawn != self.mirrored

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """A second tool enters, and both are annotated.

        Draws, in this order: whether the gold has the suffixed name, the second choice, what the type's
        offers need, the sentence, the order of the registry.
        """
        index = the_gold_tool(sample)
        original = sample.tools[index]
        drawn, second = rng.random() < 0.5, rng.random() < 0.5
        pair = self.two(sample, original, second, rng)
        new_name = free_name(original.name + "_1", {tool.name for tool in sample.tools})
        suffixed = self.suffixed(drawn)
        plain_side, new_side = (pair.other, pair.gold) if suffixed else (pair.gold, pair.other)
        tools = [*sample.tools, _made(new_name, original, new_side)]
        tools[index] = _made(original.name, original, plain_side)
        golden = _called(self.answers(sample, pair.gold), new_name if suffixed else original.name)
        misled = suffixed and original.name in called_in_history(sample)
        return self.shuffled(sample, tools, golden, len(sample.tools) if suffixed else index, misled, rng)

    def wrong_offers(self, clean: Sample, original: Tool, pair: Two) -> list[str]:
        """What is wrong with what the gold tool and the other one offer."""
        raise NotImplementedError

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """One more tool, both annotated as the design says, the gold's answers called by its name."""
        index = the_gold_tool(clean)
        original = clean.tools[index]
        new_name = free_name(original.name + "_1", {tool.name for tool in clean.tools})
        by_name = {tool.name: tool for tool in row.tools if tool.name in (original.name, new_name)}
        rest = sorted(dumps(tool) for tool in row.tools if tool.name not in by_name)
        others = sorted(dumps(tool) for tool in clean.tools if tool is not original)
        if len(by_name) != 2 or len(row.tools) != len(clean.tools) + 1 or rest != others:
            return ["the registry is not the clean one plus one tool beside the gold tool"]
        place = row.gold_tool_index
        names = {call.name for answer in row.golden_answers for call in answer}
        if place is None or not 0 <= place < len(row.tools) or names != {row.tools[place].name}:
            return ["the gold does not call the tool at gold_tool_index, and no other"]
        gold_name = row.tools[place].name
        if gold_name not in by_name:
            return [f"{gold_name} is not one of the two tools"]
        gold, other = by_name[gold_name], by_name[new_name if gold_name == original.name else original.name]
        notes = [_note(original, tool) for tool in (gold, other)]
        if None in notes:
            return ["the description of one of the two tools is more than annotated"]
        pair = Two(Side(notes[0] or "", gold.parameters), Side(notes[1] or "", other.parameters))
        flagged = gold_name == new_name and original.name in called_in_history(clean)
        wrong = broken(
            {
                "the gold is not the clean gold, called by the gold tool's name": row.golden_answers
                != _called(self.answers(clean, pair.gold), gold_name),
                "the query is not the clean one plus a wish of this type": not any(
                    row.messages == wished(clean, one)[0] for one in self.wishes[self.quality]
                ),
                f"the flag {NAMES_DISTRACTOR} is not as the transcript says": flagged
                != (NAMES_DISTRACTOR in row.flags),
            }
        )
        return wrong + self.wrong_offers(clean, original, pair)


BALANCED: Facts = {
    **OFFER,
    "pack": "offers",
    "may_change": ("messages", "the set of tools", "golden answers"),
    "ground_truth_changes": True,
    "train_augmentable": True,
    "stated": True,
    "suffix": "_1",
    "flags": {NAMES_DISTRACTOR: "the transcript already calls the tool that is the worse choice here"},
}


class Offer(NamedTuple):
    """What a description says that a call costs or takes."""

    quality: str
    unit: str
    value: float
    """Dollars per call, or milliseconds."""
    start: int
    """Where the description's annotations begin."""


_UNITS = {"call": ("cost", 1.0), "calls": ("cost", 0.001), "ms": ("time", 1.0), "s": ("time", 1000.0)}
"""The units of annotations by the names of their groups: what they measure, and what one of them is."""

_NOTE = re.compile(
    r"(?:Price per call: \$(?P<call>\d+\.\d{3})|Price per 1,000 calls: \$(?P<calls>\d+\.\d\d)"
    r"|Typical response time: (?:(?P<ms>\d+) ms|(?P<s>\d+(?:\.\d{1,3})?) s))\."
)
_BARE = re.sub(r"\?P<\w+>", "?:", _NOTE.pattern)
_LAST = re.compile(rf"(?:{_BARE} )*{_BARE}\Z")
"""The annotations that a description ends with; what else it says of a price or time is its own text."""


def offers_in(description: str) -> list[Offer]:
    """The offers that a description ends with, in order."""
    notes = _LAST.search(description)
    if notes is None:
        return []
    offers = []
    for said in _NOTE.finditer(notes.group()):
        unit = said.lastgroup or ""
        quality, factor = _UNITS[unit]
        offers.append(Offer(quality, unit, round(float(said[unit]) * factor, 6), notes.start()))
    return offers


def offer_in(description: str, quality: str) -> Offer | None:
    """The offer of that quality that a description ends with; None where it makes none."""
    return next((one for one in reversed(offers_in(description)) if one.quality == quality), None)


def stated(side: Side) -> list[Offer]:
    """The offers of a side, if its note says nothing else."""
    return [offer for offer in offers_in(side.note) if offer.start == 0]


def offers_of(quality: str, rng: random.Random) -> tuple[int, int]:
    """The value of the better offer and of the worse one, in thousandths of a dollar or milliseconds."""
    value = rng.choice(VALUES[quality])
    return value, value * rng.choice(FACTORS)


def _made(name: str, original: Tool, side: Side) -> Tool:
    return Tool(name, annotated(original.description, side.note), side.parameters)


def _called(answers: tuple[GoldenAnswer, ...], name: str) -> tuple[GoldenAnswer, ...]:
    return tuple(tuple(Call(name, call.parameters) for call in answer) for answer in answers)


def _note(original: Tool, tool: Tool) -> str | None:
    """What was added to the original description; None where it is something else."""
    before = annotated(original.description, "")
    if tool.description.startswith(before) and len(tool.description) > len(before):
        return tool.description[len(before) :]
    return None
