"""What scored runs say, for people: `summary`, `report`, `failures`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ..errors import UserError
from ..option import Option, Tell, silent
from . import options

if TYPE_CHECKING:
    from ..eval.report.content import Report
    from ..eval.stats.failures import Listing
    from ..eval.stats.screen import Screen
    from ..proxy.summary import Summary


def summary(
    run: Annotated["str | Path", options.RUN_OR_JOURNAL],
    *,
    subset: Annotated[Literal["all", "paper", "verified"], options.SUBSET] = "all",
    allow_missing: Annotated[bool, options.ALLOW_MISSING] = False,
    full: Annotated[bool, options.FULL] = False,
    worlds: Annotated["Sequence[str]", options.WORLDS] = (),
    world_python: Annotated[str | None, options.WORLD_PYTHON] = None,
) -> "Screen | Summary":
    """Summarise a scored run: accuracies, drops with their evidence, the worst types, next steps.

    For a run in progress or stopped it covers the answers so far and writes nothing into its folder. For a
    door's journal it prints calls, errors and faults, and what the agent did after each fault.

    Example: rbtc summary runs/qwen3-8b-fc --subset paper
    Example: rbtc summary runs/qwen3-8b-fc --full
    Example: rbtc summary journal.jsonl

    Raises UserError for a file that is not a journal, and for a run that is not scored or lacks answers.

    >>> summary("runs/mine").overview.answer.sentence  # doctest: +SKIP
    """
    from ..eval.record import open_run
    from ..eval.stats.screen import screen, screen_so_far

    if Path(run).is_file():
        from ..proxy.journal import read_exchanges
        from ..proxy.summary import summary as of_journal

        return of_journal(read_exchanges(Path(run)))
    folder = open_run(Path(run))
    if folder.under_way:
        return screen_so_far(folder, subset=subset, full=full, worlds=worlds, world_python=world_python)
    return screen(folder, subset=subset, allow_missing=allow_missing, full=full)


def report(
    runs: Annotated[
        "Sequence[str | Path]",
        Option(help="Scored run folders, and logs of inspect_ai or lm-eval.", typed=tuple[str, ...]),
    ] = (),
    out: Annotated["str | Path | None", options.OUT] = None,
    *,
    baseline: Annotated[str | None, Option(help="Model or run to mark differences from.")] = None,
    ci: Annotated[
        Literal["cluster", "paper"],
        Option(
            help="cluster: whole samples are the units. paper: rows are independent, as in the paper; "
            "such intervals of Δ matched contain the true value in .69 to .79 of runs, not .95."
        ),
    ] = "cluster",
    subset: Annotated[Literal["all", "paper", "verified"], options.SUBSET] = "all",
    dataset: Annotated["str | Path | None", options.DATASET] = None,
    worlds: Annotated["Sequence[str]", options.WORLDS] = (),
    world_python: Annotated[str | None, options.WORLD_PYTHON] = None,
    browser: Annotated[
        bool, Option(help="Include rows and replies, or episodes step by step, in the page.")
    ] = True,
    allow_missing: Annotated[bool, options.ALLOW_MISSING] = False,
    check_paper: Annotated[
        bool, Option(help="Check our arithmetic against the paper's figures; needs no run.")
    ] = False,
    by: Annotated[
        Literal["domain"] | None,
        Option(help="domain: the drop in each source (live: world), and for several runs train × test."),
    ] = None,
    held_out: Annotated[
        Sequence[str],
        Option(
            help="RUN=DOMAIN: the domain its model was trained without (hold_out). Repeatable.", read=tuple
        ),
    ] = (),
    log_keys: Annotated[Sequence[str], options.LOG_KEY] = (),
    discard_changes: Annotated[bool, options.DISCARD_CHANGES] = False,
    progress: Tell = silent,
) -> "Report":
    """Write one self-contained page with the paper's tables and figures for your runs.

    --out is a folder for report.html, .md, .csv and .json; without it only the answers are printed. With
    --dataset the report also names the rows that a run lacks. For live runs the page shows the cost of each
    fault, and episodes step by step, replayed without the model.

    Example: rbtc report runs/base runs/tuned --baseline base-model --out report
    Example: rbtc report logs/base.eval logs/tuned.eval --out report
    Example: rbtc report runs/all runs/tuned --by domain --held-out runs/tuned=orders

    Raises UserError for a run that is not scored or lacks rows, and for a folder that holds anything but a
    report.

    >>> report(["runs/base", "runs/tuned"], "report").models[0].label  # doctest: +SKIP
    """
    from ..eval.report import assemble

    if check_paper:
        return assemble.paper_check()
    if not runs:
        raise UserError("name at least one scored run folder (or --check-paper, which needs none)")
    return assemble.report(
        [str(run).rstrip("/") or "/" for run in runs],
        None if out is None else Path(out),
        baseline=baseline,
        convention=ci,
        subset=subset,
        allow_missing=allow_missing,
        dataset=None if dataset is None else str(dataset),
        worlds=worlds,
        world_python=world_python,
        log_keys=log_keys,
        browser=browser,
        discard_changes=discard_changes,
        by=by,
        held_out=held_out,
        progress=progress,
    )


def failures(
    run: Annotated["str | Path", options.RUN],
    *,
    type_code: Annotated[str | None, options.TYPE] = None,
    error_mode: Annotated[
        str | None,
        Option(
            help="empty, omitted, missing_call, wrong_name, ghost, wrong_parameters, name_bias, "
            "wrong_language or other."
        ),
    ] = None,
    source: Annotated[Sequence[str], options.SOURCE] = (),
    flag: Annotated[
        str | None,
        Option(help="Only replies whose verdict has this flag (quoted_call, …), right ones included."),
    ] = None,
    limit: Annotated[int, options.LIMIT] = 50,
) -> "Listing":
    """List a run's wrong answers: gold call and answer side by side, and why it is wrong.

    Example: rbtc failures runs/qwen3-8b-fc --type transient_timeout --error-mode omitted
    Example: rbtc failures runs/qwen3-8b-fc --flag quoted_call

    Raises UserError for a run that is not scored, and for names that do not occur.

    >>> failures("runs/mine", type_code="CD_AB").found  # doctest: +SKIP
    """
    from ..eval.stats import failures as room

    return room.failures(
        Path(run), type_code=type_code, error_mode=error_mode, sources=source, flag=flag, limit=limit
    )
