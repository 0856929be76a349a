"""What the pack abstention measures: whether a model calls where a call is due, and only there.

The headline is balanced decision accuracy: the mean of the share right where a call is due and where none is,
types weighing the same within each. Which call it is does not count here. A reply that nobody can read is
wrong on both sides.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from robustbench_tc import taxonomy

from ..intervals import Estimate, Interval, combined, of_estimate, shares
from ..lattice import Ints
from . import Given, Table

PACKS = ("abstention",)

DECISIONS = ("called", "asked", "refused", "answered", "unparsable")
"""Flags of the verdicts (`eval.score.decision`)."""

DECLINES = frozenset({"asked", "refused", "answered"})


class Decided(NamedTuple):
    """The replies to the rows of one type."""

    rows: Ints
    """[units]"""
    right: Ints
    """[units]: those that decide rightly, whether to call."""
    outcomes: dict[str, int]
    """Decision → replies."""

    @property
    def n(self) -> int:
        return int(self.rows.sum())


def tables(given: Given) -> Iterable[Table]:
    """Balanced decision accuracy with the types behind it, and what the replies decided."""
    found = {code: one for code in given.codes("abstention") if (one := decided(given, code)).n}
    if found:
        yield _decisions(found)
        yield Table(
            name="abstention_outcomes",
            title="What the replies decided",
            columns=("type", "n", *DECISIONS),
            rows=tuple(
                (code, one.n, *(one.outcomes[name] / one.n for name in DECISIONS))
                for code, one in found.items()
            ),
            note="Shares of the replies. Called: a tool other than the control tools. Asked: ask_to_user, or "
            "words whose last sentence is a question. Refused: words that decline or say what is missing. "
            "Answered: other words. Unparsable: nothing that can be read.",
        )


def decided(given: Given, code: str) -> Decided:
    """What was decided in the type's rows, over the rows of the subset that have a verdict."""
    outcomes, due = given.outcomes, taxonomy.get(code).no_call == "wrong"
    places = {clean_id: place for place, clean_id in enumerate(outcomes.clean_ids)}
    rows, right = np.zeros((2, len(places)), np.int64)
    counts = dict.fromkeys(DECISIONS, 0)
    for one in given.answers(code):
        decision = next((name for name in DECISIONS if name in one.flags), None)
        if decision is not None:
            counts[decision] += 1
            rows[places[one.clean_id]] += 1
            right[places[one.clean_id]] += decision == "called" if due else decision in DECLINES
    return Decided(outcomes.by_unit(rows), outcomes.by_unit(right), counts)


def balanced(found: dict[str, Decided]) -> tuple[Interval | None, ...]:
    """Balanced decision accuracy, the share right where a call is due, and where none is."""
    due, none = (
        [one for code, one in found.items() if taxonomy.get(code).no_call == said]
        for said in ("wrong", "right")
    )
    sides = [_mean(side) for side in (due, none) if side]
    both = None
    if due and none:
        value = (_share(due) + _share(none)) / 2
        estimate = combined([one for one, _ in sides], (0.5, 0.5))
        both = of_estimate(estimate._replace(value=np.array(float(value))), sum(n for _, n in sides), "mover")
    return both, *(
        of_estimate(*_mean(side), "hull" if len(side) == 1 else "mover") if side else None
        for side in (due, none)
    )


def _share(side: Sequence[Decided]) -> Fraction:
    return sum((Fraction(int(one.right.sum()), one.n) for one in side), Fraction(0)) / len(side)


def _mean(side: Sequence[Decided]) -> tuple[Estimate, int]:
    """The mean share right over types, clean ids as clusters, and the rows behind it."""
    parts = [shares(one.right, one.rows) for one in side]
    found = combined(parts, [1 / len(parts)] * len(parts)) if len(parts) > 1 else parts[0]
    low, high = np.maximum(found.low, 0.0), np.minimum(found.high, 1.0)
    return found._replace(value=np.array(float(_share(side))), low=low, high=high), sum(o.n for o in side)


def _decisions(found: dict[str, Decided]) -> Table:
    measures = ("balanced decision accuracy", "where a call is due", "where none is")
    due = {"wrong": "a call", "right": "no call"}
    return Table(
        name="abstention_decisions",
        title="Whether it calls where a call is due, and only there",
        columns=("measure", "due", "n", "right decisions"),
        rows=(
            *((name, None, one and one.n, one) for name, one in zip(measures, balanced(found), strict=True)),
            *(
                (
                    code,
                    due.get(taxonomy.get(code).no_call, "no call"),
                    one.n,
                    of_estimate(shares(one.right, one.rows), one.n, "hull"),
                )
                for code, one in found.items()
            ),
        ),
        note="Balanced decision accuracy is the mean of the two sides, and a side that of its types, each "
        "weighing the same; who always calls has one half, and so has who never does. Which call it is does "
        "not count. A reply that cannot be read (cut off, empty, a call that broke) is wrong on both sides.",
    )
