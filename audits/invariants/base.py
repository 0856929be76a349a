"""Which types' rows a check is for: said by the types' facts, never by a list. What checks ask of gold."""

from collections.abc import Callable
from typing import TypeAlias

from robustbench_tc import sources, taxonomy
from robustbench_tc.builders.steps import steps
from robustbench_tc.eval.score.category import read_category
from robustbench_tc.schema import Sample
from robustbench_tc.taxonomy import Channel, NoCall, PerturbationType

from ..checks import HOLDS, Rule, Verdict, by_itself, every

Of: TypeAlias = Callable[[PerturbationType | None], bool]


def perturbed(kind: PerturbationType | None) -> bool:
    """For all rows but the clean ones."""
    return kind is not None


def static(kind: PerturbationType | None) -> bool:
    """For rows that differ from their clean row as they lie there."""
    return kind is not None and kind.static


def of_channels(*channels: Channel) -> Of:
    """For rows of the types of these channels."""
    return lambda kind: kind is not None and kind.channel in channels


def states_preference(kind: PerturbationType | None) -> bool:
    """For offers whose query says what is wanted."""
    return kind is not None and kind.channel == "offers" and bool(kind.traits.get("stated"))


def design(kind: PerturbationType | None) -> str | None:
    """What offers are made to balance: swap, inv, unit or moot; "" for those that balance nothing."""
    return str(kind.traits.get("design", "")) if kind is not None and kind.channel == "offers" else None


def of_design(*designs: str) -> Of:
    """For offers of these designs."""
    return lambda kind: design(kind) in designs


EQUAL_OFFERS = of_design("", "swap")
"""For offers of which the one with the better annotation is the gold, the tools being equal."""

BALANCED = of_design("inv", "unit", "moot")
"""For offers between which more decides than one annotation: their unit alone says what is right."""


def abbreviated(kind: PerturbationType | None) -> bool:
    """For offers in which the gold tool is renamed to its abbreviation."""
    return design(kind) == "" and kind is not None and kind.traits.get("suffix") is None


def translated(kind: PerturbationType | None) -> bool:
    """For requests whose golden values are written in the user's language."""
    return kind is not None and kind.traits.get("values") == "translated"


REWRITES = of_channels("query", "descriptions")
OFFERS = of_channels("offers")


def codes_of(wanted: Of) -> tuple[str, ...]:
    """Codes of the types that a check is for, in the taxonomy's order."""
    return tuple(kind.code for kind in taxonomy.types("known") if wanted(kind))


def is_for(rule: Rule, code: str) -> bool:
    """Whether rows of that type are held against a check.

    A type that the taxonomy does not have is held against whatever is for rows of all types: what needs its
    facts then fails, as it should.
    """
    if code == taxonomy.CLEAN:
        return rule.for_(None)
    if not taxonomy.known(code):
        return rule.for_ in (every, by_itself, perturbed)
    parts = taxonomy.parts(code) if rule.for_ is not every else ()
    return any(rule.for_(taxonomy.get(part)) for part in parts or (code,))


def verdict_on(rule: Rule, row: Sample, clean: Sample) -> Verdict:
    """What a check says of a row; of a mixed type's row what it says of the steps that it is for: the first
    that does not hold."""
    if rule.for_ is every or not taxonomy.parts(row.type_code):
        return rule.verdict(row, clean)
    try:
        found = steps(row, clean)
    except ValueError as error:
        return str(error)
    said = [
        rule.verdict(after, before) for before, after in found if rule.for_(taxonomy.get(after.type_code))
    ]
    known = [one for one in said if one is not None]
    return next(filter(None, known), HOLDS) if known else None


def no_call(row: Sample) -> NoCall:
    """What a reply without a call is worth in the row."""
    by_type = taxonomy.get(row.type_code).no_call if taxonomy.known(row.type_code) else "wrong"
    if by_type != "wrong" or row.source != sources.OWN:
        return by_type
    kinds = set(read_category(row.category).kinds)  # of one's own case, the case says it
    if "calls" not in kinds:
        return "right"
    return "wrong" if kinds == {"calls"} else "accepted"


def shortened(short: str, name: str) -> bool:
    """Whether letters were cut from the name, and none added."""
    letters = iter(name)
    return len(short) < len(name) and all(letter in letters for letter in short)


def first_answer_names(sample: Sample) -> tuple[str, ...]:
    """Distinct tools that the first answer calls, in calling order."""
    return tuple(dict.fromkeys(call.name for call in next(iter(sample.golden_answers), ())))


def accepted_names(sample: Sample) -> set[str]:
    """Every tool that some accepted answer calls."""
    return {call.name for answer in sample.golden_answers for call in answer}
