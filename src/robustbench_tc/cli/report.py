"""`rbtc report`: the page over scored runs, and the check of our arithmetic against the paper's figures."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from ..errors import UserError
from ..io.numbers import NONE, number
from . import _console
from ._replacing import DiscardChanges
from ._words import LogKeys, Subset, one_of


def report(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="RUN...", help="Scored run folders, and logs of inspect_ai.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for report.html, .md, .csv and .json.")] = Path("report"),
    baseline: Annotated[
        str | None, typer.Option(help="Model or run that differences are marked against.")
    ] = None,
    ci: Annotated[
        Literal["cluster", "paper"],
        one_of(
            "--ci",
            "cluster",
            "paper",
            help="cluster: whole samples are the units. paper: rows independent, as in the paper; "
            "around Δ matched that holds the true value in .69 to .79 of runs, not .95.",
        ),
    ] = "cluster",
    subset: Subset = "all",
    release: Annotated[Path | None, typer.Option(help="Release folder: names rows that a run lacks.")] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Rows and replies, to be read in the page itself.")
    ] = True,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Values over the rows that are there.")
    ] = False,
    check_paper: Annotated[
        bool, typer.Option("--check-paper", help="Check our arithmetic against the paper's figures. No run.")
    ] = False,
    log_key: LogKeys = None,
    discard_changes: DiscardChanges = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON, write nothing.")] = False,
) -> None:
    """Write one self-contained page with the paper's tables and figures for your runs.

    Example: rbtc report runs/base runs/tuned --baseline base-model --out report
    Example: rbtc report logs/*.eval --out report
    """
    if check_paper:
        _check_paper(as_json)
        return
    if not runs:
        raise UserError("name at least one scored run folder (or --check-paper, which needs none)")
    from .. import api

    kept = f"the files in {out} are those of before; run the same command again"
    with _console.status("counting", kept) as progress:
        made = api.report(
            runs,
            None if as_json else out,
            baseline=baseline,
            ci=ci,
            subset=subset,
            release=release,
            allow_missing=allow_missing,
            browser=browser,
            discard_changes=discard_changes,
            log_keys=log_key or (),
            progress=progress,
        )
    if as_json:
        _console.json(made)
        return
    if ci == "paper":
        _console.err.print(f"--ci paper: {made.note}", markup=False)
    for line in made.gaps:
        _console.err.print(f"gap: {line}", markup=False)
    page = out / "report.html"
    size = f"{page.stat().st_size / 1e6:.1f} MB"
    _console.out.print(f"{page}, {size} (also .md, .csv, .json)", markup=False)


def _check_paper(as_json: bool) -> None:
    """Prints each check; exit code 1 where one fails."""
    from ..eval.report.check import check_paper

    lines = check_paper()
    if as_json:
        _console.json(lines)
    else:
        _print_table2()
        table = Table(title="the paper's printed figures from its counts", title_justify="left")
        table.add_column("check")
        table.add_column("found")
        table.add_column("")
        for line in lines:
            word = _console.styled("agrees", "green") if line.passed else _console.styled("differs", "red")
            table.add_row(line.what, line.found, word)
        _console.out.print(table)
        for line in lines:
            for detail in line.detail:
                _console.out.print(f"{line.what}: {detail}", markup=False)
    if not all(line.passed for line in lines):
        raise typer.Exit(1)


def _print_table2() -> None:
    """The paper's Table 2 as our arithmetic makes it."""
    from ..eval.report.content import TABLE2, papers

    table = Table(title="Table 2 from the paper's counts, ± half the exact interval", title_justify="left")
    for name in ("model", *(metric.replace("delta_", "Δ ") for metric in TABLE2)):
        table.add_column(name, justify="left" if name == "model" else "right", no_wrap=name == "model")
    for model in papers():
        found = [model.summary.values[metric] for metric in TABLE2]
        table.add_row(
            model.label, *(f"{number(x.value)} ±{number(x.half_width)}" if x else NONE for x in found)
        )
    _console.out.print(table)
