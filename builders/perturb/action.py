"""Action: the registry gains tools, the gold stays (paper, table 1).

The same-name types add one distractor with the gold tool's name at a random place, for each distinct tool
that the first answer calls:

    type          description of the distractor   its parameters
    same_name_A   none                            none
    same_name_B   the gold tool's                 none
    same_name_C   none                            wrong
    same_name_D   the gold tool's                 wrong
    same_name_E   another tool's                  that tool's

Wrong parameters are those of a donor: see `registry.donor`. No golden call fits the distractor: it lacks one
of the call's parameters, or requires another.
"""

import random
from collections.abc import Sequence
from typing import ClassVar, Literal

import msgspec

from robustbench_tc.schema import CONTROL_TOOLS, Sample, Tool
from robustbench_tc.taxonomy import Rows

from .base import (
    Context,
    Facts,
    NotApplicable,
    Perturbation,
    TextRequest,
    broken,
    register,
)
from .registry import (
    NO_PARAMETERS,
    Gold,
    accepts,
    calls_of,
    donor,
    gold_tools,
    golds,
    in_form_of,
    keeps_gold,
    near_duplicates,
    surplus,
    with_new_tools,
)

ACTION: Facts = {
    "component": "action",
    "level": "interaction",
    "pack": "core",
    "may_change": ("the set of tools",),
    "ground_truth_changes": False,
    "train_augmentable": True,
}
"""What all action types share: tools come in, and nothing else changes."""


_HOW_MADE = (
    "One more tool with the gold tool's name enters the registry at a seeded place (one per "
    "distinct tool where an answer calls several). It has {}."
)


class SameName(Perturbation, frozen=True, kw_only=True):
    """One distractor per gold tool, under the same name."""

    TRAITS: ClassVar[tuple[str, ...]] = ("description", "wrong_parameters")
    description: Literal["none", "gold", "donor"]
    wrong_parameters: bool

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """One distractor per distinct gold tool enters at a seeded place.

        Raises NotApplicable where there is no gold description to copy, no donor, or no difference from gold.
        """
        pool = context.donors.get(sample.source, ())
        new = [self._distractor(one, sample, pool, rng) for one in golds(sample)]
        return with_new_tools(self, sample, new, rng)

    def _distractor(self, gold: Gold, sample: Sample, pool: Sequence[Tool], rng: random.Random) -> Tool:
        tool = gold.tool
        if self.description == "gold" and not tool.description.strip():
            raise NotApplicable("gold_tool_has_no_description")
        description = tool.description if self.description == "gold" else ""
        if self.wrong_parameters:  # no golden call fits those of a donor
            lender = donor(gold, sample.tools, pool, rng, described=self.description == "donor")
            lent = lender.description if self.description == "donor" else description
            return Tool(tool.name, lent, lender.parameters)
        if not tool.properties and description == tool.description:
            raise NotApplicable("distractor_would_equal_gold_tool")
        new = Tool(tool.name, description, NO_PARAMETERS)
        if accepts(new, gold.calls):
            raise NotApplicable("gold_call_has_no_argument")
        return new

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """One distractor per gold tool, of its name and as the class says; the index is on the gold tool."""
        wrong = self.beyond(clean, row)
        gold = [clean.tools[i] for i in gold_tools(clean).values()]
        extra = surplus(clean.tools, row.tools)
        if extra is None or sorted(t.name for t in extra) != sorted(t.name for t in gold):
            return [*wrong, "the registry is not the clean one plus one distractor per gold tool"]
        for tool in gold:
            for new in (t for t in extra if t.name == tool.name):
                wrong += self._check_distractor(tool, new)
                if accepts(new, calls_of(clean, new.name)):
                    wrong.append("the golden call fits the distractor")
        if row.gold_tool_index is None or row.tools[row.gold_tool_index] != gold[0]:
            wrong.append("gold_tool_index does not point at the gold tool")
        return wrong

    def _check_distractor(self, gold: Tool, new: Tool) -> list[str]:
        none, gold_s, donors = (self.description == one for one in ("none", "gold", "donor"))
        wrong_parameters = bool(new.properties) and set(new.properties) != set(gold.properties)
        return broken(
            {
                "the distractor has a description": none and bool(new.description),
                "the distractor's description is not the gold tool's": gold_s
                and new.description != gold.description,
                "the distractor's description is not another tool's": donors
                and new.description in ("", gold.description),
                "the distractor's parameters are not wrong": self.wrong_parameters and not wrong_parameters,
                "the distractor has parameters": not self.wrong_parameters and bool(new.properties),
            }
        )


SAME_NAME: Facts = {
    **ACTION,
    "channel": "namesake",
    "method": "rule",
    "applies_to": "one gold tool",
}


PER_TOOL = 2


def new_tools(registry: Sequence[Tool], written: Sequence[Sequence[Tool]]) -> list[Tool]:
    """Of the tools that were written for each tool of the registry (control tools excepted), in its form,
    those that enter: PER_TOOL at most, none that is all but the same as another."""
    imitated = [tool for tool in registry if tool.name not in CONTROL_TOOLS]
    known = list(registry)
    offered = set[str]()  # the first tool of a name is the one that its judgment is about
    new: list[Tool] = []
    for beside, tools in zip(imitated, written, strict=True):
        fresh: list[Tool] = []
        for tool in tools:
            again = tool.name in offered or any(near_duplicates(tool, one) for one in known)
            offered.add(tool.name)
            formed = None if again else in_form_of(imitated, tool, beside)
            if len(fresh) < PER_TOOL and formed is not None:
                known.append(tool)
                fresh.append(formed)
        new += fresh
    return new


class Redundant(Perturbation, frozen=True):
    """RedunTool: up to two new, related tools of another purpose per tool of the registry (model-written)."""

    def requests(self, sample: Sample) -> tuple[TextRequest, ...]:
        """One text per tool, control tools excepted; its context: schema, names taken, messages."""
        taken = [tool.name for tool in sample.tools]
        return tuple(
            TextRequest(
                kind=self.code,
                sample=sample.clean_id,
                tool=tool.name,
                input=tool.description,
                context={
                    "parameters": tool.parameters,
                    "taken": taken,
                    "messages": [msgspec.to_builtins(message) for message in sample.messages],
                },
            )
            for tool in sample.tools
            if tool.name not in CONTROL_TOOLS
        )

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """Inserts up to PER_TOOL new tools per tool; one whose name is taken is dropped, and the row flagged.

        Raises NotApplicable(`no_new_tool`) where none is left.
        """
        texts = [context.text(request) for request in self.requests(sample)]
        new = new_tools(sample.tools, [msgspec.convert(text.value, list[Tool]) for text in texts])
        if not new:
            raise NotApplicable("no_new_tool")
        short = len(new) < PER_TOOL * len(texts)
        return with_new_tools(
            self,
            sample,
            new,
            rng,
            generator="+".join(sorted({text.generator for text in texts})),
            flags=("fewer_redundant_tools",) if short else (),
        )

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """New tools only, with free names, at most PER_TOOL per tool, and the index on the gold tool."""
        wrong = self.beyond(clean, row)
        extra = surplus(clean.tools, row.tools)
        if not extra:
            return [*wrong, "the registry is not the clean one plus new tools"]
        originals = [tool for tool in clean.tools if tool.name not in CONTROL_TOOLS]
        if len(extra) > PER_TOOL * len(originals):
            wrong.append("more than two new tools per tool")
        others = list(clean.tools)
        for tool in extra:
            if any(near_duplicates(tool, one) for one in others):
                wrong.append("a new tool is all but the same as another tool")
            if not tool.description.strip():
                wrong.append("a new tool has no description")
            others.append(tool)
        return wrong + keeps_gold(clean, row)


register(
    SameName(
        **SAME_NAME,
        code="same_name_A",
        order=5,
        display_name="Dup-NoDesc",
        label="twin, no description",
        what_is_modified=(
            "A distractor with the ground-truth tool's name is added, carrying neither description nor "
            "parameters."
        ),
        how_made=_HOW_MADE.format("no description and no parameters"),
        description="none",
        wrong_parameters=False,
        solved_without_reading=(
            "The distractor has neither description nor parameters: whoever takes the fuller definition is "
            "right."
        ),
        rows=Rows(paper=140, bundled=57),
        paper_rows=133,
    ),
    SameName(
        **SAME_NAME,
        code="same_name_B",
        order=6,
        display_name="Dup-Desc",
        label="described twin, no parameters",
        what_is_modified="A same-named distractor is added with the correct description and no parameters.",
        how_made=_HOW_MADE.format("the gold tool's description and no parameters"),
        description="gold",
        wrong_parameters=False,
        solved_without_reading=(
            "The distractor has no parameters: whoever takes the longer definition is right."
        ),
        rows=Rows(paper=138, bundled=57),
        paper_rows=127,
    ),
    SameName(
        **SAME_NAME,
        code="same_name_C",
        order=7,
        display_name="Dup-WrongP",
        label="undescribed twin, wrong parameters",
        what_is_modified="A same-named distractor is added with no description and wrong parameters.",
        how_made=_HOW_MADE.format("no description, and the parameters of another tool"),
        description="none",
        wrong_parameters=True,
        solved_without_reading=(
            "The distractor has no description: whoever takes the described tool is right."
        ),
        rows=Rows(paper=146, bundled=59),
        paper_rows=126,
    ),
    SameName(
        **SAME_NAME,
        code="same_name_D",
        order=8,
        display_name="Dup-DescWP",
        label="described twin, wrong parameters",
        what_is_modified=(
            "A same-named distractor is added with the correct description and wrong parameters."
        ),
        how_made=_HOW_MADE.format("the gold tool's description, and the parameters of another tool"),
        description="gold",
        wrong_parameters=True,
        rows=Rows(paper=144, bundled=59),
        paper_rows=125,
    ),
    SameName(
        **SAME_NAME,
        code="same_name_E",
        order=9,
        display_name="Dup-SwapDP",
        label="twin, another tool's definition",
        what_is_modified=(
            "A same-named distractor is added with a swapped, wrong description and wrong parameters (the "
            "paper does not say where the swapped text comes from)."
        ),
        how_made=_HOW_MADE.format("the description and the parameters of another tool"),
        description="donor",
        wrong_parameters=True,
        rows=Rows(paper=146, bundled=59),
        paper_rows=126,
    ),
    Redundant(
        **ACTION,
        code="redundant",
        order=10,
        display_name="RedunTool",
        label="similar tools added",
        channel="siblings",
        what_is_modified=(
            "Plausible sibling tools that do a related but different job are added to the tool list."
        ),
        how_made=(
            "Up to two new tools per tool of the registry (control tools excepted), written by a model:"
            " related, of another purpose, named by the same convention, and none meant to answer the "
            "query. The registry gives the keys of the schema, the words for types and the share of required "
            "parameters; texts and parameters stay as they were written."
        ),
        method="llm",
        applies_to="every source",
        rows=Rows(paper=199, bundled=73),
        paper_rows=199,
        flags={
            "fewer_redundant_tools": "fewer than two new tools per tool: the others were like another tool, "
            "had no form of the registry, or could serve"
        },
    ),
)
