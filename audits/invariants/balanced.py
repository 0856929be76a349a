"""Balanced offers: two tools beside each other, and what decides between them in each design."""

import re
from typing import NamedTuple

from robustbench_tc import taxonomy
from robustbench_tc.schema import OMIT, Sample, Tool

from ..checks import check
from .base import BALANCED, design, first_answer_names, of_design
from .reward import FACTOR

_PRICE = re.compile(r"Price per (?P<unit>call|1,000 calls): \$(?P<number>\d+\.\d+)\.")
_TIME = re.compile(r"Typical response time: (?P<number>\d+(?:\.\d+)?) (?P<unit>ms|s)\.")
_PER = {"call": 1.0, "1,000 calls": 0.001, "ms": 1.0, "s": 1000.0}
"""What a number in that unit is in dollars per call, or in milliseconds."""


class Offer(NamedTuple):
    """What a description says that a call costs or takes."""

    value: float
    unit: str


def offer(tool: Tool, quality: str) -> Offer | None:
    """The one offer of that quality in the tool's description; None for none, or for several."""
    found = list((_PRICE if quality == "cost" else _TIME).finditer(tool.description))
    if len(found) != 1:
        return None
    return Offer(float(found[0]["number"]) * _PER[found[0]["unit"]], found[0]["unit"])


def text_of(tool: Tool) -> str:
    """The description without offers and without a closing full stop."""
    bare = _TIME.sub("", _PRICE.sub("", tool.description)).strip()
    return bare.removesuffix(".").rstrip()


def pair(row: Sample, clean: Sample) -> tuple[Tool, Tool] | None:
    """The gold tool and the one other tool beside it; None where the row does not have just those two."""
    names, golds = first_answer_names(clean), first_answer_names(row)
    if len(names) != 1 or len(golds) != 1:
        return None
    wanted = re.compile(rf"{re.escape(names[0])}(?:_\d+)?")
    clean_names = {tool.name for tool in clean.tools} - {names[0]}
    two = [tool for tool in row.tools if wanted.fullmatch(tool.name) and tool.name not in clean_names]
    gold = [tool for tool in two if tool.name == golds[0]]
    if len(two) != 2 or len(gold) != 1 or names[0] not in (tool.name for tool in two):
        return None
    return gold[0], two[0] if two[1] is gold[0] else two[1]


@check("benchmark_rows", for_=BALANCED)
def one_look_alike_beside_the_gold_tool(row: Sample, clean: Sample) -> None:
    """The choice is between two tools, one under the clean name and one under a number; the rest stays."""
    two = pair(row, clean)
    assert two is not None and len(row.tools) == len(clean.tools) + 1, (
        "there are not just the clean name and one numbered name beside it"
    )
    original = next(tool for tool in clean.tools if tool.name == first_answer_names(clean)[0])
    assert not any(
        text_of(tool) != original.description.strip().removesuffix(".").rstrip() for tool in two
    ), "a description is more than annotated"
    rest = [tool for tool in clean.tools if tool is not original]
    for tool in row.tools:
        if tool in two:
            continue
        assert tool in rest, "another tool changed"
        rest.remove(tool)


@check("benchmark_rows", for_=BALANCED)
def balanced_offers_in_order(row: Sample, clean: Sample) -> None:
    """The offers decide as the design says, by a factor of 4: the gold's is better in what is asked for, or
    after conversion; where the complete tool is the gold, the one that lacks a parameter is better."""
    kind = taxonomy.get(row.type_code)
    two = pair(row, clean)
    assert two is not None, "the two tools are not there"
    asked = str(kind.traits["quality"])
    gold, other = (offer(tool, asked) for tool in two)
    assert gold is not None and other is not None, "a tool makes no offer, or several"
    if design(kind) == "moot" and _complete(two[0], clean):
        gold, other = other, gold
    assert gold.value > 0 and other.value >= FACTOR * gold.value * (1 - 1e-9), (
        "the offers are not in the order of their design"
    )
    if design(kind) == "inv":
        better, worse = (offer(tool, "time" if asked == "cost" else "cost") for tool in reversed(two))
        assert (
            better is not None and worse is not None and worse.value >= FACTOR * better.value * (1 - 1e-9)
        ), "the gold tool is not worse in the other quality"


@check("benchmark_rows", for_=of_design("unit"))
def units_are_mixed(row: Sample, clean: Sample) -> None:
    """Offers in one unit need no conversion."""
    two = pair(row, clean)
    quality = str(taxonomy.get(row.type_code).traits["quality"])
    units = [found.unit if (found := offer(tool, quality)) else "" for tool in two or ()]
    assert len(set(units)) == 2 and "" not in units, "the two offers are not in two units"


@check("benchmark_rows", for_=of_design("inv", "unit"))
def both_tools_have_the_clean_parameters(row: Sample, clean: Sample) -> None:
    """Two tools that differ in more than their offers are not a choice between offers."""
    two = pair(row, clean)
    same = two is not None and all(_complete(tool, clean) for tool in two)
    assert same, "one of the two tools has other parameters than the clean one"


@check("benchmark_rows", for_=of_design("moot"))
def look_alike_lacks_one_parameter(row: Sample, clean: Sample) -> None:
    """One of the two tools lacks one parameter: one that every answer gives where the complete tool is the
    gold, else one that is not required and that no answer has to give."""
    two = pair(row, clean)
    assert two is not None, "the two tools are not there"
    gold, other = two
    assert _complete(gold, clean) != _complete(other, clean), (
        "not exactly one of the two tools has all parameters"
    )
    complete, lean = (gold, other) if _complete(gold, clean) else (other, gold)
    lost = [name for name in complete.properties if name not in lean.properties]
    kept = {name: about for name, about in complete.properties.items() if name not in lost}
    required = [name for name in complete.required if name not in lost]
    assert len(lost) == 1 and lean.properties == kept and list(lean.required) == required, (
        "the tools differ in more than one missing parameter"
    )
    calls = [call for answer in clean.golden_answers for call in answer]
    given = [call.parameters[lost[0]] for call in calls if lost[0] in call.parameters]
    may_miss = [isinstance(values, list | tuple) and OMIT in values for values in given]
    if complete is gold:
        always = len(given) == len(calls) and not any(may_miss)
        assert always, "an accepted answer does without the missing parameter"
    else:
        free = all(may_miss) and lost[0] not in complete.required
        assert free, "the missing parameter is required, or an accepted answer has to give it"


def _complete(tool: Tool, clean: Sample) -> bool:
    """Whether the tool has the parameters of the clean gold tool."""
    name = first_answer_names(clean)[0]
    return any(tool.parameters == one.parameters for one in clean.tools if one.name == name)
