"""A regression gate: did the agent lose more than it may, and is that more than chance?

The unit is the case (a clean_id; of own cases with several turns all of them): its rows of a component are
averaged, and the average of the cases is the drop. Against its own clean rows or against another run, a
component fails where the drop that was seen is above what is allowed *and* the exact one-sided test of "no
drop" rejects, Holm-corrected over the components that were asked for. Demanding a proof of "no drop" instead
would stop many unchanged agents; how often this one does, and what it finds, is simulated
(`benchmarks/gate.py`, docs/gate.md).
"""

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Literal

import msgspec
import numpy as np

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError, unknown

from .confidence import Z, difference, shares
from .intervals import Interval, of_estimate
from .lattice import Floats, Ints, sign_flips
from .runs import Outcomes
from .significance import holm, signs_above_p

LEVEL = 0.05
MAX_DROP = 0.05
SEEN = NormalDist().inv_cdf(0.8)
EXACT = 2_000_000
"""Values of the null distribution up to which it is worked out; beyond, sign patterns are drawn."""

Outcome = Literal["pass", "fail", "not shown"]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One component (or `clean`, against another run)."""

    name: str
    outcome: Outcome
    """`not shown`: no failure, but with --strict the interval reaches above what is allowed, or rows are
    missing."""
    cases: int
    rows: int
    """Pairs of rows, repeats included."""
    before: float
    """Accuracy of the clean rows, or of the run that this one is held against; cases weigh the same."""
    after: float
    drop: Interval
    """before − after, with its 95 % interval."""
    max_drop: float
    p: float
    """Exact one-sided test of "no drop"."""
    p_holm: float
    discordance: float
    """Share of the pairs whose two sides differ."""
    could_miss: float
    """A drop that a gate of this size finds four times out of five, as a share: smaller ones may pass."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate says."""

    outcome: Outcome
    lines: tuple[Line, ...]
    strict: bool
    model: str
    run: str
    against: str | None
    """The other run; None: the run's own clean rows."""
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 2 not shown."""
        return {"pass": 0, "fail": 1, "not shown": 2}[self.outcome]


class Sides(msgspec.Struct, frozen=True):
    """Both sides of a component: [cases] right answers and pairs, where a case has any."""

    before: Floats
    after: Floats
    pairs: Ints
    changed: float
    """Pairs whose sides differ."""

    @property
    def differences(self) -> Ints | None:
        """The cases' drops over their common denominator; None where that has too many values to count."""
        unit = math.lcm(*(int(n) for n in np.unique(self.pairs)))
        drops = self.before - self.after
        total = float(np.abs(drops / self.pairs).sum()) * unit
        if not total < EXACT:
            return None
        found: Ints = np.rint(drops * (unit // self.pairs)).astype(np.int64)
        return found


def own_clean(outcomes: Outcomes, codes: Sequence[str]) -> Sides | None:
    """Rows of `codes` beside the run's own clean rows, repeat by repeat; None where there is no pair."""
    before, pairs = outcomes.anchors(codes)
    after, _ = outcomes.anchored(codes)
    at = [outcomes.types.index(code) for code in codes if code in outcomes.types]
    changed = float((outcomes.lost + outcomes.gained)[:, at].sum())
    return _sides(before, after, pairs, changed)


def other_run(base: Outcomes, new: Outcomes, codes: Sequence[str]) -> Sides | None:
    """Rows of `codes` in both runs, those that both answered as often as they were asked.

    Repeats of different numbers are put over their common multiple.
    """
    at = [new.types.index(code) for code in codes if code in new.types]
    both = (base.n[:, at] == base.repeats) & (new.n[:, at] == new.repeats)
    unit = math.lcm(base.repeats, new.repeats)
    before = np.where(both, base.correct[:, at] * (unit // base.repeats), 0)
    after = np.where(both, new.correct[:, at] * (unit // new.repeats), 0)
    changed = float(np.abs(before - after).sum())
    sums = [new.by_unit(one.sum(axis=1)) for one in (before, after, both * unit)]
    return _sides(sums[0], sums[1], sums[2], changed)


def _sides(before: Ints, after: Ints, pairs: Ints, changed: float) -> Sides | None:
    there = pairs > 0
    if not there.any():
        return None
    return Sides(before[there].astype(float), after[there].astype(float), pairs[there], changed)


def drop_p(sides: Sides) -> float:
    """One-sided p of the mean drop: each case's two sides could be swapped.

    Exact where the null distribution can be worked out, else from seeded sign patterns.
    """
    drops = sides.differences
    if drops is None:
        return signs_above_p((sides.before - sides.after) / sides.pairs)
    observed = int(drops.sum())
    if observed <= 0:
        return 1.0
    null = sign_flips(drops)
    return min(1.0, float(null.p[observed - null.start :].sum()))


def decide(
    sides: Mapping[str, Sides], allowed: Mapping[str, float], *, strict: bool = False
) -> tuple[Line, ...]:
    """The lines of a verdict; `allowed`: by the same names the largest drop that passes."""
    p_values = {name: drop_p(one) for name, one in sides.items()}
    corrected = holm(p_values)
    return tuple(
        _line(name, one, allowed[name], p_values[name], corrected[name], len(sides), strict)
        for name, one in sides.items()
    )


def _line(
    name: str, sides: Sides, max_drop: float, p: float, p_holm: float, lines: int, strict: bool
) -> Line:
    ones = np.ones(len(sides.pairs))
    before, after = shares(sides.before / sides.pairs, ones), shares(sides.after / sides.pairs, ones)
    drop = of_estimate(difference(before, after), len(ones), "mover")
    failed = drop.value > max_drop + 1e-12 and p_holm <= LEVEL
    shown = drop.high < max_drop
    return Line(
        name=name,
        outcome="fail" if failed else "not shown" if strict and not shown else "pass",
        cases=len(ones),
        rows=int(sides.pairs.sum()),
        before=float(before.value),
        after=float(after.value),
        drop=drop,
        max_drop=max_drop,
        p=p,
        p_holm=p_holm,
        discordance=sides.changed / float(sides.pairs.sum()),
        could_miss=_could_miss(drop, max_drop, lines),
    )


def _could_miss(drop: Interval, max_drop: float, lines: int) -> float:
    """What is found four times out of five: it has to be significant, and to be seen above `max_drop`."""
    deviation = drop.half_width / Z
    significant = (NormalDist().inv_cdf(1 - LEVEL / lines) + SEEN) * deviation
    return min(1.0, max(significant, max_drop + SEEN * deviation))


def unpassed(line: Line) -> Line:
    """A line where rows are missing: a drop that was seen counts, a pass does not."""
    return msgspec.structs.replace(line, outcome="not shown") if line.outcome == "pass" else line


def outcome_of(lines: Sequence[Line]) -> Outcome:
    """The worst of the lines."""
    found = {line.outcome for line in lines}
    return "fail" if "fail" in found else "not shown" if "not shown" in found else "pass"


def limits(there: Sequence[str], asked: Mapping[str, float | None], max_drop: float) -> dict[str, float]:
    """What each component may drop: of those asked for, else of all that are there. Raises UserError."""
    for name, value in (("max-drop", max_drop), *asked.items()):
        if value is not None and not 0 <= value < 1:
            raise UserError(f"{name} {value:g}: a drop is a share of the cases: give 0 or more, less than 1")
    known = (taxonomy.CLEAN, *taxonomy.COMPONENTS)
    for name in asked:
        if name not in known:
            raise unknown("component", name, known)
        if name not in there:
            raise UserError(f"the run has no pair of rows for {name}: it has {', '.join(there) or 'none'}")
    if not asked:
        return dict.fromkeys(there, max_drop)
    return {name: max_drop if value is None else value for name, value in asked.items()}
