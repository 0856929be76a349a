"""Repeated errors: the time-out of `transient_timeout`, once, twice, or whatever is tried.

The series of how an agent bears an error that does not go away. The rows equal their clean rows; the harness
answers as many calls as the type says (trait `times`).
"""

from typing import ClassVar

import msgspec

from robustbench_tc.schema import Sample
from robustbench_tc.taxonomy import Rows

from .base import Case, states, variant
from .transition import TIMEOUT, Injected


@states(
    pack="severity",
    rows=Rows(paper=199, bundled=73, full=3080),
    how_made=(
        "The row equals its clean row. While a model is evaluated, its first calls, as many as the type "
        "says, are answered with the text of `transient_timeout`. The reply after the last error is "
        "scored, or the first reply that calls nothing."
    ),
    prior_art="the paper's transient_timeout answers the first call alone; none known that counts the tries",
    injected_error=TIMEOUT,
    traits=("times", "scored"),
    otherwise_caught_by="transition_row_equals_clean",
)
class RepeatedTimeout(Injected):
    """So many calls are answered with the time-out; the reply after the last one is what is scored."""

    times: ClassVar[int]
    """How many calls are answered with the error."""
    scored: ClassVar[bool] = True
    """Whether its accuracy says anything; else tries alone are reported."""

    def spoiled_otherwise(self, clean: Sample, row: Sample) -> Sample:
        """A row whose request already speaks of the error."""
        last = row.messages[-1]
        changed = msgspec.structs.replace(last, content=f"{last.content} The last call timed out.")
        return msgspec.structs.replace(row, messages=(*row.messages[:-1], changed))


_GOLDEN = (Case(clean="table", reads=f"+ the first call is answered: {TIMEOUT}"),)


variant(
    RepeatedTimeout,
    """Timeout-1: the first call times out, as in the core; the series begins with it.""",
    code="transient_timeout_x1",
    order=621,
    display_name="Timeout-1",
    label="1 call times out",
    what_is_modified="The first tool call is answered with the time-out message.",
    times=1,
    series="timeouts",
    dose=1,
    golden=_GOLDEN,
)


variant(
    RepeatedTimeout,
    """Timeout-2: the second call times out too.""",
    code="transient_timeout_x2",
    order=622,
    display_name="Timeout-2",
    label="2 calls time out",
    what_is_modified="The first two tool calls are answered with the time-out message.",
    times=2,
    series="timeouts",
    dose=2,
    golden=_GOLDEN,
)


variant(
    RepeatedTimeout,
    """Timeout-9: nine calls time out; what counts is how often an agent tries, not whether it is right.""",
    code="transient_timeout_x9",
    order=623,
    display_name="Timeout-9",
    label="9 calls time out",
    what_is_modified="The first nine tool calls are answered with the time-out message; tries are counted.",
    times=9,
    scored=False,
    golden=_GOLDEN,
)
