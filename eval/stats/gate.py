"""A regression gate: did the agent lose more than it may, and is that more than chance?

Against its own clean rows or against another run a component has one of three outcomes. D is what it may
drop, M the larger of D and a quarter of the accuracy before.

- `fail`: the drop that was seen is above D and the exact one-sided test of "no drop" rejects (Holm's
  correction is over the components); or one of its types drops by more than M and its test rejects (Holm's
  correction is over its types).
- `pass`: no failure, the drop is at most D and its interval ends at or below M, ten cases were right before.
- `inconclusive`: else.

How often an unchanged agent fails, and what is found, is simulated (`make gate-check`, docs/gate.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import replace

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.eval.reasons import of_predictions
from robustbench_tc.io.numbers import number, p_value, percent, points
from robustbench_tc.shown import Line as Text, Part, Table

from .caveats import as_delivered, caveats, delivery, statuses, unreviewed
from .evidence import RIGHT, Held, Sides, cure, drops, keeps, other_run, own_clean
from .intervals import Interval
from .outcomes import Outcomes
from .runs import Run, Subset, align, within
from .significance import holm
from .values import LIVE_HEADS, codes_of

LEVEL = 0.025
"""Of a one-sided test."""
MAX_DROP = 0.05
SHARE = 0.25
"""Of the accuracy before: what a type may lose, and how far the interval of a passing component may reach."""
ENOUGH = 15
"""Cases from which a perfect agent passes in every component: with fewer the interval is too wide."""

Outcome = Literal["fail", "inconclusive", "pass"]
"""The worst first: a run has that of its worst line."""


class Line(Held, frozen=True, kw_only=True):
    """One component, or `clean` against another run. Its p is one-sided; `why`: why it does not pass."""

    outcome: Outcome
    rows: int
    """Pairs of rows, repeats included."""
    max_drop: float
    ceiling: float
    """Where the interval has to end for a pass."""
    p: float
    """Exact one-sided test of "no drop", not corrected."""
    types: tuple[str, ...]
    """Types that fail it."""
    factor: float
    """How many times as many cases would settle it; infinite where nothing was right before."""

    @property
    def cells(self) -> tuple[str, ...]:
        """A row of the verdict's table."""
        return (
            self.name,
            percent(self.before),
            percent(self.after),
            points(self.drop.value),
            f"{points(self.drop.low)} to {points(self.drop.high)}",
            number(100 * self.max_drop, 1),
            p_value(self.p_holm),
            str(self.cases),
            self.outcome,
        )


COLUMNS = ("", "before", "after", "drop, points", "95 %", "allowed", "p (Holm)", "cases", "outcome")
"""Of a verdict's table."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate says."""

    outcome: Outcome
    lines: tuple[Line, ...]
    faults: tuple[str, ...]
    """Why the run fails as a whole: agent errors, rejected rows."""
    allow_inconclusive: bool
    model: str
    run: str
    against: str | None
    """The other run; None: the run's own clean rows."""
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 3 inconclusive (0 where that is allowed)."""
        codes = {"pass": 0, "fail": 1, "inconclusive": 0 if self.allow_inconclusive else 3}
        return codes[self.outcome]

    @property
    def sentence(self) -> str:
        """The verdict in a line."""
        if self.outcome == "pass":
            kept = min(keeps(line.drop.high, line.before) or 0.0 for line in self.lines)
            names = [line.name for line in self.lines if line.name != taxonomy.CLEAN]
            where = (
                "every component" if len(names) == len(taxonomy.COMPONENTS) else ", ".join(names) or "clean"
            )
            return f"passed: at least {100 * kept:.0f} % of the right answers are kept in {where}"
        word = "failed" if self.outcome == "fail" else "inconclusive"
        said = [f"{line.name}: {line.why}" for line in self.lines if line.outcome == self.outcome]
        first, *more = (*self.faults, *said)
        return f"{word}: {first}" + (f" (+{len(more)} more)" if more else "")

    def json(self) -> dict[str, Any]:
        """What `rbtc gate --json` prints."""
        return {"exit_code": self.exit_code, "sentence": self.sentence, "verdict": self}

    def shown(self) -> Iterator[Part]:
        """The sentence, the table and the reasons."""
        yield Text(self.sentence, "bold")
        yield Table(COLUMNS, [line.cells for line in self.lines])
        yield from self.faults
        yield from (f"{line.name}: {line.why}" for line in self.lines if line.why)
        yield from (Text(f"note: {note}", "yellow") for note in self.notes)


def decide(
    sides: Mapping[str, Sides], types: Mapping[str, Mapping[str, Sides]], allowed: Mapping[str, float]
) -> tuple[Line, ...]:
    """The lines of a verdict. `types`: component → its types; `allowed`: the largest drop that passes."""
    p_values = {name: one.p_above for name, one in sides.items()}
    corrected = holm(p_values)
    lines = []
    for (name, one), drop in zip(sides.items(), drops([*sides.values()]), strict=True):
        max_drop, ceiling = allowed[name], _ceiling(one, allowed[name])
        seen = drop.value > max_drop + 1e-12
        of_types = types.get(name, {})
        p_holm = holm({code: of.p_above for code, of in of_types.items()})
        lost = tuple(
            code
            for code, of in of_types.items()
            if p_holm[code] <= LEVEL and of.lost > _ceiling(of, max_drop)
        )
        failures = []
        if seen and corrected[name] <= LEVEL:
            failures.append(
                f"lost {100 * drop.value:.1f} points, more than chance and the {100 * max_drop:g} allowed"
            )
        if lost:
            failures.append(f"lost more than {100 * ceiling:.0f} points under {', '.join(lost)}")
        unsettled = _unsettled(one, drop, seen, ceiling)
        lines.append(
            Line(
                name=name,
                outcome="fail" if failures else "inconclusive" if unsettled else "pass",
                cases=len(one.pairs),
                rows=int(one.pairs.sum()),
                right=one.right,
                before=one.accuracy_before,
                after=one.accuracy_after,
                drop=drop,
                max_drop=max_drop,
                ceiling=ceiling,
                p=p_values[name],
                p_holm=corrected[name],
                types=lost,
                why="; ".join(failures) or unsettled,
                factor=one.factor(drop, ceiling),
            )
        )
    return tuple(lines)


def _ceiling(sides: Sides, max_drop: float) -> float:
    return max(max_drop, SHARE * sides.accuracy_before)


def _unsettled(sides: Sides, drop: Interval, seen: bool, ceiling: float) -> str:
    """What keeps a component that does not fail from passing; empty where nothing does."""
    if sides.right < RIGHT:
        return f"{sides.right} of {len(sides.pairs)} cases were right before, {RIGHT} are needed"
    if seen:
        return f"the observed drop of {100 * drop.value:.1f} points could be chance"
    if drop.high > ceiling:
        return f"a drop of {100 * drop.high:.0f} points is not ruled out; at most {100 * ceiling:.0f} may be"
    return ""


def limits(there: Sequence[str], asked: Mapping[str, float | None], max_drop: float) -> dict[str, float]:
    """What each component may drop: of those asked for, else of all that are there. Raises UserError."""
    for name, value in (("max-drop", max_drop), *asked.items()):
        if value is not None and not 0 <= value < 1:
            raise UserError(f"{name} {value:g}: a drop is a share of the cases: give 0 or more, less than 1")
    known = (taxonomy.CLEAN, *taxonomy.COMPONENTS, *LIVE_HEADS[2:])
    for name in asked:
        if name not in known:
            raise unknown("component", name, known)
        if name not in there:
            raise UserError(f"the run has no pair of rows for {name}: it has {', '.join(there) or 'none'}")
    if not asked:
        return dict.fromkeys(there, max_drop)
    return {name: max_drop if value is None else value for name, value in asked.items()}


UNDELIVERED = 0.01
"""Share of the calls meant that a server may fail to deliver."""

ONE_SIDED = "gated on meant calls: only one of the two runs says what was delivered"

REJECTED = 0.01
"""Share of rows that may be rejected for another reason than tools of one name."""


def judge(
    run: Run,
    against: Run | None = None,
    *,
    max_drop: float = MAX_DROP,
    components: Mapping[str, float | None] | None = None,
    verdict: Literal["meant", "delivered"] | None = None,
    allow_undelivered: bool = False,
    allow_inconclusive: bool = False,
    allow_agent_errors: int = 0,
    allow_missing: bool = False,
    subset: Subset = "all",
) -> Verdict:
    """Holds a run against its own clean rows, or against another run of the same rows.

    `components`: the lines that are asked for, each with what it may drop (None: `max_drop`); by default all
    that the run has. Rows without a verdict pass nothing, unless `allow_missing`. `verdict`: on what is
    gated, always the same on both sides; by default what was delivered, where both sides have that. More than
    one call in a hundred that was not delivered fails, unless `allow_undelivered`. Raises UserError.
    """
    runs = [run] if against is None else [against, run]
    aligned = align(runs, subset=subset)
    got = [delivery(within(*pair)) for pair in zip(runs, aligned, strict=True)]
    if verdict == "delivered" and None in got:
        raise UserError("--verdict delivered: only a server's run in fc mode has it; --verdict meant")
    held = partial(
        _judge,
        max_drop=max_drop,
        components=components,
        allow_inconclusive=allow_inconclusive,
        allow_agent_errors=allow_agent_errors,
        allow_missing=allow_missing,
        subset=subset,
    )
    meant = held(runs)
    if None in got or verdict == "meant":
        partly = got != [None] * len(got) and verdict is None
        return replace(meant, notes=(*meant.notes, *((ONE_SIDED,) if partly else ())))
    found = held([as_delivered(one) for one in runs])
    by_name = {line.name: line.outcome for line in meant.lines}
    lines = tuple(
        replace(line, why=f"server: {line.why}") if by_name[line.name] == "pass" != line.outcome else line
        for line in found.lines
    )
    faults = found.faults
    new = got[-1]
    if new is not None and new.undelivered > UNDELIVERED * new.called and not allow_undelivered:
        faults += (f"server: {new.undelivered} of {new.called} calls were not delivered: {new.culprit}",)
    return replace(
        found,
        outcome="fail" if faults else found.outcome,
        lines=lines,
        faults=faults,
        notes=(f"gated on delivered calls: {new.line}" if new else "", *found.notes),
    )


def _judge(
    runs: Sequence[Run],
    *,
    max_drop: float,
    components: Mapping[str, float | None] | None,
    allow_inconclusive: bool,
    allow_agent_errors: int,
    allow_missing: bool,
    subset: Subset,
) -> Verdict:
    """The verdict on what `correct` says of the last run, against the one before it if there is one."""
    *against, run = runs
    found = align(runs, subset=subset)
    pairs = [(within(one, outcomes), outcomes) for one, outcomes in zip(runs, found, strict=True)]
    new = found[-1]
    inexpressible = {code for one, _ in pairs for code in statuses(one)["rejected"] if _has_namesakes(code)}

    def held(*codes: str) -> Sides | None:
        kept = [code for code in codes if code not in inexpressible]
        return other_run(found[0], new, kept) if against else own_clean(new, kept)

    heads = (*[taxonomy.CLEAN] * len(against), *new.heads[2:])
    sides = {name: one for name in heads if (one := held(*codes_of(name))) is not None}
    if not sides:
        others = _not_gated(new)
        if others and {*new.types} <= {taxonomy.CLEAN, *others}:
            raise UserError(
                f"{run.path} has nothing to gate: {', '.join(others)} are beyond the core types; rbtc "
                "compare tests them against another run"
            )
        raise UserError(
            f"{run.path} has no pair of rows to compare: it needs clean rows beside perturbed ones. Build "
            "types that fit the cases (the build says which made rows), or name an earlier run with --against"
        )
    allowed = limits(tuple(sides), components or {}, max_drop)
    types = {
        name: {code: one for code in codes_of(name) if (one := held(code)) is not None}
        for name in allowed
        if name != taxonomy.CLEAN
    }
    lines = decide({name: sides[name] for name in allowed}, types, allowed)
    notes = _notes(pairs)
    if inexpressible:
        notes += (
            "left out, because the server rejects tools with equal names: "
            f"{', '.join(sorted(inexpressible))}",
        )
    missing = sum(int(one.missing.sum()) + one.unaccounted for one in found)
    ask = ""
    if missing and not allow_missing:
        ask = (
            f"{missing} rows have no verdict: run the same rbtc eval again (without --limit), or allow it "
            "with --allow-missing"
        )
    lines = tuple(
        replace(
            line,
            outcome="inconclusive",
            why="; ".join(filter(None, (line.why, ask or cure(run, new, line.cases, line.factor)))),
        )
        if line.outcome == "inconclusive" or (ask and line.outcome == "pass")
        else line
        for line in lines
    )
    faults = _faults(pairs[-1][0], allow_agent_errors)
    return Verdict(
        outcome="fail" if faults else min((line.outcome for line in lines), key=get_args(Outcome).index),
        lines=lines,
        faults=faults,
        allow_inconclusive=allow_inconclusive,
        model=run.model,
        run=run.path,
        against=next((one.path for one in against), None),
        notes=notes,
    )


def _has_namesakes(code: str) -> bool:
    """Whether a row of the type has two tools of one name, which some servers refuse."""
    return taxonomy.known(code) and taxonomy.get(code).channel == "namesake"


def _faults(run: Run, allowed: int) -> tuple[str, ...]:
    """Why the run fails as a whole."""
    found, faults = statuses(run), []
    rows = sum(of_status.total() for of_status in found.values())
    if (failed := found["agent_error"].total()) > allowed:
        said = (
            one for one in of_predictions(Path(run.path) / "scores.parquet") if one.status == "agent_error"
        )
        message = next((f": {one.message}" for one in said), "")
        faults.append(f"the agent failed on {failed} of {rows} rows ({allowed} allowed){message}")
    refused = sum(n for code, n in found["rejected"].items() if not _has_namesakes(code))
    if refused > REJECTED * rows:
        faults.append(f"the server rejected {refused} of {rows} rows: rbtc failures shows why")
    return tuple(faults)


def _notes(pairs: list[tuple[Run, Outcomes]]) -> tuple[str, ...]:
    """What a reader has to know beside the lines."""
    notes = [
        f"{run.path}: {logged.line}"
        for run, outcomes in pairs
        if (logged := unreviewed(run, outcomes)) is not None
    ]
    run, outcomes = pairs[-1]
    notes += caveats(run, outcomes)[1]
    if others := _not_gated(outcomes):
        notes.append(f"not gated, beyond the core types: {', '.join(others)}")
    return tuple(notes)


def _not_gated(outcomes: Outcomes) -> list[str]:
    """The types beyond the core."""
    core = {code for head in outcomes.heads for code in codes_of(head)}
    return [code for code in outcomes.types if code not in core]
