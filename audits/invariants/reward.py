"""Reward: a counterpart of the gold tool, true annotations in the right order, a name that says otherwise."""

import re
from collections.abc import Iterator

from robustbench_tc import taxonomy
from robustbench_tc.schema import Sample, Tool

from ..checks import check
from .base import EQUAL_OFFERS, accepted_names, design, first_answer_names, shortened

FACTOR = 4
"""The distractor is at least this many times dearer or slower."""

_ANNOTATIONS = {
    "cost": re.compile(r"\s*Price per call: \$(\d+\.\d+)\.\Z"),
    "time": re.compile(r"\s*Typical response time: (\d+) ms\.\Z"),
}


def quality(type_code: str) -> str:
    """What the type's annotations say of a call: `cost` or `time`."""
    return str(taxonomy.get(type_code).traits["quality"])


def least_factor(type_code: str) -> float:
    """How many times worse a distractor of the type is at least: of the series `factor` its dose."""
    kind = taxonomy.get(type_code)
    return kind.dose if kind.series == "factor" and kind.dose is not None else FACTOR


def value(tool: Tool, kind: str) -> float | None:
    """The price in dollars or time in milliseconds that the description ends with."""
    found = _ANNOTATIONS[kind].search(tool.description)
    return float(found.group(1)) if found else None


def base_text(tool: Tool, kind: str) -> str:
    """The description without its annotation and without a closing full stop."""
    return _ANNOTATIONS[kind].sub("", tool.description).rstrip().removesuffix(".")


def offers(row: Sample, clean: Sample) -> Iterator[tuple[str, Tool | None, list[Tool]]]:
    """Per gold tool of the clean row: its old name, the gold tool of the row, and its counterparts.

    A counterpart has the gold tool's parameters and description, an annotation, and another name.
    """
    kind = quality(row.type_code)
    names = first_answer_names(clean)
    new_names = first_answer_names(row)
    for old, new in zip(names, new_names, strict=False):
        tools = [tool for tool in row.tools if tool.name == new]
        if len(tools) > 1:  # a namesake that came in before, in a mixed type, makes no offer
            tools = [tool for tool in tools if value(tool, kind) is not None]
        gold = tools[0] if len(tools) == 1 else None
        counterparts = (
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
        yield old, gold, counterparts


@check("benchmark_rows", for_=EQUAL_OFFERS)
def exactly_one_counterpart(row: Sample, clean: Sample) -> None:
    """The choice is between two equal tools: one counterpart per gold tool, with its parameters and texts."""
    names = first_answer_names(clean)
    assert len(row.tools) == len(clean.tools) + len(names), (
        f"{len(row.tools)} tools instead of {len(clean.tools)} and one counterpart per gold tool"
    )
    for _, gold, counterparts in offers(row, clean):
        assert gold is not None and len(counterparts) == 1, (
            "a gold tool has no counterpart of its own"
            if not counterparts
            else "a gold tool has several counterparts"
        )


@check("benchmark_rows", for_=EQUAL_OFFERS)
def annotations_in_order(row: Sample, clean: Sample) -> None:
    """The annotations decide, so their order must be right: the gold tool is better by a factor of 4, or by
    that of its type."""
    kind, factor = quality(row.type_code), least_factor(row.type_code)
    for _, gold, counterparts in offers(row, clean):
        better = None if gold is None else value(gold, kind)
        assert better is not None and better > 0, "the gold tool is not annotated"
        assert not any(
            (value(counterpart, kind) or 0) < factor * better - 1e-9 for counterpart in counterparts
        ), f"the gold tool is not better by a factor of {factor:g}"


@check("benchmark_rows", for_=EQUAL_OFFERS)
def counterpart_is_named_as_its_type_says(row: Sample, clean: Sample) -> None:
    """The name is the temptation: a promising suffix, a plain number, or the readable name itself."""
    kind = taxonomy.get(row.type_code)
    suffix = kind.traits["suffix"]
    for old, gold, counterparts in offers(row, clean):
        wanted = re.escape(old)
        if suffix == "_1":
            wanted += r"_\d+"
        elif suffix is not None:
            wanted += re.escape(str(suffix)) + r"(?:_\d+)?"
        for counterpart in counterparts:
            names = [counterpart.name, gold.name if gold else ""]
            misleading, other = reversed(names) if design(kind) == "swap" else names
            assert re.fullmatch(wanted, misleading), "a counterpart's name is not the type's"
            assert suffix is not None or shortened(other, old), (
                "a name is not the abbreviation of the readable one"
            )


@check("benchmark_rows", for_=EQUAL_OFFERS)
def other_tools_look_no_better(row: Sample, clean: Sample) -> None:
    """Nothing else may look like the best offer: other tools stay, accepted ones are annotated worse."""
    kind = quality(row.type_code)
    pairs = list(offers(row, clean))
    treated = [
        id(tool) for _, gold, counterparts in pairs for tool in (gold, *counterparts) if tool is not None
    ]
    best = [value(gold, kind) or 0 for _, gold, _ in pairs if gold is not None]
    bases = [(old, gold.parameters) for old, gold, _ in pairs if gold is not None]
    left = [tool for tool in clean.tools if (tool.name, tool.parameters) not in bases]
    for tool in row.tools:
        if id(tool) in treated:
            continue
        if tool in left:
            left.remove(tool)
            continue
        price = value(tool, kind)
        assert price is not None and tool.name in accepted_names(clean), "another tool changed"
        assert not best or price >= min(best), "another accepted tool is annotated better than the gold tool"


@check("benchmark_rows", for_=EQUAL_OFFERS)
def gold_is_the_unique_best(row: Sample, clean: Sample) -> None:
    """There is one best offer and it is the gold tool's: else a row has several right answers."""
    kind = quality(row.type_code)
    accepted = accepted_names(clean) - set(first_answer_names(clean))
    for _, gold, counterparts in offers(row, clean):
        price = None if gold is None else value(gold, kind)
        assert gold is not None and price is not None, "the gold tool makes no offer"
        for tool in row.tools:
            if tool is gold:
                continue
            same = tool.parameters == gold.parameters and base_text(tool, kind) == base_text(gold, kind)
            rival = tool in counterparts or same or (tool.name in accepted and value(tool, kind) is not None)
            offered = value(tool, kind)
            assert (
                not rival or tool.name in first_answer_names(row) or (offered is not None and offered > price)
            ), "another tool that does the same is as good or says nothing"
