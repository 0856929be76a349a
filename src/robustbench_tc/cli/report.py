"""`rbtc report`: the page over scored runs, and the check of our arithmetic against the paper's figures."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table
from rich.text import Text

from ..errors import UserError, unknown
from . import _console
from .sql import subset_of

if TYPE_CHECKING:
    from ..eval.report.content import Report


def report(
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN...", help="Scored run folders.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for report.html, .md, .csv and .json.")] = Path("report"),
    baseline: Annotated[
        str | None, typer.Option(help="Model or run that differences are marked against.")
    ] = None,
    ci: Annotated[
        str, typer.Option(help="cluster: whole samples resampled. paper: rows independent, as in the paper.")
    ] = "cluster",
    subset: Annotated[
        str, typer.Option(help="all, or paper: rows whose kind the paper's release has.")
    ] = "all",
    release: Annotated[Path | None, typer.Option(help="Release folder: names rows that a run lacks.")] = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Values over the rows that are there.")
    ] = False,
    check_paper: Annotated[
        bool, typer.Option("--check-paper", help="Check our arithmetic against the paper's figures. No run.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON, write nothing.")] = False,
) -> None:
    """Write one self-contained page with the paper's tables and figures for your runs.

    Example: rbtc report runs/base runs/tuned --baseline base-model --out report
    """
    if check_paper:
        _check_paper(as_json)
        return
    if not runs:
        raise UserError("name at least one scored run folder (or --check-paper, which needs none)")
    from ..eval.report import page

    with _console.status("counting, resampling"):
        made = make(
            runs,
            baseline=baseline,
            ci=ci,
            subset=subset,
            release=release,
            allow_missing=allow_missing,
        )
    if as_json:
        typer.echo(page.as_json(made), nl=False)
        return
    written = page.write(made, out)
    for line in made.gaps:
        _console.err.print(f"gap: {line}", markup=False)
    _console.out.print(f"{written[0]} (also .md, .csv, .json)", markup=False)


def make(
    folders: list[str],
    *,
    baseline: str | None = None,
    ci: str = "cluster",
    subset: str = "all",
    release: Path | None = None,
    allow_missing: bool = False,
) -> "Report":
    """The report over run folders, with the marts run and handed in. Raises UserError."""
    from ..eval.report import content
    from ..eval.stats import runs
    from ..sql.query import Inputs, connect, text_of

    wanted = subset_of(subset)
    options = content.Options(
        convention=_convention(ci), subset=wanted, allow_missing=allow_missing, baseline=baseline
    )
    names = [folder.rstrip("/") or "/" for folder in folders]
    read = [runs.read(folder) for folder in names]
    inputs = Inputs(
        runs=names,
        release=None if release is None else str(release),
        subset=wanted,
        allow_missing=allow_missing,
    )
    expected: list[tuple[str, str]] | None = None
    marts: dict[str, list[dict[str, Any]]] = {}
    with connect(inputs, check=False) as connection:  # `runs.read` has looked for doubled rows
        if release is not None:
            found = connection.sql("select clean_id, type_code from stg_release").fetchall()
            expected = [(str(clean_id), str(code)) for clean_id, code in found]
        for mart in content.MARTS:
            marts[mart] = connection.sql(text_of(mart, inputs)).to_arrow_table().to_pylist()
    return content.build(read, options, marts=marts, expected=expected)


def _convention(word: str) -> Literal["cluster", "paper"]:
    if word == "cluster":
        return "cluster"
    if word == "paper":
        return "paper"
    raise unknown("--ci", word, ("cluster", "paper"))


def _check_paper(as_json: bool) -> None:
    """Prints each check; exit code 1 where one fails."""
    from ..eval.report.check import check_paper

    lines = check_paper()
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(lines), indent=1).decode())
    else:
        _print_table2()
        table = Table(title="the paper's printed figures from its counts", title_justify="left")
        table.add_column("check")
        table.add_column("found")
        table.add_column("")
        for line in lines:
            word = Text("agrees", style="green") if line.passed else Text("differs", style="red")
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
        table.add_row(model.label, *(f"{x.value:.3f} ±{x.half_width:.3f}" if x else "–" for x in found))
    _console.out.print(table)
