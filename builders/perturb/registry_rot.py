"""RoTBench's own noise: its four levels of noisy tool lists against its clean records.

Upstream has, for each clean record, one version with noisy names of tools and one with noisy parameters
at the levels slight (letters come, go and change), medium (names reversed or replaced by letters without
meaning) and heavy (names exchanged between tools, or between a tool's parameters, parameters added that have
to be given), and one of everything at the level union. Queries and golden values stay; names in
the golden answers follow.
"""

import random
import re

from robustbench_tc.schema import ANY, CONTROL_TOOLS, Call, Change, GoldenAnswer, Json, Sample, Tool
from robustbench_tc.taxonomy import Rows

from .base import (
    Context,
    Facts,
    NotApplicable,
    Perturbation,
    register,
)
from .registry import gold_change

_SAID = re.compile(r'set it as "([^"]*)"')
"""How upstream's descriptions say the value of a parameter that was added."""


class Noisy(Perturbation, frozen=True):
    """A noisy version takes the place of the clean registry, tool by tool."""

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """One of the sample's noisy versions that differ from it, drawn with the seed."""
        known = context.lent(self.borrows[0], sample.clean_id)
        if not known:
            raise NotApplicable("no_noisy_record" if sample.source == "rotbench" else "not_of_rotbench")
        fitting = [noisy for noisy in known if noisy.tools != sample.tools]
        if not fitting:
            raise NotApplicable("noisy_record_equals_clean")
        noisy = rng.choice(fitting)
        golden = tuple(
            tuple(_freed(call, sample, noisy) for call in answer) for answer in noisy.golden_answers
        )
        made = self.row(
            sample,
            _changes(sample, noisy.tools, golden),
            tools=noisy.tools,
            golden_answers=golden,
            gold_tool_index=sample.gold_tool_index,
        )
        if self.check(sample, made):
            names = [tool.name for tool in sample.tools]
            twice = any(names.count(call.name) > 1 for answer in sample.golden_answers for call in answer)
            # Else a golden answer is not upstream's: an erratum corrected it.
            raise NotApplicable("gold_tool_listed_twice" if twice else "gold_is_another_one")
        return made

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """Tool by tool the clean registry under noise; the golden calls follow, with the clean values."""
        wrong = self.beyond(clean, row)
        if len(row.tools) != len(clean.tools):
            return [*wrong, "there are more or fewer tools than in the clean registry"]
        if [tool.description for tool in row.tools] != [tool.description for tool in clean.tools]:
            wrong.append("a tool's description changed")
        if [len(answer) for answer in row.golden_answers] != [len(a) for a in clean.golden_answers]:
            return [*wrong, "there are other golden answers than in the clean row"]
        pairs = zip(clean.golden_answers, row.golden_answers, strict=True)
        calls = [pair for before, after in pairs for pair in zip(before, after, strict=True)]
        wrong += [problem for before, after in calls if (problem := _mismatch(before, after, clean, row))]
        index = row.gold_tool_index
        if index != clean.gold_tool_index or index is None or not row.golden_answers[0]:
            wrong.append("gold_tool_index is not the clean one")
        elif row.tools[index].name != row.golden_answers[0][0].name:
            wrong.append("gold_tool_index does not point at the gold tool")
        return wrong


NOISY: Facts = {
    "component": "action",
    "level": "interaction",
    "pack": "registry",
    "channel": "registry",
    "method": "rule",
    "may_change": ("tool names", "parameter descriptions", "parameter schemas", "golden answers"),
    "ground_truth_changes": True,
    "train_augmentable": False,
    "applies_to": ("rotbench",),
    "prior_art": "RoTBench (Ye et al., EMNLP 2024), whose records these are",
}


def _freed(call: Call, clean: Sample, noisy: Sample) -> Call:
    """The golden call; what is said through a control tool is free, under whatever name that tool goes."""
    places = [place for place, tool in enumerate(noisy.tools) if tool.name == call.name]
    steers = all(place < len(clean.tools) and clean.tools[place].name in CONTROL_TOOLS for place in places)
    return Call(call.name, {name: [ANY] for name in call.parameters}) if places and steers else call


def _mismatch(before: Call, after: Call, clean: Sample, row: Sample) -> str:
    """What is wrong with a golden call of the row, whose clean call is `before`; "" for nothing."""
    places = [place for place, tool in enumerate(clean.tools) if tool.name == before.name]
    place = next((place for place in places if row.tools[place].name == after.name), None)
    if place is None:
        return "a golden call is of another tool than the clean one"
    kept = list(after.parameters.values())[: len(before.parameters)]
    free = clean.tools[place].name in CONTROL_TOOLS
    if len(kept) != len(before.parameters) or (not free and kept != list(before.parameters.values())):
        return "a golden value is not the clean one"
    names = list(clean.tools[place].properties)
    for (old, _), new in zip(before.parameters.items(), after.parameters, strict=False):
        here = list(row.tools[place].properties)
        if old in names and (names.index(old) >= len(here) or here[names.index(old)] != new):
            return "a golden parameter is another one than in the clean call"
    added = list(after.parameters.items())[len(before.parameters) :]
    if any(values != [_stated(row.tools[place], name)] for name, values in added):
        return "an added golden parameter has not the value that its description says"
    return ""


def _stated(tool: Tool, name: str) -> Json:
    """The value that the description of an added parameter asks for; None where there is none."""
    inner = tool.properties.get(name)
    found = _SAID.search(str(inner.get("description"))) if isinstance(inner, dict) else None
    return found.group(1) if found else None


def _changes(clean: Sample, tools: tuple[Tool, ...], golden: tuple[GoldenAnswer, ...]) -> list[Change]:
    out: list[Change] = []
    for place, (old, new) in enumerate(zip(clean.tools, tools, strict=False)):
        for field in ("name", "description", "parameters"):
            before, after = getattr(old, field), getattr(new, field)
            if before != after:
                out.append(Change(f"/tools/{place}/{field}", before, after))
    return out + gold_change(clean, golden)


_HOW_MADE = (
    "The record's tool list at RoTBench's own level {}, from upstream's file{}. {} Queries, descriptions of "
    "tools and golden values stay, names in the golden answers follow."
)
_DRAWN = (
    ": of the two versions there, one with noisy names of tools and one with noisy parameters, the seed "
    "chooses one that differs from the clean record"
)


register(
    Noisy(
        **NOISY,
        code="rot_slight",
        order=410,
        display_name="Rot-Slight",
        label="names misspelt",
        what_is_modified="RoTBench's own noise of level slight: some letters of names changed.",
        how_made=_HOW_MADE.format("slight", _DRAWN, "Letters of names come, go and change."),
        borrows=("rotbench_slight",),
        rows=Rows(paper=21, bundled=14, full=101),
    ),
    Noisy(
        **NOISY,
        code="rot_medium",
        order=411,
        display_name="Rot-Medium",
        label="names garbled",
        what_is_modified=(
            "RoTBench's own noise of level medium: names reversed or replaced by letters without meaning."
        ),
        how_made=_HOW_MADE.format(
            "medium", _DRAWN, "Names are reversed, or replaced by letters without meaning."
        ),
        borrows=("rotbench_medium",),
        rows=Rows(paper=21, bundled=14, full=101),
    ),
    Noisy(
        **NOISY,
        code="rot_heavy",
        order=412,
        display_name="Rot-Heavy",
        label="names exchanged",
        what_is_modified=(
            "RoTBench's own noise of level heavy: names exchanged between tools or parameters, parameters "
            "added that have to be given."
        ),
        how_made=_HOW_MADE.format(
            "heavy",
            _DRAWN,
            "Names are exchanged between tools, or between the parameters of a tool, and parameters are "
            "added that have to be given, with the value that their description says.",
        ),
        borrows=("rotbench_heavy",),
        rows=Rows(paper=21, bundled=14, full=100),
    ),
    Noisy(
        **NOISY,
        code="rot_union",
        order=413,
        display_name="Rot-Union",
        label="names in mixed noise",
        what_is_modified="RoTBench's own noise of level union: noise of all levels together.",
        how_made=_HOW_MADE.format(
            "union", "", "Noise of all levels on names of tools and parameters together."
        ),
        borrows=("rotbench_union",),
        rows=Rows(paper=21, bundled=14, full=100),
    ),
)
