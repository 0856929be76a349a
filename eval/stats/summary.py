"""Table 2 and the per-type tables of one model, each value with its interval, or a gap that says why.

The values are those of `values`. Two conventions for what is put around them. `cluster` (default): rows of
one clean_id are not independent, so whole clean_ids are resampled. `paper`: rows are, and clean and perturbed
are resampled apart; this one needs counts only, so it also serves the paper's own models.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal, Protocol

import msgspec
import numpy as np
from msgspec.structs import replace

from robustbench_tc import seeding, taxonomy

from . import values
from .intervals import (
    Interval,
    accuracy,
    cluster_mean,
    independent_difference,
    paired_difference,
    resampling,
    simulated,
)
from .lattice import Floats
from .runs import Outcomes
from .significance import holm, paired_p
from .values import METRICS, STATIC, Counts, Line, Values, codes_of

Convention = Literal["cluster", "paper"]

INDEPENDENT_DRAWS = 20_000
"""Draws for the paper convention's retention: the one value there that is not exact."""


class Flips(msgspec.Struct, frozen=True):
    """Anchored pairs of one type: clean right and perturbed wrong (lost), and back (gained)."""

    pairs: int
    lost: int
    gained: int
    p: float
    """Exact paired test of "as many lost as gained" (McNemar's, with one row per clean_id)."""
    p_holm: float
    """The same, corrected for looking at every type of the model."""


class TypeRow(msgspec.Struct, frozen=True):
    """One perturbation type. `delta` is against clean over all samples, `delta_matched` against the same."""

    accuracy: Interval
    delta: Interval | None
    delta_matched: Interval | None = None
    flips: Flips | None = None


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


class Intervals(Protocol):
    """What a convention puts around the values of some types together; the values are put in afterwards."""

    def accuracy(self, codes: Sequence[str]) -> Interval:
        """Around correct / n over all rows of the types."""
        ...

    def delta(self, codes: Sequence[str]) -> Interval:
        """Around the clean accuracy minus the types' accuracy."""
        ...

    def delta_matched(self, codes: Sequence[str]) -> Interval:
        """Around the mean over anchored pairs of clean correct − perturbed correct."""
        ...

    def retention(self, static: Sequence[Sequence[str]]) -> Interval:
        """Around 1 − mean Δ / clean accuracy; `static`: the types of each static component."""
        ...


def summarise(
    outcomes: Outcomes, convention: Convention = "cluster", *, allow_missing: bool = False
) -> Summary:
    """The summary of one run. With `allow_missing` values stand over the rows that are there."""
    found = values.from_counts(outcomes.counts(), outcomes.usable(allow_missing), partial=allow_missing)
    intervals: Intervals = Clustered(outcomes)
    if convention == "paper":  # repeats of a row are not independent in any convention
        intervals = Independent(found, intervals if outcomes.repeats > 1 else None)
    made = _summary(found, intervals, gaps(outcomes))
    flips = _flips(outcomes, found, made.types)
    types = {code: replace(row, flips=flips.get(code)) for code, row in made.types.items()}
    return replace(made, types=types)


def from_counts(counts: Mapping[str, tuple[int, int]], *, partial: bool = False) -> Summary:
    """The summary in the paper's convention from (correct, n) alone: without samples nothing is matched."""
    by_type = {code: Counts(*count) for code, count in counts.items()}
    found = values.from_counts(by_type, counts, partial=partial)
    missing = [code for code in (taxonomy.CLEAN, *codes_of("perturbed")) if code not in counts]
    return _summary(found, Independent(found), (f"no rows of {', '.join(missing)}",) if missing else ())


def _summary(found: Values, intervals: Intervals, lacks: tuple[str, ...]) -> Summary:
    def around(kind: str, name: str) -> Interval | None:
        value: float | None = getattr(found.lines[name], kind)
        if value is None:
            return None
        made: Interval = getattr(intervals, kind)(found.codes[name])
        return replace(made, value=value)

    made: dict[str, Interval | None] = {}
    for metric in METRICS:
        kind, _, name = metric.rpartition("_")
        if metric != "retention":
            made[metric] = around(kind or "accuracy", name)
        elif found.retention is not None:
            static = [found.codes[name] for name in STATIC]
            made[metric] = replace(intervals.retention(static), value=found.retention)
        else:
            made[metric] = None
    types = {
        code: TypeRow(rows, around("delta", code), around("delta_matched", code))
        for code in found.types
        if (rows := around("accuracy", code)) is not None
    }
    return Summary(found.lines, made, types, lacks)


class Clustered:
    """Whole clean_ids resampled, clean and perturbed together."""

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes

    @cached_property
    def _simulation(self) -> "Simulation":
        return Simulation(self._outcomes)

    def accuracy(self, codes: Sequence[str]) -> Interval:
        """The ratio of two sums over clean_ids."""
        return cluster_mean(*self._outcomes.columns(codes))

    def delta(self, codes: Sequence[str]) -> Interval:
        """Exact where every clean_id has as many rows, else simulated."""
        clean, clean_n = self._outcomes.columns([taxonomy.CLEAN])
        correct, n = self._outcomes.columns(codes)
        if clean_n.min() == clean_n.max() and n.min() == n.max():
            # Every clean_id has as many rows: Δ is a mean over clean_ids, and so exact.
            found = cluster_mean(clean * n[0] - correct * clean_n[0], n * clean_n[0], difference=True)
        else:
            found = self._simulation.statistic(delta_of(codes), difference=True)
        return replace(found, n=int(clean_n.sum() + n.sum()))

    def delta_matched(self, codes: Sequence[str]) -> Interval:
        return cluster_mean(*self._outcomes.matched(codes), difference=True)

    def retention(self, static: Sequence[Sequence[str]]) -> Interval:
        """Simulated: a ratio of means."""
        used = [taxonomy.CLEAN, *(code for codes in static for code in codes)]
        n = int(self._outcomes.columns(used)[1].sum())
        return replace(self._simulation.statistic(retention_of(static)), n=n)


class Independent:
    """Rows resampled as if they were independent, clean and perturbed apart."""

    def __init__(self, found: Values, repeated: Intervals | None = None) -> None:
        """`repeated`: what is put around Δ matched where rows were asked several times."""
        self._found, self._repeated = found, repeated

    def _pooled(self, codes: Iterable[str]) -> Counts:
        return sum((self._found.lines[code] for code in codes), Counts())

    def accuracy(self, codes: Sequence[str]) -> Interval:
        """From the pooled counts of the types."""
        return accuracy(*self._pooled(codes).of)

    def delta(self, codes: Sequence[str]) -> Interval:
        """Clean and perturbed as two independent samples, as in the paper."""
        return independent_difference(self._pooled([taxonomy.CLEAN]).of, self._pooled(codes).of)

    def delta_matched(self, codes: Sequence[str]) -> Interval:
        """From the pairs that were lost and gained; with repeats the clustered interval."""
        if self._repeated is not None:
            return self._repeated.delta_matched(codes)
        pooled = self._pooled(codes)
        return paired_difference(pooled.lost, pooled.gained, pooled.pairs)

    def retention(self, static: Sequence[Sequence[str]]) -> Interval:
        """Simulated from binomials of INDEPENDENT_DRAWS draws with a fixed seed."""
        generator = np.random.default_rng(seeding.rng(0, "independent retention").getrandbits(128))
        parts = [self._pooled([taxonomy.CLEAN]).of, *(self._pooled(codes).of for codes in static)]
        first, *rest = (generator.binomial(n, correct / n, INDEPENDENT_DRAWS) / n for correct, n in parts)
        with np.errstate(divide="ignore", invalid="ignore"):
            return simulated(np.mean(rest, axis=0) / first, math.nan, sum(n for _, n in parts))


Accuracies = Callable[[Iterable[str]], Floats]
Statistic = Callable[[Accuracies], Floats]


class Simulation:
    """Resampled counts of one run per type, drawn once; sums over several types are sums of columns."""

    def __init__(self, outcomes: Outcomes) -> None:
        self._types = outcomes.types
        counts = np.concatenate([outcomes.correct, outcomes.n], axis=1)
        self._draws = resampling(len(outcomes.clean_ids)).sums(counts)

    def statistic(self, compute: Statistic, *, difference: bool = False) -> Interval:
        """`compute` gets a function that gives accuracies, one per resample, over a list of types."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return simulated(compute(self._accuracy), math.nan, 0, difference=difference)

    def _accuracy(self, codes: Iterable[str]) -> Floats:
        at = [self._types.index(code) for code in codes]
        correct, n = (sum(self._draws[shift + i] for i in at) for shift in (0, len(self._types)))
        found: Floats = correct / n
        return found


def delta_of(codes: Iterable[str]) -> Statistic:
    """Clean accuracy minus accuracy over `codes`."""
    return lambda accuracy_of: accuracy_of([taxonomy.CLEAN]) - accuracy_of(codes)


def retention_of(static: Iterable[Iterable[str]]) -> Statistic:
    """1 − mean(Δ observation, Δ action, Δ reward) / clean, which is mean accuracy of the three / clean."""
    return lambda accuracy_of: (
        np.mean([accuracy_of(codes) for codes in static], axis=0) / accuracy_of([taxonomy.CLEAN])
    )


def _flips(outcomes: Outcomes, found: Values, codes: Iterable[str]) -> dict[str, Flips]:
    there = {code: found.lines[code] for code in codes if found.lines[code].pairs}
    p_values = {code: paired_p(outcomes.matched([code])[0]) for code in there}
    corrected = holm(p_values)
    return {
        code: Flips(line.pairs, line.lost, line.gained, p_values[code], corrected[code])
        for code, line in there.items()
    }


def gaps(outcomes: Outcomes) -> tuple[str, ...]:
    """What a run lacks, one line each."""
    lines, absent = [], []
    counts = outcomes.counts()
    for code in dict.fromkeys((taxonomy.CLEAN, *codes_of("perturbed"), *outcomes.types)):
        found = counts.get(code, Counts())
        if not found.n:
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
