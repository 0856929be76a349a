"""What repeats of a run say: how often one of k answers is right, how often all k are, and how much answers
vary.

From the counts of right answers per row, over rows that have a verdict in every repeat. For c right of R
answers pass@k is 1 − C(R − c, k) / C(R, k) (Chen et al. 2021), pass^k is C(c, k) / C(R, k) (Yao et al. 2024,
tau-bench).
"""

import math

import msgspec
import numpy as np

from .intervals import Interval, of_estimate, shares
from .outcomes import Outcomes
from .values import HEADS, codes_of

MOST = 10
"""k up to which every pass@k is shown; beyond it that of all repeats."""


class Passed(msgspec.Struct, frozen=True):
    """The rows of clean, of a component, or of all core types."""

    rows: int
    left_out: int
    """Rows without a verdict in some repeat."""
    at: dict[int, Interval]
    """k → pass@k: at least one of k answers is right. k = 1 is the accuracy."""
    all: dict[int, Interval]
    """k → pass^k: all k answers are right."""
    within: float
    """Mean variance of the verdicts of one row, R / (R − 1) · c/R · (1 − c/R): 0 where every answer repeats,
    at most 0.5."""
    within_share: float | None
    """Its share of the variance of all verdicts; None where all verdicts are the same."""


class Repeated(msgspec.Struct, frozen=True):
    """A run that asked every row several times."""

    repeats: int
    lines: dict[str, Passed]
    """By HEADS, those with a row."""


def repeated(outcomes: Outcomes) -> Repeated | None:
    """None where every row was asked once, or no row has all its verdicts."""
    r = outcomes.repeats
    if r < 2:
        return None
    lines = {name: found for name in HEADS if (found := _passed(outcomes, codes_of(name))) is not None}
    return Repeated(r, lines) if lines else None


def _passed(outcomes: Outcomes, codes: tuple[str, ...]) -> Passed | None:
    r = outcomes.repeats
    at = [outcomes.types.index(code) for code in codes if code in outcomes.types]
    there = outcomes.n[:, at] == r
    rows = there.sum(axis=1)
    n = int(rows.sum())
    if not n:
        return None
    counts = outcomes.correct[:, at]
    asked = (outcomes.n[:, at] + outcomes.missing[:, at]) > 0
    tables = {}
    for k in sorted({*range(1, min(r, MOST) + 1), r}):
        chance = np.array([math.comb(c, k) / math.comb(r, k) for c in range(r + 1)])
        tables[k] = 1 - chance[::-1], chance  # c right of r: r − c are wrong

    def share(table: np.ndarray) -> Interval:
        values = np.where(there, table[np.minimum(counts, r)], 0.0)
        found = shares(outcomes.by_unit(values.sum(axis=1)), outcomes.by_unit(rows))
        return of_estimate(found, n, "hull")

    mean = counts[there] / r
    within = float((mean * (1 - mean)).mean()) * r / (r - 1)
    total = float(mean.mean() * (1 - mean.mean()))
    return Passed(
        rows=n,
        left_out=int(asked.sum()) - n,
        at={k: share(one) for k, (one, _) in tables.items()},
        all={k: share(every) for k, (_, every) in tables.items()},
        within=within,
        within_share=min(within / total, 1.0) if total else None,
    )
