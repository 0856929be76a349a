"""The registry of row invariants, and which types each is for: said by the types' facts, never by a list."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from robustbench_tc import taxonomy
from robustbench_tc.builders.steps import steps
from robustbench_tc.schema import Sample
from robustbench_tc.taxonomy import Channel, NoCall, PerturbationType

from ..own_tools import no_call_of_the_case

Verdict: TypeAlias = str | None
"""None: does not apply to this row. "": holds. Anything else: what is wrong."""

HOLDS = ""
"""The verdict on a row that is as it should be."""

For: TypeAlias = Callable[[PerturbationType | None], bool]
"""Whether an invariant is for the rows of a type; None stands for clean rows."""


def held(holds: bool, problem: str) -> str:
    """The verdict of a check that says one thing: the problem, unless it holds."""
    return HOLDS if holds else problem


def every(kind: PerturbationType | None) -> bool:
    """For all rows."""
    return True


def perturbed(kind: PerturbationType | None) -> bool:
    """For all rows but the clean ones."""
    return kind is not None


def static(kind: PerturbationType | None) -> bool:
    """For rows that differ from their clean row as they lie there."""
    return kind is not None and kind.static


def of(*channels: Channel) -> For:
    """For rows of the types of these channels."""
    return lambda kind: kind is not None and kind.channel in channels


def of_series(series: str) -> For:
    """For rows of the types of a series, such as `typos` or `flood`."""
    return lambda kind: kind is not None and kind.series == series


def states_preference(kind: PerturbationType | None) -> bool:
    """For offers whose query says what is wanted."""
    return kind is not None and kind.channel == "offers" and bool(kind.traits.get("stated"))


def design(kind: PerturbationType | None) -> str | None:
    """What offers are made to balance: swap, inv, unit or moot; "" for those that balance nothing."""
    return str(kind.traits.get("design", "")) if kind is not None and kind.channel == "offers" else None


def equal_offers(kind: PerturbationType | None) -> bool:
    """For offers of which the one with the better annotation is the gold, the tools being equal."""
    return design(kind) in ("", "swap")


def balanced(kind: PerturbationType | None) -> bool:
    """For offers whose gold has the suffixed name in half of the rows."""
    return design(kind) in ("inv", "unit", "moot")


def of_design(*designs: str) -> For:
    """For offers of these designs."""
    return lambda kind: design(kind) in designs


def abbreviated(kind: PerturbationType | None) -> bool:
    """For offers in which the gold tool is renamed to its abbreviation."""
    return design(kind) == "" and kind is not None and kind.traits.get("suffix") is None


def translated(kind: PerturbationType | None) -> bool:
    """For requests whose golden values are written in the user's language."""
    return kind is not None and kind.traits.get("values") == "translated"


REWRITES = of("query", "descriptions")
OFFERS = of("offers")


def codes_of(wanted: For) -> tuple[str, ...]:
    """Codes of the types that an invariant is for, in the taxonomy's order."""
    return tuple(kind.code for kind in taxonomy.types("known") if wanted(kind))


class Invariant(NamedTuple):
    """One invariant: a column of verdicts, and an expectation over it."""

    name: str
    protects: str
    """The function's docstring, one sentence."""
    wanted: For
    holds: Callable[[Sample, Sample], Verdict]
    """Of (row, its clean row); for a clean row both are the same."""

    def of_type(self, code: str) -> bool:
        """Whether rows of that type are held against it.

        A type that the taxonomy does not have is held against whatever is for rows of all types: what needs
        its facts then fails, as it should.
        """
        if code == taxonomy.CLEAN:
            return self.wanted(None)
        if not taxonomy.known(code):
            return self.wanted in (every, perturbed)
        parts = taxonomy.parts(code)
        if parts and self.wanted is not every:
            return any(self.wanted(taxonomy.get(part)) for part in parts)
        return self.wanted(taxonomy.get(code))

    def verdict(self, row: Sample, clean: Sample) -> Verdict:
        """What it says of a row; of a mixed type's row what it says of the steps that it is for: the first
        that does not hold."""
        if self.wanted is every or not taxonomy.parts(row.type_code):
            return self.holds(row, clean)
        try:
            found = steps(row, clean)
        except ValueError as error:
            return str(error)
        said = [
            self.holds(after, before) for before, after in found if self.wanted(taxonomy.get(after.type_code))
        ]
        known = [one for one in said if one is not None]
        return next((one for one in known if one), HOLDS) if known else None


INVARIANTS: dict[str, Invariant] = {}


def invariant(
    wanted: For,
) -> Callable[[Callable[[Sample, Sample], Verdict]], Callable[[Sample, Sample], Verdict]]:
    """Decorator: registers a function under its name for the rows that `wanted` says."""

    def add(holds: Callable[[Sample, Sample], Verdict]) -> Callable[[Sample, Sample], Verdict]:
        name = holds.__name__
        protects = " ".join((holds.__doc__ or "").split())
        if not protects or name in INVARIANTS:
            raise ValueError(f"{name}: an invariant has one name and one sentence")
        INVARIANTS[name] = Invariant(name, protects, wanted, holds)
        return holds

    return add


def no_call(row: Sample) -> NoCall:
    """What a reply without a call is worth in the row."""
    by_type = taxonomy.get(row.type_code).no_call if taxonomy.known(row.type_code) else "wrong"
    return (no_call_of_the_case(row) or by_type) if by_type == "wrong" else by_type


def shortened(short: str, name: str) -> bool:
    """Whether letters were cut from the name, and none added."""
    letters = iter(name)
    return len(short) < len(name) and all(letter in letters for letter in short)


def first_answer_names(sample: Sample) -> tuple[str, ...]:
    """Distinct tools that the first answer calls, in calling order."""
    if not sample.golden_answers:
        return ()
    return tuple(dict.fromkeys(call.name for call in sample.golden_answers[0]))


def accepted_names(sample: Sample) -> set[str]:
    """Every tool that some accepted answer calls."""
    return {call.name for answer in sample.golden_answers for call in answer}
