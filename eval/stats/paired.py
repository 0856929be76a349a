"""Two runs over the same rows: differences of accuracy and of Δ, with paired tests.

Only rows that both runs answered completely are paired; what is left out is counted. Differences are b − a.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import sub

import msgspec
import numpy as np

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval.defend import notices
from robustbench_tc.io.numbers import NONE, interval, number, percent, signed
from robustbench_tc.live_types import type_code
from robustbench_tc.shown import Part, Table

from .intervals import (
    Estimate,
    Interval,
    combined,
    difference,
    of_estimate,
    per_unit,
    quotient,
    resampled_mean,
    share_of,
    shares,
)
from .lattice import Ints
from .outcomes import Outcomes
from .packs.live import groups
from .runs import Run, align
from .significance import paired_p, signs_p
from .summary import Convention
from .values import beyond_core, codes_of


class Pair(msgspec.Struct, frozen=True):
    """Two runs over some types. With repeats, counts of flips are in answers."""

    n: int
    """Rows that both answered."""
    left_out: int
    """Rows that one of them did not answer, or not every time it was asked."""
    a: float
    """Accuracy of a over the n rows."""
    b: float
    only_a: int
    only_b: int
    difference: Interval
    """b − a."""
    p: float
    """Exact paired test, clean_ids (or, in the paper's convention, rows) as units."""


def compare(
    a: Outcomes, b: Outcomes, codes: Iterable[str], convention: Convention = "cluster"
) -> Pair | None:
    """The two runs over `codes`; None where no row was answered by both."""
    return compare_lines(a, b, {"": tuple(codes)}, convention).get("")


def compare_lines(
    a: Outcomes, b: Outcomes, lines: Mapping[str, Sequence[str]], convention: Convention = "cluster"
) -> dict[str, Pair]:
    """The two runs over the types of each line; lines of which both answered no row are left out."""
    both = _both(a, b)
    at = {name: where for name, codes in lines.items() if both[:, (where := _at(a, codes))].any()}
    estimates = _estimates(a, b, both, at.values())
    factor = a.repeats * b.repeats
    asked = (a.n + a.missing + b.n + b.missing) > 0
    found = {}
    for i, (name, where) in enumerate(at.items()):
        sides = [one.at(i) for one in estimates]
        rows = both[:, where]
        n = int(rows.sum())
        flips = _flips(a, b, where, both)
        sums = flips[rows > 0] if convention == "paper" else a.by_unit(flips.sum(axis=1))
        only_a, only_b = (round(float(np.maximum(side, 0).sum()) / factor) for side in (-flips, flips))
        interval = (
            resampled_mean(sums, factor)
            if convention == "paper"
            else of_estimate(difference(sides[1], sides[0]), n, "mover")
        )
        right = [int(one.correct[:, where][rows > 0].sum()) / (n * one.repeats) for one in (a, b)]
        found[name] = Pair(
            n=n,
            left_out=int((asked & (both == 0))[:, where].sum()),
            a=right[0],
            b=right[1],
            only_a=only_a,
            only_b=only_b,
            difference=msgspec.structs.replace(interval, n=n),
            p=paired_p(sums),
        )
    return found


class DeltaPair(msgspec.Struct, frozen=True):
    """Δ of two runs over the same rows; `difference` is a's Δ minus b's, positive where b loses less."""

    a: float
    b: float
    difference: Interval
    """Its p swaps the two models within clean_ids at random (`significance.signs_p`)."""
    closed: Interval | None
    """The share of a's Δ that b closes, with Fieller's set; None where that set has no ends: it cannot be
    said."""


def compare_types(
    a: Outcomes, b: Outcomes, codes: Iterable[str], convention: Convention = "cluster"
) -> dict[str, Pair]:
    """`compare_lines` of single types; those of the core are worked out apart, so that no other moves a
    digit of theirs."""
    lines = {code: [code] for code in codes}
    core, others = (
        {code: of for code, of in lines.items() if beyond_core(of) is beyond} for beyond in (False, True)
    )
    return compare_lines(a, b, core, convention) | compare_lines(a, b, others, convention)


def compare_delta_lines(a: Outcomes, b: Outcomes, lines: Mapping[str, Sequence[str]]) -> dict[str, DeltaPair]:
    """Δ of each line; lines without a row on one of its sides are left out."""
    both, clean = _both(a, b), taxonomy.CLEAN
    at = {name: _at(a, codes) for name, codes in {clean: (clean,), **lines}.items()}
    at = {name: where for name, where in at.items() if both[:, where].any()}
    there = [name for name in lines if name in at]
    if clean not in at or not there:
        return {}
    estimates = _estimates(a, b, both, at.values())
    totals = {name: a.by_unit(_flips(a, b, where, both).sum(axis=1)) for name, where in at.items()}
    rows = {name: int(both[:, where].sum()) for name, where in at.items()}
    names = list(at)
    # a's Δ − b's, times both numbers of rows: whole numbers per clean_id
    p_values = signs_p([totals[name] * rows[clean] - totals[clean] * rows[name] for name in there])
    found = {}
    for name, p in zip(there, p_values, strict=True):
        deltas = [difference(one.at(names.index(clean)), one.at(names.index(name))) for one in estimates]
        n = rows[clean] + rows[name]
        left = quotient(deltas[1], deltas[0])
        closed = Interval(1 - left[0], 1 - left[2], 1 - left[1], n, "fieller") if left else None
        found[name] = DeltaPair(
            float(deltas[0].value),
            float(deltas[1].value),
            of_estimate(combined(deltas, (1.0, -1.0), 2.0), n, "mover", p),
            closed,
        )
    return found


def _estimates(a: Outcomes, b: Outcomes, both: Ints, lines: Iterable[list[int]]) -> tuple[Estimate, ...]:
    """The accuracies of a and of b over the common rows of each line."""
    columns = list(lines)
    if not columns:
        return ()

    def sums(counts: Ints) -> Ints:
        return np.stack([a.by_unit(counts[:, where].sum(axis=1)) for where in columns])

    rows = sums(both)
    return tuple(shares(sums(one.correct * (both > 0)) / one.repeats, rows) for one in (a, b))


def _at(outcomes: Outcomes, codes: Iterable[str]) -> list[int]:
    return [outcomes.types.index(code) for code in codes if code in outcomes.types]


def _both(a: Outcomes, b: Outcomes) -> Ints:
    """[clean ids, types]: rows that both answered completely; a row with its control counts as two."""
    return np.where((a.n == a.answers) & (b.n == b.answers), a.answers // a.repeats, 0)


def _flips(a: Outcomes, b: Outcomes, at: list[int], both: Ints) -> Ints:
    """b − a of each row in `both`. With different numbers of repeats, rates are put over a common
    denominator, the product of these."""
    return np.where(both[:, at], b.correct[:, at] * a.repeats - a.correct[:, at] * b.repeats, 0)


def reasked(rows: Iterable[tuple[str, int, bool]], repeats: int) -> tuple[float, float, Interval]:
    """Compares the verdicts of some rows: the clean id, how many of the submission's `repeats` were right,
    whether the one asked again is.

    The submission's accuracy, that of the answers asked again, and the second less the first, with the p of
    the exact paired test; whole samples are the units.
    """
    n, submitted, again = per_unit(sorted((unit, before, after * repeats) for unit, before, after in rows))
    change = difference(shares(again / repeats, n), shares(submitted / repeats, n))
    asked = int(n.sum())
    found = of_estimate(change, asked, "mover", paired_p(again - submitted))
    return int(submitted.sum()) / (repeats * asked), int(again.sum()) / (repeats * asked), found


class Cost(msgspec.Struct, frozen=True):
    """Of a run; None where it is not known."""

    requests_per_row: float | None
    """Requests that brought an answer here, over answers; without those of other runs (`--reuse`)."""
    tokens_per_right: float | None
    """Prompt and completion tokens over right answers."""


class DefenceLine(msgspec.Struct, frozen=True, kw_only=True):
    """A defended run beside the run without."""

    run: str
    defences: tuple[str, ...]
    recovered: dict[str, DeltaPair]
    """By component: Δ of both, and the share of the first that the second closes."""
    harm: Interval | None
    """Accuracy on clean rows, defended less plain: below 0 is harm. None without common clean rows."""
    perturbed: Interval | None
    """The same on all perturbed rows together."""
    cost: Cost
    kinds: dict[str, Pair] = {}
    """Of live runs: success on each kind of fault, and on several, without and with the defences."""
    repeated: tuple[int, int] = (0, 0)
    """Of live runs: effects of writes that are not idempotent beyond gold's, without and with them."""
    touched: tuple[int, int] = (0, 0)
    """Of live runs: episodes in which a tool that must not be called was called, without and with them."""
    noticed: dict[str, dict[str, Interval]] = {}
    """By defence that can say that something is wrong, by type: of which share of its rows it did (of live
    ones those that met their fault). Of clean rows these are false alarms."""
    on_frontier: bool = False
    """No other of these runs is at least as accurate on perturbed rows for fewer tokens a right answer; False
    for a run whose tokens nobody knows."""

    def detection(self) -> Iterator[Part]:
        """Of which rows each defence said that something is wrong, and which of them never do."""
        if self.noticed:
            by_type = zip(*(shares.items() for shares in self.noticed.values()), strict=True)
            rows = [
                (found[0][0], *(f"{number(one.value)} {interval(one)} of {one.n}" for _, one in found))
                for found in by_type
            ]
            yield Table(("rows flagged", *self.noticed), rows, ", ".join(self.defences))
            yield (
                "rows flagged: the share of which a defence said that something is wrong. clean: false "
                "alarms. A type: hits, or false alarms where it leaves nothing to notice."
            )
        silent = [word for word in self.defences if not notices(word)]
        unknown = [word for word in self.defences if notices(word) and word not in self.noticed]
        if silent:
            yield f"never says that something is wrong: {', '.join(silent)}"
        if unknown:
            yield f"not kept, whether it did (a door, older files): {', '.join(unknown)}"


class DefenceTable(msgspec.Struct, frozen=True, kw_only=True):
    """Defended runs beside their plain run."""

    base: str
    base_cost: Cost
    lines: tuple[DefenceLine, ...]

    def shown(self) -> Iterator[Part]:
        """A line for each run; of live runs a line for each kind of fault too."""
        names = list(dict.fromkeys(name for line in self.lines for name in line.recovered))
        columns = ("defences", *(f"{name} Δ" for name in names), "clean", "perturbed", "requests", "tokens")
        yield Table(columns, [_defence_cells(line, names) for line in self.lines], folded=columns)
        without = self.base_cost.tokens_per_right
        yield (
            "Δ: without → with, and the share recovered [95 %]. clean, perturbed: the change of accuracy. "
            f"requests: an answer. tokens: a right answer, {number(without)} without. *: none of the others "
            "is as accurate for fewer tokens."
        )
        for line in self.lines:
            yield from line.detection()
            if line.kinds:
                rows = [
                    (name, f"{pair.a * pair.n:.0f}", f"{pair.b * pair.n:.0f}", str(pair.n),
                     changed(pair.difference))
                    for name, pair in line.kinds.items()
                ]  # fmt: skip
                yield Table(("", "without", "with", "n", "change"), rows, ", ".join(line.defences))
                yield "effects repeated: {} without, {} with".format(*line.repeated)
                if "forbidden" in line.kinds:
                    yield "forbidden tools called: {} without, {} with".format(*line.touched)


def changed(found: Interval | None) -> str:
    """A difference with its interval."""
    return f"{signed(found.value)} {interval(found, sign=True)}" if found else NONE


def _defence_cells(line: DefenceLine, names: Sequence[str]) -> list[str]:
    cells = [", ".join(line.defences) + " *" * line.on_frontier]
    for name in names:
        pair = line.recovered.get(name)
        closed = pair.closed if pair else None
        share = f", {percent(closed.value)} [{percent(closed.low)}, {percent(closed.high)}]" if closed else ""
        cells.append(f"{pair.a:.3f} → {pair.b:.3f}{share}" if pair else NONE)
    cells += map(changed, (line.harm, line.perturbed))
    return [*cells, number(line.cost.requests_per_row, 2), number(line.cost.tokens_per_right)]


def defence_table(base: Run, runs: Sequence[Run]) -> DefenceTable:
    """A line for each run. Raises UserError where `base` is defended, and for a run without defences, of
    other rows or of somebody else."""
    if by := base.record.settings.defend:
        raise UserError(f"{base.path} is itself defended ({', '.join(by)}): name the plain run")
    for run in runs:
        if not run.record.settings.defend:
            raise UserError(f"{run.path} has no defences: --defend NAME makes such a run")
        if (run.model, run.mode) != (base.model, base.mode):
            raise UserError(
                f"{run.path} is of {run.model}, {run.mode}, {base.path} of {base.model}, {base.mode}: a "
                "defence is compared with the same model without it"
            )

    lines = [_defence_line(base, run) for run in runs]
    points = {
        at: (one.perturbed.value, -one.cost.tokens_per_right)
        for at, one in enumerate(lines)
        if one.perturbed is not None and one.cost.tokens_per_right is not None
    }
    best = {
        at
        for at, one in points.items()
        if not any(other != one and min(map(sub, other, one)) >= 0 for other in points.values())
    }
    marked = (msgspec.structs.replace(one, on_frontier=at in best) for at, one in enumerate(lines))
    return DefenceTable(base=base.path, base_cost=cost_of(base), lines=tuple(marked))


def _defence_line(base: Run, run: Run) -> DefenceLine:
    """A defended run beside the plain one; not yet on a frontier."""
    plain, defended = align([base, run])
    heads = plain.heads[2:]
    components: dict[str, Sequence[str]] = {name: codes_of(name) for name in heads}
    kinds = {name: tuple(map(type_code, of)) for name, of in groups().items()} if base.live else {}
    clean = compare(plain, defended, [taxonomy.CLEAN])
    perturbed = compare(plain, defended, [code for codes in components.values() for code in codes])
    whole = {name: codes for name, codes in components.items() if set(codes) <= set(plain.types)}
    return DefenceLine(
        run=run.path,
        defences=run.record.settings.defend,
        recovered=compare_delta_lines(plain, defended, whole),
        harm=None if clean is None else clean.difference,
        perturbed=None if perturbed is None else perturbed.difference,
        cost=cost_of(run),
        kinds=compare_lines(plain, defended, kinds),
        repeated=_harm(base, run, "repeated"),
        touched=_harm(base, run, "touched"),
        noticed=_noticed(run, defended.types),
    )


def _noticed(run: Run, types: Sequence[str]) -> dict[str, dict[str, Interval]]:
    """Shares of answered rows, `types` in order; nothing where the run does not say what was noticed."""
    columns = (run.rows[name].tolist() for name in ("type_code", "unit", "noticed", "correct"))
    met = run.rows["met"].tolist() if run.live else itertools.repeat(True)
    rows = dict[str, list[tuple[str, list[str]]]]()
    for code, unit, noticed, correct, counts in zip(*columns, met, strict=False):
        if noticed is not None and correct >= 0 and counts:
            rows.setdefault(code, []).append((unit, noticed.split(",")))
    return {
        word: {
            code: share
            for code in types
            if (share := share_of([(unit, word.partition(":")[0] in by) for unit, by in rows.get(code, ())]))
        }
        for word in run.record.settings.defend
        if rows and notices(word)
    }


def _harm(base: Run, run: Run, field: str) -> tuple[int, int]:
    """The sum of a field of scores, over the episodes of which both have a verdict."""
    judged = [
        {(one.id, one.repeat): getattr(one, field) or 0 for one in side.live if one.success is not None}
        for side in (base, run)
    ]
    both = judged[0].keys() & judged[1].keys()
    without, with_ = (sum(one[key] for key in both) for one in judged)
    return without, with_


def cost_of(run: Run) -> Cost:
    """From `run.json`: requests of all sessions, tokens of all predictions."""
    totals = run.record.totals
    requests = totals.get("requests") or sum(one.requests - one.retries for one in run.record.sessions)
    return Cost(
        per(requests, len(run.rows["correct"])),
        per(
            totals.get("prompt_tokens", 0) + totals.get("completion_tokens", 0),
            (run.rows["correct"] == 1).sum(),
        ),
    )


def per(cost: float, of: float) -> float | None:
    """A cost over what it bought; None where either is 0."""
    return float(cost / of) if cost and of else None
