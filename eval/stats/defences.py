"""What defences are worth: of each component's Δ the share that is recovered, the harm on clean, the price.

A defended run is a run of the same rows, so all of this is `paired`'s comparison of two runs. What it cost is
in the runs' own totals.
"""

from collections.abc import Iterator, Sequence
from operator import sub

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.io.numbers import NONE, interval, number, percent, signed
from robustbench_tc.live_types import type_code
from robustbench_tc.shown import Part, Table

from .intervals import Interval
from .packs.live import groups
from .paired import DeltaPair, Pair, compare, compare_delta_lines, compare_lines
from .runs import Run, align
from .values import codes_of, heads_of


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
    on_frontier: bool = False
    """No other of these runs is at least as accurate on perturbed rows for fewer tokens a right answer; False
    for a run whose tokens nobody knows."""


class DefenceTable(msgspec.Struct, frozen=True, kw_only=True):
    """Defended runs beside their plain run."""

    base: str
    base_cost: Cost
    lines: tuple[DefenceLine, ...]

    def shown(self) -> Iterator[Part]:
        """A line for each run; of live runs a line for each kind of fault too."""
        names = list(dict.fromkeys(name for line in self.lines for name in line.recovered))
        columns = ("defences", *(f"{name} Δ" for name in names), "clean", "perturbed", "requests", "tokens")
        yield Table(columns, [_cells(line, names) for line in self.lines], folded=columns)
        without = self.base_cost.tokens_per_right
        yield (
            "Δ: without → with, and the share recovered [95 %]. clean, perturbed: the change of accuracy. "
            f"requests: an answer. tokens: a right answer, {number(without)} without. *: none of the others "
            "is as accurate for fewer tokens."
        )
        for line in self.lines:
            if line.kinds:
                rows = [_change(name, pair) for name, pair in line.kinds.items()]
                yield Table(("", "without", "with", "n", "change"), rows, ", ".join(line.defences))
                yield "effects repeated: {} without, {} with".format(*line.repeated)


def _change(name: str, pair: Pair) -> tuple[str, ...]:
    """Episodes that ended as they should, of n that both runs have."""
    change = f"{signed(pair.difference.value)} {interval(pair.difference, sign=True)}"
    return name, f"{pair.a * pair.n:.0f}", f"{pair.b * pair.n:.0f}", str(pair.n), change


def _cells(line: DefenceLine, names: Sequence[str]) -> list[str]:
    cells = [", ".join(line.defences) + " *" * line.on_frontier]
    for name in names:
        pair = line.recovered.get(name)
        closed = pair.closed if pair else None
        share = f", {percent(closed.value)} [{percent(closed.low)}, {percent(closed.high)}]" if closed else ""
        cells.append(f"{pair.a:.3f} → {pair.b:.3f}{share}" if pair else NONE)
    cells += [
        f"{signed(change.value)} {interval(change, sign=True)}" if change else NONE
        for change in (line.harm, line.perturbed)
    ]
    return [*cells, number(line.cost.requests_per_row, 2), number(line.cost.tokens_per_right)]


def check(base: Run, runs: Sequence[Run]) -> None:
    """UserError where `base` is defended, one of the runs is not, or is of somebody else."""
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


def table(base: Run, runs: Sequence[Run]) -> DefenceTable:
    """A line for each run. Raises UserError for runs of other rows or another model, and for a run without
    defences."""
    check(base, runs)
    lines = [_line(base, run) for run in runs]
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
    return DefenceTable(base=base.path, base_cost=_cost(base), lines=tuple(marked))


def _line(base: Run, run: Run) -> DefenceLine:
    """A defended run beside the plain one; not yet on a frontier."""
    plain, defended = align([base, run])
    heads = heads_of(plain.types)[2:]
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
        cost=_cost(run),
        kinds=compare_lines(plain, defended, kinds),
        repeated=_repeated(base, run),
    )


def _repeated(base: Run, run: Run) -> tuple[int, int]:
    """Effects that were repeated in the episodes of which both have a verdict."""
    judged = [
        {(score.id, score.repeat): score.repeated or 0 for score in one.live if score.success is not None}
        for one in (base, run)
    ]
    both = judged[0].keys() & judged[1].keys()
    without, with_ = (sum(one[key] for key in both) for one in judged)
    return without, with_


def _cost(run: Run) -> Cost:
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
