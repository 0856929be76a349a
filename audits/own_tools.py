"""What the gate asks of a dataset of somebody's own tools (`rbtc build --cases`), and what it leaves out.

Such a build has no upstream, no counts that are known beforehand, and as few cases as its maker wrote: a
check that found nothing to look at says so, and keeps nobody from going on. Keys and passwords are looked for
as everywhere; addresses and telephone numbers in requests are the maker's business.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from robustbench_tc import sources
from robustbench_tc.eval.score.category import read_category
from robustbench_tc.schema import Sample
from robustbench_tc.taxonomy import NoCall

from .report import Check

PROFILE = "own"

NOTHING_THERE = "own tools and cases: the dataset holds nothing that this check could be held against"
NAMED_ELSEWHERE = (
    "own tools and cases: a type's module says what needs no reading in the benchmark's samples; the report "
    "lists what needs none here"
)


class _Reported(Protocol):
    @property
    def report(self) -> dict[str, object]: ...


def is_own(folder: _Reported) -> bool:
    """Whether a build says that it was made of own tools."""
    return folder.report.get("profile") == PROFILE


def no_call_of_the_case(row: Sample) -> NoCall | None:
    """What a reply without a call is worth by the case itself; None where its answers all call something."""
    if row.source != sources.OWN:
        return None
    kinds = set(read_category(row.category).kinds)
    if kinds == {"calls"}:
        return None
    return "accepted" if "calls" in kinds else "right"


def allowed(checks: Sequence[Check]) -> list[Check]:
    """The checks of such a build: those that found nothing to look at may be left out.

    A rebuild that failed is no such thing.
    """
    return [_allowed(one) for one in checks]


def _allowed(one: Check) -> Check:
    if one.id == "shortcuts.named":
        return msgspec.structs.replace(
            one, status="not_run", failed=0, failures=(), may_be_left_out=NAMED_ELSEWHERE
        )
    if one.status == "not_run" and one.may_be_left_out is None and not one.id.startswith("provenance."):
        return msgspec.structs.replace(one, may_be_left_out=NOTHING_THERE)
    return one
