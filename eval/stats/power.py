"""The minimum detectable effect of a run, or of a comparison of two."""

from collections.abc import Mapping
from statistics import NormalDist, median

import msgspec

from robustbench_tc.io.numbers import counted

from .confidence import Z
from .intervals import Interval
from .runs import Outcomes

SEEN = 0.8
"""How often an effect of that size is seen: its interval leaves out 0."""

FACTOR = (Z + NormalDist().inv_cdf(SEEN)) / Z
"""Half-widths of a 95 % interval: 1.43."""


class Power(msgspec.Struct, frozen=True):
    """What rests on how many samples, and the effects that could have been seen, as shares."""

    samples: int
    """clean_ids (of own cases: cases) with a verdict."""
    repeats: int
    smallest: dict[str, float]
    """Line → the smallest effect; of single types the median (`type`)."""

    @property
    def line(self) -> str:
        """For people: `minimum detectable effect in points (80 % power; 199 samples, 1 repeat): clean 3.1`"""
        effects = ", ".join(
            f"{'a single type' if name == 'type' else name} {100 * effect:.1f}"
            for name, effect in self.smallest.items()
        )
        asked = f"{counted(self.samples, 'sample')}, {counted(self.repeats, 'repeat')}"
        return f"minimum detectable effect in points (80 % power; {asked}): {effects}"


def power(
    lines: Mapping[str, Interval | None], types: Mapping[str, Interval | None], *runs: Outcomes
) -> Power | None:
    """From the intervals of the effects; None where there is none.

    The reach of an interval is that of the effects found: where a run holds few flips, small effects would
    have been seen.
    """
    smallest = {name: smallest_effect(found) for name, found in lines.items() if found is not None}
    of_types = [smallest_effect(found) for found in types.values() if found is not None]
    if of_types:
        smallest["type"] = median(of_types)
    if not smallest:
        return None
    return Power(
        samples=min(int((one.by_unit(one.n.sum(axis=1)) > 0).sum()) for one in runs),
        repeats=min(one.repeats for one in runs),
        smallest=smallest,
    )


def smallest_effect(found: Interval) -> float:
    """The effect whose interval leaves out 0 four times out of five, if it is as wide as this one; at most
    1."""
    return min(1.0, FACTOR * found.half_width)
