"""Table 2 and the per-type tables of one model, each value with its interval, or a gap that says why.

The values are those of `values`. Two conventions for what is put around them. `cluster` (default): rows of
one clean_id are not independent, so clean_ids are what is counted (`intervals`). `paper`: rows are, and
clean and perturbed are resampled apart; this one needs counts only, so it also serves the paper's own models.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist, median
from typing import Literal, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from robustbench_tc import seeding, taxonomy
from robustbench_tc.io.numbers import counted

from . import values
from .intervals import (
    Estimate,
    Interval,
    Z,
    accuracy,
    combined,
    difference,
    independent_difference,
    of_estimate,
    paired_difference,
    quotient,
    shares,
    simulated,
)
from .lattice import Floats, Ints
from .outcomes import Outcomes
from .significance import Loss, corrected, paired_p
from .values import (
    HEADS,
    METRICS,
    RETENTIONS,
    Counts,
    Line,
    Values,
    beyond_core,
    codes_of,
    leading,
    pack_of,
)

Convention = Literal["cluster", "paper"]

Codes = TypeVar("Codes")
"""Types, or the types of each component."""

RETENTION_MOST = 10.0
"""The largest upper end of retention that is shown."""

PAPER_COVERS = (
    "It takes the rows of a sample as independent: around Δ matched of a component with 6 rows a sample it "
    "holds the true value in only .69 to .79 of runs instead of .95 (docs/statistics.md)."
)
"""What every place says that shows the paper's convention."""

INDEPENDENT_DRAWS = 20_000
"""Draws for the paper convention's retention: the one value there that is not exact."""


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
    # the effect whose interval leaves out 0 four times out of five, if it is as wide as this one
    smallest, of_types = (
        {name: min(1.0, FACTOR * found.half_width) for name, found in of.items() if found is not None}
        for of in (lines, types)
    )
    if of_types:
        smallest["type"] = median(of_types.values())
    if not smallest:
        return None
    return Power(
        samples=min(int((one.by_unit(one.n.sum(axis=1)) > 0).sum()) for one in runs),
        repeats=min(one.repeats for one in runs),
        smallest=smallest,
    )


class TypeRow(msgspec.Struct, frozen=True):
    """One perturbation type. `delta` is against clean over all samples, `delta_matched` against the same."""

    accuracy: Interval
    delta: Interval | None
    delta_matched: Interval | None = None
    flips: Loss | None = None
    """Anchored pairs that were lost and gained, tested within the type's pack."""


class Summary(msgspec.Struct, frozen=True):
    """Everything the tables show of one model. A value that would rest on missing rows is None."""

    lines: dict[str, Line]
    """Counts and values of clean, perturbed, the components and every type."""
    values: dict[str, Interval | None]
    """By METRICS."""
    types: dict[str, TypeRow]
    """By type code, those whose rows are all there."""
    gaps: tuple[str, ...]
    """What is missing, one line each."""
    power: Power | None = None
    """The smallest loss (Δ matched) that the run could have seen; None where there are no pairs."""


def summarise(
    outcomes: Outcomes, convention: Convention = "cluster", *, allow_missing: bool = False
) -> Summary:
    """The summary of one run. With `allow_missing` values stand over the rows that are there."""
    found = values.from_counts(outcomes.counts(), outcomes.usable(allow_missing), partial=allow_missing)
    clustered = Clustered(outcomes, found.codes.values())
    if convention == "paper":  # repeats of a row are not independent in any convention
        made = _summary(
            found, Independent(found, clustered if outcomes.repeats > 1 else None), gaps(outcomes)
        )
    else:
        made = _summary(found, clustered, gaps(outcomes))
    pairs = {
        code: (line.pairs, line.lost, line.gained, paired_p(outcomes.matched([code])[0]))
        for code in made.types
        if (line := found.lines[code]).pairs
    }
    flips = corrected(pairs, pack_of)
    types = {code: replace(row, flips=flips.get(code)) for code, row in made.types.items()}
    detectable = power(
        {name: made.values[f"delta_matched_{name}"] for name in taxonomy.COMPONENTS},
        {code: made.types[code].delta_matched for code in leading(made.types)},
        outcomes,
    )
    return replace(made, types=types, power=detectable)


def from_counts(counts: Mapping[str, tuple[int, ...]], *, partial: bool = False) -> Summary:
    """The summary in the paper's convention from the fields of `Counts`; from (correct, n) alone nothing is
    matched."""
    by_type = {code: Counts(*count) for code, count in counts.items()}
    found = values.from_counts(by_type, counts, partial=partial)
    missing = [code for code in (taxonomy.CLEAN, *codes_of("perturbed")) if code not in counts]
    return _summary(found, Independent(found), (f"no rows of {', '.join(missing)}",) if missing else ())


def around(value: float | None, interval: Callable[[Codes], Interval], codes: Codes) -> Interval | None:
    """A value with the interval of these types; None where there is no value."""
    return None if value is None else replace(interval(codes), value=value)


def _summary(found: Values, intervals: "Clustered | Independent", lacks: tuple[str, ...]) -> Summary:
    def of_line(kind: str, name: str) -> Interval | None:
        return around(getattr(found.lines[name], kind), getattr(intervals, kind), found.codes[name])

    made: dict[str, Interval | None] = {}
    for metric in METRICS:
        kind, _, name = metric.rpartition("_")
        if metric in RETENTIONS:
            value = values.retention(found.lines, RETENTIONS[metric])
            made[metric] = around(value, intervals.retention, [found.codes[c] for c in RETENTIONS[metric]])
        else:
            made[metric] = of_line(kind or "accuracy", name)
    types = {
        code: TypeRow(rows, of_line("delta", code), of_line("delta_matched", code))
        for code in found.types
        if (rows := of_line("accuracy", code)) is not None
    }
    return Summary(found.lines, made, types, lacks)


class Clustered:
    """Whole clean_ids are the units, clean and perturbed together."""

    def __init__(self, outcomes: Outcomes, lines: Iterable[Sequence[str]] = ()) -> None:
        """`lines`: the types that will be asked for together; worked out in one go, which is quicker."""
        self._outcomes = outcomes
        self._kept = {tuple(codes): None for codes in (*lines, (taxonomy.CLEAN,))}
        # the accuracy of each line that has a row, of the clean rows of its pairs, of their perturbed rows
        columns = (outcomes.columns, outcomes.anchors, outcomes.anchored)
        self._lines, self._anchors, self._paired = map(self._worked_out, columns)

    def _worked_out(
        self, columns: Callable[[Sequence[str]], tuple[Ints, Ints]]
    ) -> dict[tuple[str, ...], Estimate]:
        found = {codes: columns(codes) for codes in self._kept}
        there = [codes for codes, (_, rows) in found.items() if rows.any()]
        worked_out: dict[tuple[str, ...], Estimate] = {}
        # The core apart from the rest: the last digit of a sum depends on what is summed beside it.
        for beyond in (False, True):
            if part := [codes for codes in there if beyond_core(codes) is beyond]:
                made = shares(*(np.stack([found[codes][side] for codes in part]) for side in (0, 1)))
                worked_out |= {codes: made.at(i) for i, codes in enumerate(part)}
        return worked_out

    def accuracy(self, codes: Sequence[str]) -> Interval:
        return of_estimate(self._lines[tuple(codes)], self._rows(codes), "hull")

    def _rows(self, codes: Sequence[str]) -> int:
        return int(self._outcomes.columns(codes)[1].sum())

    def delta(self, codes: Sequence[str]) -> Interval:
        found = difference(self._lines[(taxonomy.CLEAN,)], self._lines[tuple(codes)])
        return of_estimate(found, self._rows([taxonomy.CLEAN]) + self._rows(codes), "mover")

    def delta_matched(self, codes: Sequence[str]) -> Interval:
        found = difference(self._anchors[tuple(codes)], self._paired[tuple(codes)])
        lost, pairs = self._outcomes.matched(codes)
        return of_estimate(found, int(pairs.sum()), "mover", paired_p(lost))

    def retention(self, components: Sequence[Sequence[str]]) -> Interval:
        """Ends above RETENTION_MOST are left at it: a clean accuracy near 0 bounds nothing."""
        parts = [self._lines[tuple(codes)] for codes in components]
        above = combined(parts, [1 / len(parts)] * len(parts))
        n = sum(self._rows(codes) for codes in ([taxonomy.CLEAN], *components))
        found = quotient(above, self._lines[(taxonomy.CLEAN,)])
        value, low, high = found if found is not None else (math.nan, 0.0, math.inf)
        return Interval(value, max(low, 0.0), min(high, max(value, RETENTION_MOST)), n, "fieller")


class Independent:
    """Rows resampled as if they were independent, clean and perturbed apart."""

    def __init__(self, found: Values, repeated: Clustered | None = None) -> None:
        """`repeated`: what is put around Δ matched where rows were asked several times."""
        self._found, self._repeated = found, repeated
        self._generator = np.random.default_rng(seeding.rng(0, "independent retention").getrandbits(128))
        self._draws: dict[tuple[str, ...], Floats] = {}

    def _pooled(self, codes: Iterable[str]) -> Counts:
        return sum((self._found.lines[code] for code in codes), Counts())

    def accuracy(self, codes: Sequence[str]) -> Interval:
        """From the pooled counts of the types."""
        return accuracy(*self._pooled(codes).tally)

    def delta(self, codes: Sequence[str]) -> Interval:
        """Clean and perturbed as two independent samples, as in the paper."""
        return independent_difference(self._pooled([taxonomy.CLEAN]).tally, self._pooled(codes).tally)

    def delta_matched(self, codes: Sequence[str]) -> Interval:
        """From the pairs that were lost and gained; with repeats the clustered interval."""
        if self._repeated is not None:
            return self._repeated.delta_matched(codes)
        pooled = self._pooled(codes)
        return paired_difference(pooled.lost, pooled.gained, pooled.pairs)

    def retention(self, components: Sequence[Sequence[str]]) -> Interval:
        """Simulated from binomials of INDEPENDENT_DRAWS draws with a fixed seed."""
        first, *rest = (self._drawn(tuple(codes)) for codes in ([taxonomy.CLEAN], *components))
        n = sum(self._pooled(codes).n for codes in ([taxonomy.CLEAN], *components))
        with np.errstate(divide="ignore", invalid="ignore"):
            return simulated(np.mean(rest, axis=0) / first, math.nan, n)

    def _drawn(self, codes: tuple[str, ...]) -> Floats:
        """Resampled accuracies, drawn once: both retentions rest on most of them."""
        if codes not in self._draws:
            correct, n = self._pooled(codes).tally
            self._draws[codes] = self._generator.binomial(n, correct / n, INDEPENDENT_DRAWS) / n
        return self._draws[codes]


def gaps(outcomes: Outcomes) -> tuple[str, ...]:
    """What a run lacks, one line each."""
    lines, absent = [], []
    counts = outcomes.counts()
    heads = (code for head in outcomes.heads[:2] for code in codes_of(head))
    for code in dict.fromkeys((*heads, *outcomes.types)):
        found = counts.get(code, Counts())
        control = taxonomy.known(code) and taxonomy.get(code).control
        if control and control not in outcomes.types and found.missing:
            lines.append(f"{code}: no value, as its control {control} was not asked")
        elif not found.n:
            absent.append(code)
        elif found.missing:
            lines.append(f"{code}: {found.missing} of {found.missing + found.n} rows have no verdict")
    if absent:
        lines.insert(0, f"no rows of {', '.join(absent)}")
    if outcomes.unaccounted:
        lines.append(f"{outcomes.unaccounted} predictions of the run were never made: it is unfinished")
    clean = counts.get(taxonomy.CLEAN, Counts())
    if clean.n and not clean.correct:
        lines.append("retention is not defined: no clean answer is right")
    return tuple(lines)


# --- repeats: how often one of k answers is right, how often all k are, how much answers vary -------------
#
# From the counts of right answers per row, over rows that have a verdict in every repeat. For c right of R
# answers pass@k is 1 − C(R − c, k) / C(R, k) (Chen et al. 2021), pass^k is C(c, k) / C(R, k) (Yao et al.
# 2024, tau-bench).

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
    outcome_consistency: Interval
    """Mean of (2 · c/R − 1)² (Rabanser et al. 2026, C_out): 1 where every answer repeats, 0 where every row
    is right in half of its repeats. A fair coin has 1/R."""


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
        outcome_consistency=share((2 * np.arange(r + 1) / r - 1) ** 2),
    )
