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

from robustbench_tc.schema import Sample
from robustbench_tc.taxonomy import Rows

from .base import (
    REGISTRY,
    Context,
    Facts,
    NotApplicable,
    register,
)
from .offers import NAMES_DISTRACTOR, OFFER, Preference
from .registry import gold_tools

_HOW_MADE = (
    "The row of {core}, with the same draws, in which the annotations of the two tools have changed places: "
    "the tool {which} now is the better one by a factor of 4 or more, and the gold. Names, query, order of "
    "the registry and every other tool are the core row's."
)
_WHAT = "As {core} with the two annotations and the gold exchanged: {which} is the {better} one."


class Swap(Preference, frozen=True, kw_only=True):
    """The common course of the six counterparts: the draws of the core type, and the offers exchanged."""

    TRAITS: ClassVar[tuple[str, ...]] = (*Preference.TRAITS, "design")
    design: str = "swap"
    swapped: bool = True
    core: str
    """The type whose rows these are the counterparts of."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """The counterpart of the core type's row; `rng` is the core type's own (`draws_as`).

        Samples that call two tools are left out: a rule that reads no annotation may take the better tool of
        one pair and the worse of the other, and would be right in neither row. Training may draw them.
        """
        if len(gold_tools(sample)) > 1:
            raise NotApplicable("several_gold_tools")
        return self.drawn(sample, rng)


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
