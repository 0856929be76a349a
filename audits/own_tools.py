"""What the gate asks of a dataset of somebody's own tools (`rbtc build --cases`), and what it leaves out.

Such a build has no upstream, no counts that are known beforehand, and as few cases as its maker wrote: a
check that found nothing to look at says so, and keeps nobody from going on. Keys and passwords are looked for
as everywhere; addresses and telephone numbers in requests are the maker's business.
"""

import msgspec

from robustbench_tc import sources
from robustbench_tc.builders.sources import OWN_CASES
from robustbench_tc.eval.score.category import read_category
from robustbench_tc.schema import Sample
from robustbench_tc.taxonomy import NoCall

from .folder import Folder
from .report import Check

NOTHING_THERE = "own tools and cases: the dataset holds nothing that this check could be held against"
NAMED_ELSEWHERE = (
    "own tools and cases: a type's module says what needs no reading in the benchmark's samples; the report "
    "lists what needs none here"
)


def is_own(folder: Folder) -> bool:
    """Whether a build says that it was made of own tools."""
    return folder.report.get("profile") == OWN_CASES


def no_call_of_the_case(row: Sample) -> NoCall | None:
    """What a reply without a call is worth by the case itself; None where its answers all call something."""
    if row.source != sources.OWN:
        return None
    kinds = set(read_category(row.category).kinds)
    if kinds == {"calls"}:
        return None
    return "accepted" if "calls" in kinds else "right"


def allowed(one: Check) -> Check:
    """A check of such a build, which may be left out where it found nothing to look at.

    A rebuild that failed is no such thing.
    """
    if one.id == "shortcuts.named":
        return msgspec.structs.replace(
            one, status="not_run", failed=0, failures=(), may_be_left_out=NAMED_ELSEWHERE
        )
    if one.status == "not_run" and one.may_be_left_out is None and not one.id.startswith("provenance."):
        return msgspec.structs.replace(one, may_be_left_out=NOTHING_THERE)
    return one
