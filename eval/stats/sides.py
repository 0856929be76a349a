"""Rows beside what they are held against: the one drop that summary, report, gate, badge and board tell.

The unit is the case (a clean id; of own cases with several turns all of them). The drop is Δ matched: right
answers before minus right answers after, over all pairs, with its 95 % interval over whole cases.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from robustbench_tc import taxonomy

from .confidence import difference, shares
from .intervals import Interval, of_estimate
from .lattice import Ints, sign_flips
from .runs import Outcomes
from .significance import paired_p

RIGHT = 10
"""Right cases before below which no drop is ruled out."""


class Sides(msgspec.Struct, frozen=True):
    """Pairs of answers by case: [cases] right before, right after, pairs. Every case has a pair."""

    before: Ints
    after: Ints
    pairs: Ints
    right: int
    """Cases that are right before: on clean by the majority of repeats, else by the shares of their rows."""

    @property
    def accuracy_before(self) -> float:
        """Share of the pairs that are right before."""
        return int(self.before.sum()) / int(self.pairs.sum())

    @property
    def accuracy_after(self) -> float:
        """Share of the pairs that are right after."""
        return int(self.after.sum()) / int(self.pairs.sum())

    @property
    def lost(self) -> float:
        """The drop without its interval."""
        return int((self.before - self.after).sum()) / int(self.pairs.sum())

    @property
    def p_above(self) -> float:
        """Exact one-sided p of "no drop": each case's two sides could be swapped."""
        drops = self.before - self.after
        observed = int(drops.sum())
        if observed <= 0:
            return 1.0
        null = sign_flips(drops)
        return min(1.0, float(null.p[observed - null.start :].sum()))

    def factor(self, drop: Interval, room: float) -> float:
        """How many times as many cases settle whether `drop` is at most `room`, if what was seen goes on.

        Infinite where nothing was right before.
        """
        if not self.right:
            return math.inf
        ways = [(drop.high - drop.value) / (room - drop.value)] if room > drop.value else []
        if drop.value > 0:
            ways.append((drop.value - drop.low) / drop.value)
        return max(RIGHT / self.right, min(ways) ** 2, 1.0)


def drops(sides: Sequence[Sides]) -> list[Interval]:
    """Of each before − after, with its 95 % interval and the exact two-sided p of "no drop"."""
    if not sides:
        return []
    most = max(len(one.pairs) for one in sides)
    before, after, pairs = (  # cases without a pair take no part
        np.stack([np.pad(getattr(one, name), (0, most - len(one.pairs))) for one in sides])
        for name in ("before", "after", "pairs")
    )
    found = difference(shares(before, pairs), shares(after, pairs))
    made = (
        of_estimate(found.at(at), int(one.pairs.sum()), "mover", paired_p(one.before - one.after))
        for at, one in enumerate(sides)
    )
    return [msgspec.structs.replace(made, value=one.lost) for made, one in zip(made, sides, strict=True)]


def own_clean(outcomes: Outcomes, codes: Sequence[str]) -> Sides | None:
    """Rows of `codes` beside the run's own clean rows, repeat by repeat; None where there is no pair."""
    before, pairs = outcomes.anchors(codes)
    right = int((2 * before > pairs).sum())
    return _sides(before, outcomes.anchored(codes)[0], pairs, right)


def at_worst(outcomes: Outcomes, codes: Sequence[str]) -> Sides | None:
    """The same with every missing pair as right on its clean row and wrong on its perturbed one."""
    if outcomes.types[0] != taxonomy.CLEAN:
        return None
    at = [outcomes.types.index(code) for code in codes if code in outcomes.types]
    asked = outcomes.n + outcomes.missing
    wanted = np.where(asked[:, :1] > 0, asked[:, at], 0)
    there = outcomes.pairs[:, at] + outcomes.unmet[:, at]
    absent = outcomes.by_unit(np.maximum(wanted - there, 0).sum(axis=1))
    before, pairs = outcomes.anchors(codes)
    return _sides(before + absent, outcomes.anchored(codes)[0], pairs + absent, 0)


def other_run(base: Outcomes, new: Outcomes, codes: Sequence[str]) -> Sides | None:
    """Rows of `codes` in both runs, those that both answered as often as they were asked.

    Repeats of different numbers are put over their common multiple.
    """
    at = [new.types.index(code) for code in codes if code in new.types]
    both = ((base.n == base.answers) & (new.n == new.answers))[:, at] * (new.answers // new.repeats)[at]
    unit = math.lcm(base.repeats, new.repeats)
    before = np.where(both, base.correct[:, at] * (unit // base.repeats), 0)
    after = np.where(both, new.correct[:, at] * (unit // new.repeats), 0)
    first, second, pairs = (new.by_unit(one.sum(axis=1)) for one in (before, after, both * unit))
    right = int((first / np.maximum(pairs, 1)).sum() + 1e-9)
    return _sides(first, second, pairs, right)


def _sides(before: Ints, after: Ints, pairs: Ints, right: int) -> Sides | None:
    there = pairs > 0
    return Sides(before[there], after[there], pairs[there], right) if there.any() else None
