"""Two scored runs beside each other: `compare`, `gate`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from ..errors import UserError
from ..option import Option, Tell, silent
from . import options

if TYPE_CHECKING:
    from ..eval.stats.compare import Comparison
    from ..eval.stats.gate import Verdict
    from ..eval.stats.runs import Run


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
    allow_agent_errors: Annotated[
        int, Option(help="Number of rows on which the agent may fail.", at_least=0)
    ] = 0,
    allow_missing: Annotated[bool, options.ALLOW_MISSING] = False,
    save_baseline: Annotated[
        Path | None, Option(help="Save the verdicts to this folder, for a later --against.")
    ] = None,
    subset: Annotated[Literal["all", "paper", "verified"], options.SUBSET] = "all",
    junit: Annotated[Path | None, Option(help="Also write JUnit XML to this file.")] = None,
    markdown: Annotated[Path | None, Option(help="Also write a pull request's summary to this file.")] = None,
    say: Tell = silent,
) -> "Verdict":
    """Fail CI if accuracy drops by more than --max-drop.

    Exits 0 (passed), 1 (failed) or 3 (inconclusive: too few cases to tell). Without --against a run is
    compared with its own clean rows.

    Example: rbtc gate runs/mine --against baseline --component reward:0.10 --junit gate.xml

    Raises UserError for runs that cannot be compared.

    >>> gate("runs/mine", against="runs/released").outcome  # doctest: +SKIP
    """
    from ..eval.stats import gate as room, gate_forms as forms
    from ..eval.stats.runs import Run, read_run
    from ..io.files import check_marked, save_marked

    for file in (junit, markdown):
        if file is not None:
            check_marked(file, forms.MARK)
    new = run if isinstance(run, Run) else read_run(run)
    base = against if isinstance(against, Run) or against is None else read_run(against)
    found = room.judge(
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
        say(f"baseline saved in {save_baseline}: compare later runs with --against {save_baseline}")
    if junit is not None:
        save_marked(junit, forms.junit(found), forms.MARK)
    if markdown is not None:
        save_marked(markdown, forms.markdown(found).encode(), forms.MARK)
    return found


def compare(
    a: Annotated["str | Path | Run", Option(name="base", help="A: a scored run folder or a log.", typed=str)],
    b: Annotated[
        "str | Path | Run",
        Option(name="other", help="B: the run or log to compare with it, or paper:MODEL.", typed=str),
    ],
    more: Annotated[
        "Sequence[str | Path | Run]",
        Option(help="Further runs with --defend, for a table of defences.", typed=tuple[str, ...]),
    ] = (),
    *,
    subset: Annotated[Literal["all", "paper", "verified"], options.SUBSET] = "all",
    log_keys: Annotated[Sequence[str], options.LOG_KEY] = (),
    progress: Tell = silent,
) -> "Comparison":
    """Compare two runs on the rows that both answered, with paired tests.

    If B is A with defences (`eval --defend`), it also prints what they recover, their harm on clean rows and
    their cost, one line per run. With paper:MODEL, A is compared with one of the paper's models, unpaired.

    Example: rbtc compare runs/base runs/tuned
    Example: rbtc compare runs/plain runs/dedupe runs/retry
    Example: rbtc compare runs/base paper:o4-mini

    Raises UserError for a run that is not scored, a log that cannot be read, and for runs of different
    datasets or without a common row.

    >>> compare("runs/base", "runs/tuned").verdict  # doctest: +SKIP
    """
    from ..eval.stats import compare as room

    return room.compare((a, b, *more), subset=subset, log_keys=log_keys, progress=progress)
