"""Reward: a twin of the gold tool, true annotations in the right order, a name that suggests otherwise."""

import re
from collections.abc import Iterator

from robustbench_tc.schema import Sample, Tool

from .base import HOLDS, REWARD, Verdict, accepted_names, first_answer_names, invariant

FACTOR = 4
"""The distractor is at least this many times dearer or slower."""

_ANNOTATIONS = {
    "CD": re.compile(r"\s*Price per call: \$(\d+\.\d+)\.\Z"),
    "TD": re.compile(r"\s*Typical response time: (\d+) ms\.\Z"),
}


def channel(type_code: str) -> str:
    """`CD` (cost) or `TD` (time)."""
    return type_code[:2]


def value(tool: Tool, kind: str) -> float | None:
    """The price in dollars or time in milliseconds that the description ends with."""
    found = _ANNOTATIONS[kind].search(tool.description)
    return float(found.group(1)) if found else None


def base_text(tool: Tool, kind: str) -> str:
    """The description without its annotation and without a closing full stop."""
    return _ANNOTATIONS[kind].sub("", tool.description).rstrip().removesuffix(".")


def offers(row: Sample, clean: Sample) -> Iterator[tuple[str, Tool | None, list[Tool]]]:
    """Per gold tool of the clean row: its old name, the gold tool of the row, and its twins.

    Twins have the gold tool's parameters and description, an annotation, and another name.
    """
    kind = channel(row.type_code)
    names = first_answer_names(clean)
    new_names = first_answer_names(row)
    for old, new in zip(names, new_names, strict=False):
        tools = [tool for tool in row.tools if tool.name == new]
        gold = tools[0] if len(tools) == 1 else None
        twins = (
            []
            if gold is None
            else [
                tool
                for tool in row.tools
                if tool.name != new
                and tool.parameters == gold.parameters
                and value(tool, kind) is not None
                and base_text(tool, kind) == base_text(gold, kind)
            ]
        )
        yield old, gold, twins


@invariant(REWARD)
def exactly_one_twin(row: Sample, clean: Sample) -> Verdict:
    """The choice is between two equal tools: one twin per gold tool, with its parameters and description."""
    names = first_answer_names(clean)
    if len(row.tools) != len(clean.tools) + len(names):
        return f"{len(row.tools)} tools instead of {len(clean.tools)} and one twin per gold tool"
    for _, gold, twins in offers(row, clean):
        if gold is None or len(twins) != 1:
            return "a gold tool has no twin of its own" if not twins else "a gold tool has several twins"
    return HOLDS


@invariant(REWARD)
def annotations_in_order(row: Sample, clean: Sample) -> Verdict:
    """The annotations decide, so their order must be right: the gold tool is better by a factor of 4."""
    kind = channel(row.type_code)
    for _, gold, twins in offers(row, clean):
        better = None if gold is None else value(gold, kind)
        if better is None or better <= 0:
            return "the gold tool is not annotated"
        if any((value(twin, kind) or 0) < FACTOR * better for twin in twins):
            return f"the gold tool is not better by a factor of {FACTOR}"
    return HOLDS


@invariant(REWARD)
def twin_is_named_as_its_type_says(row: Sample, clean: Sample) -> Verdict:
    """The name is the temptation: a promising suffix, a plain number, or the readable name itself."""
    for old, _, twins in offers(row, clean):
        for twin in twins:
            if row.type_code in ("CD", "TD"):
                wanted = re.escape(old + ("_Budget" if row.type_code == "CD" else "_Fast")) + r"(?:_\d+)?"
            elif row.type_code.endswith("_NT"):
                wanted = re.escape(old) + r"_\d+"
            else:
                wanted = re.escape(old)
            if not re.fullmatch(wanted, twin.name):
                return "a twin's name is not the type's"
    return HOLDS


@invariant(REWARD)
def other_tools_look_no_better(row: Sample, clean: Sample) -> Verdict:
    """Nothing else may look like the best offer: other tools stay, accepted ones are annotated worse."""
    kind = channel(row.type_code)
    pairs = list(offers(row, clean))
    treated = [id(tool) for _, gold, twins in pairs for tool in (gold, *twins) if tool is not None]
    best = [value(gold, kind) or 0 for _, gold, _ in pairs if gold is not None]
    gold_names = {old for old, _, _ in pairs}
    left = [tool for tool in clean.tools if tool.name not in gold_names]
    for tool in row.tools:
        if id(tool) in treated:
            continue
        if tool in left:
            left.remove(tool)
            continue
        price = value(tool, kind)
        if price is None or tool.name not in accepted_names(clean):
            return "another tool changed"
        if best and price < min(best):
            return "another accepted tool is annotated better than the gold tool"
    return HOLDS


@invariant(REWARD)
def gold_is_the_unique_best(row: Sample, clean: Sample) -> Verdict:
    """There is one best offer and it is the gold tool's: else a row has several right answers."""
    kind = channel(row.type_code)
    accepted = accepted_names(clean) - set(first_answer_names(clean))
    for _, gold, twins in offers(row, clean):
        price = None if gold is None else value(gold, kind)
        if gold is None or price is None:
            return "the gold tool makes no offer"
        for tool in row.tools:
            if tool is gold:
                continue
            same = tool.parameters == gold.parameters and base_text(tool, kind) == base_text(gold, kind)
            rival = tool in twins or same or (tool.name in accepted and value(tool, kind) is not None)
            offered = value(tool, kind)
            if rival and tool.name not in first_answer_names(row) and (offered is None or offered <= price):
                return "another tool that does the same is as good or says nothing"
    return HOLDS
