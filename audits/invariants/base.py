"""The registry of row invariants."""

from collections.abc import Callable, Collection
from typing import NamedTuple, TypeAlias

from robustbench_tc import taxonomy
from robustbench_tc.schema import Sample

Verdict: TypeAlias = str | None
"""None: does not apply to this row. "": holds. Anything else: what is wrong."""

HOLDS = ""

OBSERVATION = tuple(t.code for t in taxonomy.types("all") if t.component == "observation")
QUERY_REWRITES = ("realistic_typos", "query_paraphrase")
DESCRIPTION_REWRITES = ("paraphrase_tool_description", "paraphrase_parameter_description")
SAME_NAME = tuple(f"same_name_{letter}" for letter in "ABCDE")
REDUNDANT = ("redundant",)
REWARD = tuple(
    t.code for t in taxonomy.types("all") if t.component == "reward" and t.code[:2] in ("CD", "TD")
)
TRANSITION = tuple(taxonomy.INJECTED_ERRORS)
PERTURBED = (*QUERY_REWRITES, *DESCRIPTION_REWRITES, *SAME_NAME, *REDUNDANT, *REWARD, *TRANSITION)
STATIC = tuple(code for code in PERTURBED if code not in TRANSITION)
CLEAN = (taxonomy.CLEAN,)
ALL = (*CLEAN, *PERTURBED)


class Invariant(NamedTuple):
    """One invariant: a column of verdicts, and an expectation over it."""

    name: str
    protects: str
    """The function's docstring, one sentence."""
    types: frozenset[str]
    holds: Callable[[Sample, Sample], Verdict]
    """Of (row, its clean row); for a clean row both are the same."""


INVARIANTS: dict[str, Invariant] = {}


def invariant(
    types: Collection[str],
) -> Callable[[Callable[[Sample, Sample], Verdict]], Callable[[Sample, Sample], Verdict]]:
    """Decorator: registers a function under its name for rows of `types`."""

    def add(holds: Callable[[Sample, Sample], Verdict]) -> Callable[[Sample, Sample], Verdict]:
        name = holds.__name__
        protects = " ".join((holds.__doc__ or "").split())
        if not protects or name in INVARIANTS:
            raise ValueError(f"{name}: an invariant has one name and one sentence")
        INVARIANTS[name] = Invariant(name, protects, frozenset(types), holds)
        return holds

    return add


def first_answer_names(sample: Sample) -> tuple[str, ...]:
    """Distinct tools that the first answer calls, in calling order."""
    if not sample.golden_answers:
        return ()
    return tuple(dict.fromkeys(call.name for call in sample.golden_answers[0]))


def accepted_names(sample: Sample) -> set[str]:
    """Every tool that some accepted answer calls."""
    return {call.name for answer in sample.golden_answers for call in answer}
