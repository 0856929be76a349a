"""What one or two scored runs say: `gate`, `compare`, `defences`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from ..errors import UserError
from ..option import Option
from . import options
from .progress import Progress

if TYPE_CHECKING:
    from ..eval.stats.compare import Comparison, PaperLine
    from ..eval.stats.defences import DefenceTable
    from ..eval.stats.gate import Verdict
    from ..eval.stats.runs import Run, Subset


def _components(words: Sequence[str]) -> dict[str, float | None]:
    """`NAME` or `NAME:DROP` each. Raises UserError."""
    found: dict[str, float | None] = {}
    for word in words:
        name, colon, drop = word.partition(":")
        try:
            found[name] = float(drop) if colon else None
        except ValueError:
            raise UserError(f"{word}: write NAME or NAME:DROP, such as reward:0.10") from None
    return found


def gate(
    run: Annotated["str | Path | Run", options.RUN],
    against: Annotated["str | Path | Run | None", options.AGAINST] = None,
    *,
    max_drop: Annotated[float, Option(help="Largest drop that passes, as a share.")] = 0.05,
    components: Annotated[
        "Mapping[str, float | None]",
        Option(
            name="component",
            help="Gate only NAME, or NAME:DROP with its own --max-drop. Repeatable.",
            read=_components,
        ),
    ] = MappingProxyType({}),
    verdict: Annotated[
        Literal["meant", "delivered"] | None,
        Option(help="Gate the calls that the model meant, or those that its server delivered (default: fc)."),
    ] = None,
    allow_undelivered: Annotated[
        bool, Option(help="Pass a server that loses more than 1 % of the calls.")
    ] = False,
    allow_inconclusive: Annotated[bool, Option(help="Exit 0 if the run is too small to tell.")] = False,
    allow_agent_errors: Annotated[int, Option(help="Rows on which the agent may fail.", at_least=0)] = 0,
    allow_missing: Annotated[bool, options.ALLOW_MISSING] = False,
    save_baseline: Annotated[
        Path | None, Option(help="Save the verdicts to this folder, for a later --against.")
    ] = None,
    subset: Annotated[Literal["all", "paper", "verified"], options.SUBSET] = "all",
    junit: Annotated[Path | None, Option(help="Also write JUnit XML to this file.")] = None,
    markdown: Annotated[Path | None, Option(help="Also write a pull request's summary to this file.")] = None,
) -> "Verdict":
    """Fail CI if accuracy drops by more than --max-drop.

    Exits 0 (passed), 1 (failed) or 3 (inconclusive: too few cases to tell). Without --against a run is
    compared with its own clean rows.

    Example: rbtc gate runs/mine --against baseline --component reward:0.10 --junit gate.xml

    Raises UserError for runs that cannot be compared.

    >>> gate("runs/mine", against="runs/released").outcome  # doctest: +SKIP
    """
    from ..eval import gate as forms
    from ..eval.stats.runs import Run, read

    for file in (junit, markdown):
        if file is not None:
            forms.check_place(file)
    new = run if isinstance(run, Run) else read(run)
    base = against if isinstance(against, Run) or against is None else read(against)
    found = forms.judge(
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
        forms.save_baseline(new, save_baseline)
    if junit is not None:
        forms.save(junit, forms.junit(found))
    if markdown is not None:
        forms.save(markdown, forms.markdown(found).encode())
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

    from ..eval.stats.compare import compare_runs

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
    from ..eval.stats.compare import beside_paper

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
