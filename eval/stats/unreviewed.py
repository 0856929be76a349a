"""Proposed golden answers that nobody looked at: how many, and what the accuracy is without them.

`rbtc score` writes their ids into the run's record, from the dataset's `own.json`. Every table has this line.
"""

import msgspec

from robustbench_tc.io.numbers import percent

from .runs import Outcomes, Run
from .values import from_counts
from .verified import beside

HEADS = ("clean", "perturbed")


class Accuracy(msgspec.Struct, frozen=True):
    """An accuracy over all rows, and over those whose golden answers were reviewed."""

    over_all: float | None
    without: float | None
    """None where no row is left."""


class Unreviewed(msgspec.Struct, frozen=True, kw_only=True):
    """What a table over a run says of them."""

    answers: int
    of: int
    """Golden answers of the table in all."""
    lines: dict[str, Accuracy]
    """Clean and perturbed, those that the run has."""

    @property
    def line(self) -> str:
        """As the tables say it."""
        values = (
            f"{name} {percent(one.over_all)} with them, {percent(one.without)} without"
            for name, one in self.lines.items()
        )
        was = "was" if self.answers == 1 else "were"
        head = f"{self.answers} of {self.of} golden answers {was} proposed and never reviewed"
        return f"{head}: {'; '.join(values)}"


def unreviewed(run: Run, outcomes: Outcomes) -> Unreviewed | None:
    """What to say of a run's counts; None where every golden answer was reviewed, or none was proposed."""
    known = set(run.record.unreviewed or ()) & set(outcomes.clean_ids)
    if not known:
        return None
    before = from_counts(outcomes.counts(), outcomes.usable(True), partial=True).lines
    without = beside(outcomes, known, before)
    lines = {
        name: Accuracy(before[name].accuracy, without[name].accuracy) for name in HEADS if before[name].n
    }
    return Unreviewed(answers=len(known), of=len(outcomes.clean_ids), lines=lines)
