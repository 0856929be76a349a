"""What defences are worth: of each component's Δ the share that is recovered, the harm on clean, the price.

A defended run is a run of the same rows, so all of this is `paired`'s comparison of two runs. What it cost is
in the runs' own totals.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError

from .intervals import Interval
from .paired import DeltaPair, compare, compare_delta_lines
from .runs import Outcomes, Run, align
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


def table(base: Run, runs: Sequence[Run]) -> DefenceTable:
    """Raises UserError for runs of other rows or another model, and for a run without defences."""
    if _defences(base):
        raise UserError(f"{base.path} is itself defended ({', '.join(_defences(base))}): name the plain run")
    lines = []
    for run in runs:
        if not _defences(run):
            raise UserError(f"{run.path} has no defences: `rbtc eval --defend NAME` makes such a run")
        if (run.model, run.mode) != (base.model, base.mode):
            raise UserError(
                f"{run.path} is of {run.model} ({run.mode}), {base.path} of {base.model} ({base.mode}): "
                "a defence is compared with the same model without it"
            )
        plain, defended = align([base, run])
        lines.append(line(plain, defended, run=run.path, defences=_defences(run), cost=cost(run)))
    return DefenceTable(base=base.path, base_cost=cost(base), lines=with_frontier(lines))


def line(
    plain: Outcomes, defended: Outcomes, *, run: str, defences: tuple[str, ...], cost: Cost
) -> DefenceLine:
    """A defended run beside the plain one, over the same clean ids and types; not yet on a frontier."""
    components = {name: codes_of(name) for name in taxonomy.COMPONENTS}
    beside = compare(plain, defended, [taxonomy.CLEAN])
    perturbed = compare(plain, defended, [code for codes in components.values() for code in codes])
    # the components of which every core type has rows
    return DefenceLine(
        run=run,
        defences=defences,
        recovered=compare_delta_lines(
            plain,
            defended,
            {name: codes for name, codes in components.items() if set(codes) <= set(plain.types)},
        ),
        harm=None if beside is None else beside.difference,
        perturbed=None if perturbed is None else perturbed.difference,
        cost=cost,
    )


def with_frontier(lines: Sequence[DefenceLine]) -> tuple[DefenceLine, ...]:
    """The lines of one plain run, those on the frontier marked."""
    best = [one for one in lines if one.perturbed is not None and one.cost.tokens_per_right is not None]
    return tuple(
        msgspec.structs.replace(one, on_frontier=one in best and not any(_beats(two, one) for two in best))
        for one in lines
    )


def _beats(one: DefenceLine, other: DefenceLine) -> bool:
    """Whether it is at least as good in both respects, and better in one."""
    tokens = one.cost.tokens_per_right, other.cost.tokens_per_right
    if tokens[0] is None or tokens[1] is None or one.perturbed is None or other.perturbed is None:
        return False
    gains = one.perturbed.value, other.perturbed.value
    return (
        gains[0] >= gains[1] and tokens[0] <= tokens[1] and (gains[0], -tokens[0]) != (gains[1], -tokens[1])
    )


def cost(run: Run) -> Cost:
    """From `run.json`: requests of all sessions, tokens of all predictions."""
    sessions = run.record.get("sessions")
    counts = [
        _number(one, "requests") - _number(one, "retries") for one in sessions or () if isinstance(one, dict)
    ]
    answered, right = len(run.rows["correct"]), int((run.rows["correct"] == 1).sum())
    totals = run.record.get("totals")
    tokens = [_number(totals, name) for name in ("prompt_tokens", "completion_tokens")]
    return Cost(
        requests_per_row=sum(counts) / answered if sum(counts) and answered else None,
        tokens_per_right=sum(tokens) / right if sum(tokens) and right else None,
    )


def _number(found: Any, name: str) -> float:
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _defences(run: Run) -> tuple[str, ...]:
    settings = run.record.get("settings")
    named = settings.get("defend") if isinstance(settings, dict) else None
    return tuple(map(str, named)) if isinstance(named, list | tuple) else ()
