"""The subset `verified`: rows whose golden answers somebody could know, and what an honest model can reach.

A sample of which no golden answer can be taken from what is said, defined or known is flagged in the dataset
(docs/answerable.md). Every verdict carries the flag, so a scored run says by itself which samples these are.
"""

from collections.abc import Collection, Mapping

import msgspec

from .runs import Outcomes
from .values import HEADS, Line, from_counts


class Beside(msgspec.Struct, frozen=True):
    """One line of a table without the rows that nobody could answer."""

    correct: int
    n: int
    accuracy: float | None
    """None where the line of all rows has none, or no row is left."""
    left_out: int
    """Rows that nobody could answer."""
    best: float | None
    """The accuracy over all rows of a model that is right wherever one can be."""


def beside(outcomes: Outcomes, without: Collection[str], lines: Mapping[str, Line]) -> dict[str, Beside]:
    """Clean, perturbed and the components without these clean ids; `lines` are those of all rows."""
    left = outcomes.without(without)
    found = from_counts(left.counts(), left.usable(True), partial=True).lines
    made = {}
    for name in HEADS:
        all_rows, some = lines[name], found[name]
        made[name] = Beside(
            correct=some.correct,
            n=some.n,
            accuracy=None if all_rows.accuracy is None or not some.n else some.correct / some.n,
            left_out=all_rows.n - some.n,
            best=None if all_rows.accuracy is None else some.n / all_rows.n,
        )
    return made
