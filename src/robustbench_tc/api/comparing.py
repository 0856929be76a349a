"""What one or two scored runs say: `gate`, `compare`, `defences`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .progress import Progress

if TYPE_CHECKING:
    from ..eval.compare import Comparison, PaperLine
    from ..eval.stats.defences import DefenceTable
    from ..eval.stats.gate import Verdict
    from ..eval.stats.runs import Run, Subset


def gate(
    run: "str | Path | Run",
    against: "str | Path | Run | None" = None,
    *,
    max_drop: float = 0.05,
    components: "Mapping[str, float | None] | None" = None,
    verdict: "Literal['meant', 'delivered'] | None" = None,
    allow_undelivered: bool = False,
    allow_inconclusive: bool = False,
    allow_agent_errors: int = 0,
    save_baseline: "str | Path | None" = None,
    allow_missing: bool = False,
    subset: "Subset" = "all",
) -> "Verdict":
    """`rbtc gate`: whether a scored run lost more than it may; `exit_code` is the command's.

    Against its own clean rows, or `against` another run of the same dataset. `components`: those that are
    asked for, each with its own `max_drop` or None; by default all of them. `save_baseline`: a folder that
    gets the run's verdicts, for a later `against`. Raises UserError for runs that cannot be compared.

    >>> gate("runs/mine", "runs/released").outcome  # doctest: +SKIP
    """
    from ..eval.gate import judge, save_baseline as save
    from ..eval.stats.runs import Run, read

    new = run if isinstance(run, Run) else read(run)
    base = against if isinstance(against, Run) or against is None else read(against)
    found = judge(
        new,
        base,
        max_drop=max_drop,
        components=components,
        verdict=verdict,
        allow_undelivered=allow_undelivered,
        allow_inconclusive=allow_inconclusive,
        allow_agent_errors=allow_agent_errors,
        allow_missing=allow_missing,
        subset=subset,
    )
    if save_baseline is not None:
        save(new, Path(save_baseline))
    return found


def compare(
    a: "str | Path | Run",
    b: "str | Path | Run",
    *,
    subset: "Subset" = "all",
    log_keys: Sequence[str] = (),
    progress: Progress = lambda line: None,
) -> "Comparison":
    """`rbtc compare A B`: whether B is better than A, paired over the rows that both answered.

    `a`, `b`: scored run folders, logs of inspect_ai (`.eval`), or runs that were read. `log_keys`: as on the
    command line. Shares are from 0 to 1, intervals hold 95 %. `progress` gets a line before each value.
    Raises UserError for a run that is not scored, a log that cannot be read, and for runs of different
    datasets or without a common row.
    """
    import msgspec

    from ..eval.compare import compare_runs

    progress("reading the runs")
    (first, second), notes = _runs((a, b), log_keys)
    found = compare_runs(first, second, subset=subset, progress=progress)
    return msgspec.structs.replace(found, notes=(*notes, *found.notes))


def defences(base: "str | Path | Run", runs: "Sequence[str | Path | Run]") -> "DefenceTable":
    """`rbtc defences BASE RUN…`: what defended runs recover of each component's Δ, at what harm and price.

    Raises UserError for a run that is not scored, has no defences (or `base`: has some), or is of other rows
    or another model.
    """
    from ..eval.stats.defences import table

    first, *others = _runs((base, *runs))[0]
    return table(first, others)


def compare_with_paper(
    run: "str | Path | Run", model: str, *, subset: "Subset" = "all", log_keys: Sequence[str] = ()
) -> "Sequence[PaperLine]":
    """`rbtc compare A --vs paper:MODEL`: a run beside one of the paper's models, unpaired.

    Raises UserError for a run that is not scored and for a model that the paper has not.
    """
    from ..eval.compare import beside_paper

    return beside_paper(_runs((run,), log_keys)[0][0], model, subset=subset)


def _runs(
    of: "Sequence[str | Path | Run]", log_keys: Sequence[str] = ()
) -> "tuple[list[Run], tuple[str, ...]]":
    """Runs from what was given, and what has to be said of logs among it."""
    from ..eval.adapters.logs import opened

    with opened([str(one) for one in of if isinstance(one, str | Path)], log_keys) as found:
        named = iter([one.read() for one in found])
        notes = tuple(note for one in found for note in one.notes)
    return [next(named) if isinstance(one, str | Path) else one for one in of], notes
