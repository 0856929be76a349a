"""Floods: that many tools of other samples of the same source enter, and the gold stays.

A donor has a name of its own that shares fewer than six in ten of its words with any accepted tool's, a
description that is not of the same service as the request or an accepted tool's, and no golden call fits it:
nothing that enters is another way to answer.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from robustbench_tc.schema import CONTROL_TOOLS, Sample, Tool
from robustbench_tc.taxonomy import Rows

from .base import (
    Context,
    Facts,
    NotApplicable,
    Perturbation,
    broken,
    register,
)
from .context_orders import content_stems, tool_stems
from .query import query_text
from .registry import donor_pools, keeps_gold, shortest, surplus, with_new_tools

OVERLAP = 0.6
"""From this share of common words on (Jaccard), two names may mean the same purpose."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")


ALIKE = 0.5
"""From this share of common stems on, a description may be of the same service."""


class Lender(NamedTuple):
    """A tool that may enter."""

    tool: Tool
    words: frozenset[str]
    """Of its name."""
    about: frozenset[str]
    """Stems that say what it is for."""
    declared: frozenset[str]
    required: frozenset[str]
    """Names of its parameters."""


class Gold(NamedTuple):
    """What a donor must keep clear of."""

    forms: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """The parameters of the shortest and the longest form of every call of every accepted answer."""
    words: tuple[frozenset[str], ...]
    """Of the accepted tools' names."""
    about: tuple[frozenset[str], ...]
    """Stems of what each accepted tool is for, and of the request."""


@lru_cache(20_000)
def name_words(name: str) -> frozenset[str]:
    """The words of a tool's name: `getCurrentWeather2` and `get_current_weather_2` have the same."""
    return frozenset(word.lower() for word in _WORD.findall(name))


def overlap(left: frozenset[str], right: frozenset[str]) -> float:
    """The share of all words of two names that both have (Jaccard); 0 for two names without words."""
    shared = len(left & right)
    return shared / (len(left) + len(right) - shared) if shared else 0.0


@lru_cache(1)  # the same for all rows of a build
def _lenders(context: Context) -> Mapping[str, Sequence[Lender]]:
    """The tools of each source that may enter: all of its full pool but the control tools."""
    lent = context.loans.get("pool")
    pools = donor_pools(lent) if lent else context.donors
    return {
        source: [_lender(tool) for tool in tools if tool.name not in CONTROL_TOOLS]
        for source, tools in pools.items()
    }


def _lender(tool: Tool) -> Lender:
    return Lender(
        tool, name_words(tool.name), tool_stems(tool), frozenset(tool.properties), frozenset(tool.required)
    )


def gold_of(sample: Sample) -> Gold:
    """The accepted calls of the sample, and the words of their names."""
    calls = [call for answer in sample.golden_answers for call in answer]
    forms = dict.fromkeys((shortest(call), frozenset(call.parameters)) for call in calls)
    words = dict.fromkeys(name_words(call.name) for call in calls)
    names = {call.name for call in calls}
    about = dict.fromkeys(tool_stems(tool) for tool in sample.tools if tool.name in names)
    return Gold(tuple(forms), tuple(words), (*about, _asked(sample)))


def _asked(sample: Sample) -> frozenset[str]:
    try:
        return content_stems(query_text(sample))
    except NotApplicable:  # the user says nothing
        return frozenset()


def is_clear(lender: Lender, gold: Gold) -> bool:
    """Whether the tool is no other way to answer: not named alike, not for what the request or a gold tool is
    for, and no golden call fits it.

    Whether one fits is what `registry.accepts` says, worked out once for all draws.
    """
    for least, most in gold.forms:
        if least <= lender.declared and lender.required <= most:
            return False
    return _is_apart(lender, gold)


def _is_apart(lender: Lender, gold: Gold) -> bool:
    if any(overlap(lender.words, words) >= OVERLAP for words in gold.words):
        return False
    return not any(_serves(lender.about, about) for about in gold.about)


def _serves(about: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two or more stems, and half of one of the two sides, are in common."""
    shared = len(about & other)
    return shared > 1 and shared >= ALIKE * min(len(about), len(other))


def _in_random_order(pool: Sequence[Lender], tries: int, rng: random.Random) -> Iterator[Lender]:
    """Single draws, then every tool: almost all of a large pool may enter, so few draws are enough."""
    if pool:
        for _ in range(tries):
            yield pool[rng.randrange(len(pool))]
        yield from (pool[place] for place in rng.sample(range(len(pool)), len(pool)))


class Flood(Perturbation, frozen=True, kw_only=True):
    """`dose` tools of the source's full pool enter at seeded places."""

    dose: int
    """How many tools enter."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """Raises NotApplicable where the source has too few tools that may enter."""
        new = self._drawn(sample, _lenders(context).get(sample.source, ()), rng)
        return with_new_tools(self, sample, new, rng)

    def _drawn(self, sample: Sample, pool: Sequence[Lender], rng: random.Random) -> list[Tool]:
        gold = gold_of(sample)
        taken = {tool.name for tool in sample.tools}
        new: list[Tool] = []
        for lender in _in_random_order(pool, 4 * self.dose + 8, rng):
            if lender.tool.name not in taken and is_clear(lender, gold):
                taken.add(lender.tool.name)
                new.append(lender.tool)
                if len(new) == self.dose:
                    return new
        apart = {one.tool.name for one in pool if _is_apart(one, gold)} - {tool.name for tool in sample.tools}
        raise NotApplicable("golden_call_fits_donors" if len(apart) >= self.dose else "too_few_donors")

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """`dose` new tools with names of their own, none of which could be meant; the gold tool indexed."""
        wrong = self.beyond(clean, row)
        extra = surplus(clean.tools, row.tools)
        if extra is None or len(extra) != self.dose:
            return [*wrong, f"the registry is not the clean one plus {self.dose} tools"]
        names, gold = [tool.name for tool in extra], gold_of(clean)
        taken = len(set(names)) < len(names) or not {tool.name for tool in clean.tools}.isdisjoint(names)
        wrong += broken(
            {
                "a new tool's name is taken": taken,
                "a control tool entered": not CONTROL_TOOLS.isdisjoint(names),
                "a new tool is named like an accepted one, or a golden call fits it": not all(
                    is_clear(_lender(tool), gold) for tool in extra
                ),
            }
        )
        return wrong + keeps_gold(clean, row)


FLOOD: Facts = {
    "component": "action",
    "level": "interaction",
    "pack": "registry",
    "channel": "registry",
    "method": "rule",
    "may_change": ("the set of tools",),
    "ground_truth_changes": False,
    "train_augmentable": True,
    "applies_to": "every source",
    "borrows": ("pool",),
    "prior_art": "ToolLLM and RAG-MCP vary how many tools are offered; none known dose by dose over one gold",
    "series": "flood",
}


_HOW_MADE = (
    "{} of other samples of the source's full pool enter{} at seeded places. A new tool has a name that no "
    "tool of the registry has and that shares fewer than six in ten words with any accepted tool's "
    "(Jaccard), and no golden call fits its parameters. No row where the pool has too few such tools."
)


register(
    Flood(
        **FLOOD,
        code="flood_1",
        order=406,
        display_name="Flood-1",
        label="1 unrelated tool added",
        what_is_modified=(
            "One tool of other samples of the source enters; names and parameters differ from the gold's."
        ),
        how_made=_HOW_MADE.format("One tool", "s"),
        dose=1,
        rows=Rows(paper=197, bundled=72, full=3073),
    ),
    Flood(
        **FLOOD,
        code="flood_3",
        order=407,
        display_name="Flood-3",
        label="3 unrelated tools added",
        what_is_modified=(
            "Three tools of other samples of the source enter; names and parameters differ from the gold's."
        ),
        how_made=_HOW_MADE.format("Three tools", ""),
        dose=3,
        rows=Rows(paper=197, bundled=72, full=3073),
    ),
    Flood(
        **FLOOD,
        code="flood_10",
        order=408,
        display_name="Flood-10",
        label="10 unrelated tools added",
        what_is_modified=(
            "Ten tools of other samples of the source enter; names and parameters differ from the gold's."
        ),
        how_made=_HOW_MADE.format("Ten tools", ""),
        dose=10,
        rows=Rows(paper=197, bundled=72, full=3073),
    ),
    Flood(
        **FLOOD,
        code="flood_30",
        order=409,
        display_name="Flood-30",
        label="30 unrelated tools added",
        what_is_modified=(
            "Thirty tools of other samples of the source enter; names and parameters differ from the gold's."
        ),
        how_made=_HOW_MADE.format("Thirty tools", ""),
        dose=30,
        rows=Rows(paper=197, bundled=13, full=3073),
    ),
)
