"""Table 2 and the per-type tables of one model, each value with its interval, or a gap that says why.

Two conventions. `cluster` (default): rows of one clean_id are not independent, so whole clean_ids are
resampled. `paper`: rows are, and clean and perturbed are resampled apart; this one needs counts only, so it
also serves the paper's own models.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from robustbench_tc import seeding, taxonomy

from .intervals import (
    Interval,
    accuracy,
    cluster_mean,
    independent_difference,
    paired_difference,
    resampling,
    simulated,
)
from .lattice import Floats, Ints
from .runs import Outcomes
from .significance import holm, paired_p

Convention = Literal["cluster", "paper"]
Counts = Mapping[str, tuple[int, int]]
"""type code (and `clean`) → (correct, n)"""

INDEPENDENT_DRAWS = 20_000
"""Draws for the paper convention's retention: the one value there that is not exact."""

STATIC = taxonomy.COMPONENTS[:3]
"""The components that retention averages over: transition is not one of them."""

METRICS = (
    "clean",
    "perturbed",
    *(f"delta_{name}" for name in taxonomy.COMPONENTS),
    "retention",
    *(f"accuracy_{name}" for name in taxonomy.COMPONENTS),
    *(f"delta_matched_{name}" for name in taxonomy.COMPONENTS),
)
"""Table 2's columns, retention, and what lies behind them. A positive Δ is a loss."""


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

    values: dict[str, Interval | None]
    """By METRICS."""
    types: dict[str, TypeRow]
    """By type code, those whose rows are all there."""
    gaps: tuple[str, ...]
    """What is missing, one line each."""


def codes_of(component: str) -> tuple[str, ...]:
    """The core types of a component, or of all for `perturbed`."""
    return tuple(t.code for t in taxonomy.types() if component in ("perturbed", t.component))


def summarise(
    outcomes: Outcomes, convention: Convention = "cluster", *, allow_missing: bool = False
) -> Summary:
    """The summary of one run. With `allow_missing` values stand over the rows that are there."""
    usable = outcomes.usable(allow_missing)
    if convention == "paper":
        made = from_counts(outcomes.counts(usable), partial=allow_missing)
        values, types = dict(made.values), dict(made.types)
    else:
        values, types = _clustered(outcomes, usable, allow_missing)
    if taxonomy.CLEAN in usable:
        for name in taxonomy.COMPONENTS:
            if codes := _codes(name, usable, allow_missing):
                values[f"delta_matched_{name}"] = _matched(outcomes, codes, convention)
        flips = _flips(outcomes, types)
        types = {
            code: replace(row, delta_matched=_matched(outcomes, [code], convention), flips=flips.get(code))
            for code, row in types.items()
        }
    return Summary({name: values.get(name) for name in METRICS}, types, gaps(outcomes))


def _codes(component: str, usable: Container[str], partial: bool) -> list[str]:
    """The types that a component's value rests on; none where one is missing, unless `partial`."""
    wanted = codes_of(component)
    there = [code for code in wanted if code in usable]
    return there if partial or len(there) == len(wanted) else []


def _clustered(
    outcomes: Outcomes, usable: Sequence[str], partial: bool
) -> tuple[dict[str, Interval | None], dict[str, TypeRow]]:
    has_clean = taxonomy.CLEAN in usable
    simulation = Simulation(outcomes)
    values: dict[str, Interval | None] = {}
    if has_clean:
        values["clean"] = cluster_mean(*outcomes.column(taxonomy.CLEAN))
    for name in ("perturbed", *taxonomy.COMPONENTS):
        codes = _codes(name, usable, partial)
        if not codes:
            continue
        key = name if name == "perturbed" else f"accuracy_{name}"
        values[key] = cluster_mean(*outcomes.columns(codes))
        if has_clean and name != "perturbed":
            values[f"delta_{name}"] = _delta(outcomes, codes, simulation)
    static = [_codes(name, usable, partial) for name in STATIC]
    if has_clean and all(static):
        found = simulation.statistic(retention_of(static))
        used = [taxonomy.CLEAN, *(code for codes in static for code in codes)]
        values["retention"] = replace(found, n=sum(n for _, n in outcomes.counts(used).values()))
    types = {
        code: TypeRow(
            cluster_mean(*outcomes.column(code)), _delta(outcomes, [code], simulation) if has_clean else None
        )
        for code in usable
        if code != taxonomy.CLEAN
    }
    return values, types


def from_counts(counts: Counts, *, partial: bool = False) -> Summary:
    """The summary in the paper's convention from counts alone (no matched Δ: that needs the samples).

    An aggregate over a component of which a type is missing is None, unless `partial`.
    """
    clean = counts.get(taxonomy.CLEAN)
    values: dict[str, Interval | None] = dict.fromkeys(METRICS)
    values["clean"] = accuracy(*clean) if clean else None
    types = {
        code: TypeRow(accuracy(*count), independent_difference(clean, count) if clean else None)
        for code, count in counts.items()
        if code != taxonomy.CLEAN
    }
    pooled = {}
    for name in ("perturbed", *taxonomy.COMPONENTS):
        if codes := _codes(name, counts, partial):
            pooled[name] = (sum(counts[code][0] for code in codes), sum(counts[code][1] for code in codes))
    if "perturbed" in pooled:
        values["perturbed"] = accuracy(*pooled["perturbed"])
    for name in taxonomy.COMPONENTS:
        if name in pooled:
            values[f"accuracy_{name}"] = accuracy(*pooled[name])
            values[f"delta_{name}"] = independent_difference(clean, pooled[name]) if clean else None
    if clean and clean[0] and all(name in pooled for name in STATIC):
        values["retention"] = _independent_retention(clean, [pooled[name] for name in STATIC])
    missing = [code for code in (taxonomy.CLEAN, *codes_of("perturbed")) if code not in counts]
    return Summary(values, types, (f"no rows of {', '.join(missing)}",) if missing else ())


def closure(base: float, new: float) -> float | None:
    """The share of the baseline's Δ that the new model closes; None where the baseline has no gap."""
    return (base - new) / base if base > 0 else None


class Simulation:
    """Resampled counts of one run per type, drawn once; sums over several types are sums of columns."""

    def __init__(self, outcomes: Outcomes) -> None:
        self._types = outcomes.types
        counts = np.concatenate([outcomes.correct, outcomes.n], axis=1)
        self._observed = counts.sum(axis=0, dtype=np.float64)[:, None]
        self._draws = resampling(len(outcomes.clean_ids)).sums(counts)

    def statistic(self, compute: "Statistic", *, difference: bool = False) -> Interval:
        """`compute` gets a function that gives accuracies, one per resample, over a list of types."""
        value = float(compute(lambda codes: self._accuracy(self._observed, codes))[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            draws = compute(lambda codes: self._accuracy(self._draws, codes))
        return simulated(draws, value, 0, difference=difference)

    def _accuracy(self, counts: Floats, codes: Iterable[str]) -> Floats:
        at = [self._types.index(code) for code in codes]
        correct, n = (sum(counts[shift + i] for i in at) for shift in (0, len(self._types)))
        found: Floats = correct / n
        return found


Accuracies = Callable[[Iterable[str]], Floats]
Statistic = Callable[[Accuracies], Floats]


def delta_of(codes: Iterable[str]) -> Statistic:
    """Clean accuracy minus accuracy over `codes`."""
    return lambda accuracy_of: accuracy_of([taxonomy.CLEAN]) - accuracy_of(codes)


def retention_of(static: Iterable[Iterable[str]]) -> Statistic:
    """1 − mean(Δ observation, Δ action, Δ reward) / clean, which is mean accuracy of the three / clean."""
    return lambda accuracy_of: (
        np.mean([accuracy_of(codes) for codes in static], axis=0) / accuracy_of([taxonomy.CLEAN])
    )


def _delta(outcomes: Outcomes, codes: Iterable[str], simulation: Simulation) -> Interval:
    clean, clean_n = outcomes.column(taxonomy.CLEAN)
    correct, n = outcomes.columns(codes)
    if clean_n.min() == clean_n.max() and n.min() == n.max():
        # Every clean_id has as many rows: Δ is a mean over clean_ids, and so exact.
        found = cluster_mean(clean * n[0] - correct * clean_n[0], n * clean_n[0], difference=True)
    else:
        found = simulation.statistic(delta_of(codes), difference=True)
    return replace(found, n=int(clean_n.sum() + n.sum()))


def _pair_sums(outcomes: Outcomes, codes: Iterable[str]) -> tuple[Ints, Ints, int]:
    """Per clean_id: Σ (clean − perturbed) and the rows it rests on, both times a common factor; and the rows.

    With repeats a perturbed answer is set against the clean rate of its clean_id; the factor makes the rates
    whole numbers. It is 1 without repeats.
    """
    clean, clean_n = outcomes.column(taxonomy.CLEAN)
    there = clean_n > 0
    correct, n = (np.where(there, column, 0) for column in outcomes.columns(codes))
    factor = int(np.lcm.reduce(clean_n[there])) if there.any() else 1
    rate = np.where(there, clean * (factor // np.maximum(clean_n, 1)), 0)
    return rate * n - correct * factor, n * factor, int(n.sum())


def _matched(outcomes: Outcomes, codes: Sequence[str], convention: Convention) -> Interval | None:
    """Mean over anchored pairs of clean correct − perturbed correct."""
    total, rows, n = _pair_sums(outcomes, codes)
    if n == 0:
        return None
    if convention == "cluster" or outcomes.repeats > 1:
        return replace(cluster_mean(total, rows, difference=True), n=n)
    found = [_lost_and_gained(outcomes, code) for code in codes]
    return paired_difference(sum(lost for lost, _ in found), sum(gained for _, gained in found), n)


def _lost_and_gained(outcomes: Outcomes, code: str) -> tuple[int, int]:
    total, _, _ = _pair_sums(outcomes, [code])
    return int(np.maximum(total, 0).sum()), int(np.maximum(-total, 0).sum())


def _flips(outcomes: Outcomes, codes: Iterable[str]) -> dict[str, Flips]:
    """Per type; with repeats the counts are in answers, rounded."""
    sums = {code: _pair_sums(outcomes, [code]) for code in codes}
    sums = {code: found for code, found in sums.items() if found[2]}
    p_values = {code: paired_p(total) for code, (total, _, _) in sums.items()}
    corrected = holm(p_values)
    out = {}
    for code, (total, rows, n) in sums.items():
        factor = int(rows.sum()) // n
        lost, gained = (round(float(np.maximum(side, 0).sum()) / factor) for side in (total, -total))
        out[code] = Flips(n, lost, gained, p_values[code], corrected[code])
    return out


def _independent_retention(clean: tuple[int, int], pooled: Sequence[tuple[int, int]]) -> Interval:
    generator = np.random.default_rng(seeding.rng(0, "independent retention").getrandbits(128))
    parts = (clean, *pooled)
    first, *rest = (generator.binomial(n, correct / n, INDEPENDENT_DRAWS) / n for correct, n in parts)
    value = sum(correct / n for correct, n in pooled) / len(pooled) / (clean[0] / clean[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        return simulated(np.mean(rest, axis=0) / first, value, sum(n for _, n in parts))


def gaps(outcomes: Outcomes) -> tuple[str, ...]:
    """What a run lacks, one line each."""
    lines, absent = [], []
    for code in (taxonomy.CLEAN, *codes_of("perturbed"), *outcomes.types):
        if code in absent:
            continue
        if code not in outcomes.types or outcomes.column(code)[1].sum() == 0:
            absent.append(code)
            continue
        lost = int(outcomes.missing[:, outcomes.types.index(code)].sum())
        line = f"{code}: {lost} of {lost + int(outcomes.column(code)[1].sum())} rows have no verdict"
        if lost and line not in lines:
            lines.append(line)
    if absent:
        lines.insert(0, f"no rows of {', '.join(absent)}")
    if outcomes.unaccounted:
        lines.append(f"{outcomes.unaccounted} predictions of the run were never made: it is unfinished")
    return tuple(lines)
