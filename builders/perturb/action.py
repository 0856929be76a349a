"""Action: the registry gains tools, the gold stays (paper, table 1).

The same-name types add one distractor with the gold tool's name at a random place, for each distinct tool
that the first answer calls:

    type          description of the distractor   its parameters
    same_name_A   none                            none
    same_name_B   the gold tool's                 none
    same_name_C   none                            wrong
    same_name_D   the gold tool's                 wrong
    same_name_E   another tool's                  that tool's

Wrong parameters are those of a donor: see `registry.donor`.
"""

import random
from collections.abc import Sequence
from typing import ClassVar, Literal

import msgspec

from robustbench_tc.schema import CONTROL_TOOLS, Sample, Tool

from .base import Context, NotApplicable, Perturbation, TextRequest, register
from .registry import NO_PARAMETERS, added, donor, gold_tools, index_of, insert, surplus


class SameName(Perturbation):
    """One distractor per gold tool, under the same name."""

    description: ClassVar[Literal["none", "gold", "donor"]]
    wrong_parameters: ClassVar[bool]

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        pool = context.donors(sample.source)
        gold = [sample.tools[index] for index in gold_tools(sample).values()]
        new = [self._distractor(tool, sample.tools, pool, rng) for tool in gold]
        tools = insert(sample.tools, new, rng)
        return self.row(sample, added(tools, new), tools=tools, gold_tool_index=index_of(tools, gold[0]))

    def _distractor(
        self, gold: Tool, registry: Sequence[Tool], pool: Sequence[Tool], rng: random.Random
    ) -> Tool:
        if self.description == "gold" and not gold.description.strip():
            raise NotApplicable("gold_tool_has_no_description")
        description = gold.description if self.description == "gold" else ""
        parameters = NO_PARAMETERS
        if self.wrong_parameters:
            lender = donor(gold, registry, pool, rng, described=self.description == "donor")
            if lender is None:
                raise NotApplicable("no_donor_tool")
            parameters = lender.parameters
            if self.description == "donor":
                description = lender.description
        elif not gold.properties and description == gold.description:
            raise NotApplicable("distractor_would_equal_gold_tool")
        return Tool(gold.name, description, parameters)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        wrong = []
        if (row.messages, row.golden_answers) != (clean.messages, clean.golden_answers):
            wrong.append("messages or gold changed")
        gold = [clean.tools[i] for i in gold_tools(clean).values()]
        extra = surplus(clean.tools, row.tools)
        if extra is None or sorted(t.name for t in extra) != sorted(t.name for t in gold):
            return [*wrong, "the registry is not the clean one plus one distractor per gold tool"]
        for tool in gold:
            for new in (t for t in extra if t.name == tool.name):
                wrong += self._check_distractor(tool, new)
        if row.gold_tool_index is None or row.tools[row.gold_tool_index] != gold[0]:
            wrong.append("gold_tool_index does not point at the gold tool")
        return wrong

    def _check_distractor(self, gold: Tool, new: Tool) -> list[str]:
        wrong = []
        if self.description == "none" and new.description:
            wrong.append("the distractor has a description")
        if self.description == "gold" and new.description != gold.description:
            wrong.append("the distractor's description is not the gold tool's")
        if self.description == "donor" and new.description in ("", gold.description):
            wrong.append("the distractor's description is not another tool's")
        if self.wrong_parameters and (not new.properties or set(new.properties) == set(gold.properties)):
            wrong.append("the distractor's parameters are not wrong")
        if not self.wrong_parameters and new.properties:
            wrong.append("the distractor has parameters")
        return wrong


@register("same_name_A")
class SameNameA(SameName):
    """Dup-NoDesc: neither description nor parameters."""

    description = "none"
    wrong_parameters = False


@register("same_name_B")
class SameNameB(SameName):
    """Dup-Desc: the gold tool's description, no parameters."""

    description = "gold"
    wrong_parameters = False


@register("same_name_C")
class SameNameC(SameName):
    """Dup-WrongP: no description, wrong parameters."""

    description = "none"
    wrong_parameters = True


@register("same_name_D")
class SameNameD(SameName):
    """Dup-DescWP: the gold tool's description, wrong parameters."""

    description = "gold"
    wrong_parameters = True


@register("same_name_E")
class SameNameE(SameName):
    """Dup-SwapDP: another tool's description and parameters."""

    description = "donor"
    wrong_parameters = True


@register("redundant")
class Redundant(Perturbation):
    """RedunTool: up to two new, related tools of another purpose per tool of the registry (model-written)."""

    PER_TOOL: ClassVar[int] = 2

    def requests(self, sample: Sample) -> tuple[TextRequest, ...]:
        taken = [tool.name for tool in sample.tools]
        return tuple(
            TextRequest(
                kind=self.code,
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
        taken = {tool.name for tool in sample.tools}
        new: list[Tool] = []
        generators = set()
        short = False
        for request in self.requests(sample):
            text = context.text(request)
            fresh: list[Tool] = []
            for tool in msgspec.convert(text.value, list[Tool]):
                if tool.name not in taken and len(fresh) < self.PER_TOOL:
                    taken.add(tool.name)
                    fresh.append(tool)
            short = short or len(fresh) < self.PER_TOOL
            if fresh:
                generators.add(text.generator)
            new += fresh
        if not new:
            raise NotApplicable("no_new_tool")
        tools = insert(sample.tools, new, rng)
        index = sample.gold_tool_index
        return self.row(
            sample,
            added(tools, new),
            generator="+".join(sorted(generators)),
            flags=("fewer_redundant_tools",) if short else (),
            tools=tools,
            gold_tool_index=None if index is None else index_of(tools, sample.tools[index]),
        )

    def check(self, clean: Sample, row: Sample) -> list[str]:
        wrong = []
        if (row.messages, row.golden_answers) != (clean.messages, clean.golden_answers):
            wrong.append("messages or gold changed")
        extra = surplus(clean.tools, row.tools)
        if not extra:
            return [*wrong, "the registry is not the clean one plus new tools"]
        originals = [tool for tool in clean.tools if tool.name not in CONTROL_TOOLS]
        if len(extra) > self.PER_TOOL * len(originals):
            wrong.append("more than two new tools per tool")
        names = [tool.name for tool in extra]
        if len(set(names)) < len(names) or set(names) & {tool.name for tool in clean.tools}:
            wrong.append("a new tool's name is taken")
        if clean.gold_tool_index is not None and (
            row.gold_tool_index is None
            or row.tools[row.gold_tool_index] != clean.tools[clean.gold_tool_index]
        ):
            wrong.append("gold_tool_index does not point at the gold tool")
        return wrong
