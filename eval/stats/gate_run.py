"""`rbtc gate`: a run held against its own clean rows, or against another run."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval.reasons import of_predictions

from . import gate
from .caveats import caveats, statuses
from .delivery import as_delivered, delivery
from .evidence import cure
from .gate import Verdict
from .runs import Outcomes, Run, Subset, align
from .sides import Sides, other_run, own_clean
from .unreviewed import unreviewed
from .values import codes_of, heads_of

UNDELIVERED = 0.01
"""Share of the calls meant that a server may fail to deliver."""

ONE_SIDED = "gated on meant calls: only one of the two runs says what was delivered"

REJECTED = 0.01
"""Share of rows that may be rejected for another reason than tools of one name."""


def judge(
    run: Run,
    against: Run | None = None,
    *,
    max_drop: float = gate.MAX_DROP,
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
    got = [delivery(one, outcomes) for one, outcomes in zip(runs, align(runs, subset=subset), strict=True)]
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
    meant = held(run, against)
    if None in got or verdict == "meant":
        partly = got != [None] * len(got) and verdict is None
        return replace(meant, notes=(*meant.notes, *((ONE_SIDED,) if partly else ())))
    base = None if against is None else as_delivered(against)
    found = held(as_delivered(run), base)
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
    run: Run,
    against: Run | None,
    *,
    max_drop: float,
    components: Mapping[str, float | None] | None,
    allow_inconclusive: bool,
    allow_agent_errors: int,
    allow_missing: bool,
    subset: Subset,
) -> Verdict:
    """The verdict on what `correct` says."""
    found = align([run] if against is None else [against, run], subset=subset)
    pairs = list(zip([run] if against is None else [against, run], found, strict=True))
    new = found[-1]
    refused = [statuses(*pair)["rejected"] for pair in pairs]
    inexpressible = {code for one in refused for code in one if _has_namesakes(code)}

    def held(*codes: str) -> Sides | None:
        kept = [code for code in codes if code not in inexpressible]
        return own_clean(new, kept) if against is None else other_run(found[0], new, kept)

    heads = (*((taxonomy.CLEAN,) if against else ()), *heads_of(new.types)[2:])
    sides = {name: one for name in heads if (one := held(*codes_of(name))) is not None}
    if not sides:
        raise UserError(
            f"{run.path} has no pair of rows to compare: it needs clean rows beside perturbed ones. Build "
            "types that fit the cases (the build says which made rows), or name an earlier run with --against"
        )
    allowed = gate.limits(tuple(sides), components or {}, max_drop)
    types = {
        name: {code: one for code in codes_of(name) if (one := held(code)) is not None}
        for name in allowed
        if name != taxonomy.CLEAN
    }
    lines = gate.decide({name: sides[name] for name in allowed}, types, allowed)
    notes = _notes(pairs)
    if inexpressible:
        notes += (f"left out, the server rejects tools of one name: {', '.join(sorted(inexpressible))}",)
    missing = sum(int(one.missing.sum()) + one.unaccounted for one in found)
    if missing and not allow_missing:
        ask = (
            f"{missing} rows have no verdict: run the same rbtc eval again, or allow it with --allow-missing"
        )
        lines = tuple(line if line.outcome == "fail" else gate.unsettled(line, ask) for line in lines)
    else:
        lines = tuple(
            gate.unsettled(line, cure(run, new, line.cases, line.factor))
            if line.outcome == "inconclusive"
            else line
            for line in lines
        )
    faults = _faults(run, new, allow_agent_errors)
    return Verdict(
        outcome="fail" if faults else gate.outcome_of(lines),
        lines=lines,
        faults=faults,
        allow_inconclusive=allow_inconclusive,
        model=run.model,
        run=run.path,
        against=None if against is None else against.path,
        notes=notes,
    )


def _has_namesakes(code: str) -> bool:
    """Whether a row of the type has two tools of one name, which some servers refuse."""
    return taxonomy.known(code) and taxonomy.get(code).channel == "namesake"


def _faults(run: Run, outcomes: Outcomes, allowed: int) -> tuple[str, ...]:
    """Why the run fails as a whole."""
    found, faults = statuses(run, outcomes), []
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
    core = {code for head in heads_of(outcomes.types) for code in codes_of(head)}
    if others := [code for code in outcomes.types if code not in core]:
        notes.append(f"not gated, beyond the core types: {', '.join(others)}")
    return tuple(notes)
