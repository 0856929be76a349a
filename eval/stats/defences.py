"""What defences are worth: of each component's Δ the share that is recovered, the harm on clean, the price.

A defended run is a run of the same rows, so all of this is `paired`'s comparison of two runs. What it cost is
in the runs' own totals.
"""

from collections.abc import Iterator, Sequence
from operator import sub
from typing import NamedTuple

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.io.numbers import NONE, interval, number, percent, signed
from robustbench_tc.shown import Part, Table

from .intervals import Interval
from .paired import DeltaPair, compare, compare_delta_lines
from .runs import Run, align
from .values import codes_of


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
    on_frontier: bool = False
    """No other of these runs is at least as accurate on perturbed rows for fewer tokens a right answer; False
    for a run whose tokens nobody knows."""


class DefenceTable(msgspec.Struct, frozen=True, kw_only=True):
    """Defended runs beside their plain run."""

    base: str
    base_cost: Cost
    lines: tuple[DefenceLine, ...]

    def shown(self) -> Iterator[Part]:
        """A line for each run."""
        names = list(dict.fromkeys(name for line in self.lines for name in line.recovered))
        columns = ("defences", *(f"{name} Δ" for name in names), "clean", "perturbed", "requests", "tokens")
        yield Table(columns, [_cells(line, names) for line in self.lines], folded=columns)
        without = self.base_cost.tokens_per_right
        yield (
            "Δ: without → with, and the share recovered [95 %]. clean, perturbed: the change of accuracy. "
            f"requests: an answer. tokens: a right answer, {number(without)} without. *: none of the others "
            "is as accurate for fewer tokens."
        )


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


class Ran(NamedTuple):
    """A run, static or live, as far as it decides what it can be compared with."""

    path: str
    defences: Sequence[str]
    who: tuple[str, ...]
    """Model and mode, and what else has to be the same."""


def check(base: Ran, runs: Sequence[Ran]) -> None:
    """UserError where `base` is defended, one of the runs is not, or is of somebody else."""
    if base.defences:
        raise UserError(f"{base.path} is itself defended ({', '.join(base.defences)}): name the plain run")
    for run in runs:
        if not run.defences:
            raise UserError(f"{run.path} has no defences: --defend NAME makes such a run")
        if run.who != base.who:
            raise UserError(
                f"{run.path} is of {', '.join(run.who)}, {base.path} of {', '.join(base.who)}: a defence is "
                "compared with the same model without it"
            )


def ran(run: Run) -> Ran:
    """Of a static run."""
    return Ran(run.path, run.record.settings.defend, (run.model, run.mode))


def table(base: Run, runs: Sequence[Run]) -> DefenceTable:
    """Raises UserError for runs of other rows or another model, and for a run without defences."""
    check(ran(base), [ran(run) for run in runs])
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
    components: dict[str, Sequence[str]] = {name: codes_of(name) for name in taxonomy.COMPONENTS}
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
    )


def _cost(run: Run) -> Cost:
    """From `run.json`: requests of all sessions, tokens of all predictions."""
    requests = sum(one.requests - one.retries for one in run.record.sessions)
    totals = run.record.totals
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
