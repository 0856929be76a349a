"""Swapped offers: the six core reward rows with only the two annotations and the gold exchanged.

In a core row the gold tool's name is always the shorter of the two, so a rule that reads no price is right.
In the counterpart the annotations have changed places: the other tool truly is the better one, and the gold.
Everything else is the core row's: its draws, its sentence, its order of the registry. A rule that reads no
annotation takes the same tool in both, and is right in exactly one of them.

type                        gold
CD_swap, TD_swap, …         renamed to the suffixed name
CD_AB_swap, TD_AB_swap      the original, readable name
"""

import random
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from robustbench_tc.schema import Call, Change, GoldenAnswer, Json, Sample, Tool
from robustbench_tc.taxonomy import Rows

from .base import (
    REGISTRY,
    Context,
    Facts,
    NotApplicable,
    broken,
    register,
)
from .offers import NAMES_DISTRACTOR, OFFER, Preference
from .query import called_in_history
from .registry import gold_change, gold_tools, plain

_HOW_MADE = (
    "The row of {core}, with the same draws, in which the annotations of the two tools have changed places: "
    "the tool {which} now is the better one by a factor of 4 or more, and the gold. Names, query, order of "
    "the registry and every other tool are the core row's."
)
_WHAT = "As {core} with the two annotations and the gold exchanged: {which} is the {better} one."


class Swap(Preference, frozen=True, kw_only=True):
    """The common course of the six counterparts."""

    TRAITS: ClassVar[tuple[str, ...]] = (*Preference.TRAITS, "design")
    design: str = "swap"
    core: str
    """The type whose rows these are the counterparts of."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """The counterpart of the core type's row; `rng` is the core type's own (`draws_as`).

        Samples that call two tools are left out: a rule that reads no annotation may take the better tool of
        one pair and the worse of the other, and would be right in neither row.
        """
        if len(gold_tools(sample)) > 1:
            raise NotApplicable("several_gold_tools")
        return self.exchanged(sample, REGISTRY[self.core].perturb(sample, rng, context))

    def exchanged(self, sample: Sample, core: Sample) -> Sample:
        """The counterpart of `core`, the core type's row of `sample`; it may call several tools."""
        pairs = dict(self.names(sample).values())
        tools = _with_descriptions_exchanged(core.tools, pairs)
        golden = _renamed(core.golden_answers, pairs)
        places = {tool.name: place for place, tool in enumerate(tools)}
        changes = gold_change(sample, golden)
        changes += [one for one in core.changes if one.path.startswith("/messages")]
        changes += [_moved(one, tools) for one in core.changes if one.path.startswith("/tools")]
        plain_is_worse = self.suffix is not None and called_in_history(sample) & pairs.keys()
        return self.row(
            sample,
            changes,
            flags=(NAMES_DISTRACTOR,) if plain_is_worse else (),
            messages=core.messages,
            tools=tools,
            golden_answers=golden,
            gold_tool_index=places[golden[0][0].name],
        )

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """With everything exchanged back it is a row of the core type."""
        pairs = dict(self.names(clean).values())
        names = [tool.name for tool in row.tools]
        called = {call.name for answer in row.golden_answers for call in answer}
        if not all(names.count(one) == 1 for pair in pairs.items() for one in pair):
            return ["a gold tool or its counterpart is missing, or listed twice"]
        if called != set(pairs.values()):
            return ["the gold does not call the tools that are the better offers here"]
        back = {gold: core for core, gold in pairs.items()}
        golden = _renamed(row.golden_answers, back)
        place = row.gold_tool_index
        indexed = place is not None and 0 <= place < len(names)
        named = self.suffix is not None and bool(called_in_history(clean) & pairs.keys())
        wrong = broken(
            {
                "gold_tool_index does not point at the gold tool": not indexed
                or names[place or 0] != row.golden_answers[0][0].name,
                f"the flag {NAMES_DISTRACTOR} is not as the transcript says": named
                != (NAMES_DISTRACTOR in row.flags),
            }
        )
        core = msgspec.structs.replace(
            row,
            tools=_with_descriptions_exchanged(row.tools, pairs),
            golden_answers=golden,
            gold_tool_index=names.index(golden[0][0].name),
        )
        return wrong + REGISTRY[self.core].problems(clean, core)


SWAP: Facts = {
    **OFFER,
    "pack": "offers",
    "prior_art": (
        "none known for offers; pairs that differ in the decisive words alone: contrast sets (Gardner et al. "
        "2020)"
    ),
    "ground_truth_changes": True,
    "train_augmentable": True,
    "stated": True,
    "solved_without_reading": (
        "As in the core the better offer is always the gold: whoever always takes the cheapest or quickest "
        "tool is right. The name, always the longer one here, helps nobody over core and swapped rows "
        "together, and only the two together say whether a model reads the offer."
    ),
}


def _with_descriptions_exchanged(tools: tuple[Tool, ...], pairs: dict[str, str]) -> tuple[Tool, ...]:
    """The registry in which the two tools of each pair have each other's description."""
    said = {tool.name: tool.description for tool in tools}
    partner = pairs | {two: one for one, two in pairs.items()}
    return tuple(
        Tool(tool.name, said[partner[tool.name]], tool.parameters) if tool.name in partner else tool
        for tool in tools
    )


def _renamed(answers: tuple[GoldenAnswer, ...], names: dict[str, str]) -> tuple[GoldenAnswer, ...]:
    return tuple(tuple(Call(names.get(c.name, c.name), c.parameters) for c in answer) for answer in answers)


def _moved(change: Change, tools: tuple[Tool, ...]) -> Change:
    """The diff entry of the core row with what the exchanged registry has at that place."""
    _, _, place, *rest = [*change.path.split("/"), ""]
    after: Json = change.after
    if rest == ["description", ""]:
        after = tools[int(place)].description
    elif place and rest == [""] and change.before is None:
        after = plain(tools[int(place)])
    return Change(change.path, change.before, after)


SUFFIXED_SWAP: Facts = {
    **SWAP,
    "rows": Rows(paper=148, bundled=57, full=2815),
    "may_change": ("messages", "the set of tools", "golden answers"),
    "flags": {NAMES_DISTRACTOR: "the transcript already calls the tool that is the worse offer here"},
}
"""The suffixed tool is the better one."""


READABLE_SWAP: Facts = {
    **SWAP,
    "rows": Rows(paper=144, bundled=53, full=2725),
    "ground_truth_changes": False,
    "may_change": ("the set of tools", "golden answers"),
    "suffix": None,
    "stated": False,
}
"""The tool with the original, readable name is the better one."""


register(
    Swap(
        **SUFFIXED_SWAP,
        code="CD_swap",
        order=501,
        display_name="MisDesc-Swap",
        label="decoy truly cheaper",
        core="CD",
        draws_as="CD",
        what_is_modified=_WHAT.format(core="CD", which="the tool named _Budget", better="cheaper"),
        how_made=_HOW_MADE.format(core="CD", which="called `_Budget`"),
        quality="cost",
        suffix="_Budget",
    ),
    Swap(
        **SUFFIXED_SWAP,
        code="TD_swap",
        order=502,
        display_name="TimeDesc-Swap",
        label="decoy truly faster",
        core="TD",
        draws_as="TD",
        what_is_modified=_WHAT.format(core="TD", which="the tool named _Fast", better="faster"),
        how_made=_HOW_MADE.format(core="TD", which="called `_Fast`"),
        quality="time",
        suffix="_Fast",
    ),
    Swap(
        **SUFFIXED_SWAP,
        code="CD_NT_swap",
        order=503,
        display_name="MisDesc-N-Swap",
        label="neutral name truly cheaper",
        core="CD_NT",
        draws_as="CD_NT",
        what_is_modified=_WHAT.format(core="CD_NT", which="the tool with the suffix _1", better="cheaper"),
        how_made=_HOW_MADE.format(core="CD_NT", which="with the suffix `_1`"),
        quality="cost",
        suffix="_1",
    ),
    Swap(
        **SUFFIXED_SWAP,
        code="TD_NT_swap",
        order=504,
        display_name="TimeDesc-N-Swap",
        label="neutral name truly faster",
        core="TD_NT",
        draws_as="TD_NT",
        what_is_modified=_WHAT.format(core="TD_NT", which="the tool with the suffix _1", better="faster"),
        how_made=_HOW_MADE.format(core="TD_NT", which="with the suffix `_1`"),
        quality="time",
        suffix="_1",
    ),
    Swap(
        **READABLE_SWAP,
        code="CD_AB_swap",
        order=505,
        display_name="MisDesc-Abbr-Swap",
        label="readable name truly cheaper",
        core="CD_AB",
        draws_as="CD_AB",
        what_is_modified=_WHAT.format(
            core="CD_AB", which="the tool with the readable name", better="cheaper"
        ),
        how_made=_HOW_MADE.format(core="CD_AB", which="with the readable name"),
        quality="cost",
    ),
    Swap(
        **READABLE_SWAP,
        code="TD_AB_swap",
        order=506,
        display_name="TimeDesc-Abbr-Swap",
        label="readable name truly faster",
        core="TD_AB",
        draws_as="TD_AB",
        what_is_modified=_WHAT.format(core="TD_AB", which="the tool with the readable name", better="faster"),
        how_made=_HOW_MADE.format(core="TD_AB", which="with the readable name"),
        quality="time",
    ),
)

SWAPPED: Mapping[str, Swap] = {unit.core: unit for unit in REGISTRY.values() if isinstance(unit, Swap)}
"""Core type → its counterpart."""
