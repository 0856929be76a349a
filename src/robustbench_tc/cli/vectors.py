"""`rbtc vectors` and `rbtc validate`: parser and scorers held against upstream, and against the release."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.table import Table

from . import _console

if TYPE_CHECKING:
    from ..eval.vectors import ReplyResult


def vectors(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of *.jsonl vector files.")],
    show: Annotated[int, typer.Option(help="Print the first N unlisted rows.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Hold parser, scorers and reward against oracle vectors; exit 1 if a row disagrees in an unlisted way.

    Example: rbtc vectors ../shared/vectors --show 3
    """
    from ..eval.vectors import run_vectors
    from ..train_recipes.toolrl_dr.reward import check_vector

    results = run_vectors(folder, {"toolrl_reward": check_vector})
    if as_json:
        _console.json(results)
    else:
        table = Table()
        for name in ("file", "rows", "agreed", "listed disagreements", "unlisted"):
            table.add_column(name, justify="right" if name in ("rows", "agreed", "unlisted") else "left")
        for result in results:
            listed = [f"{name} {count}" for name, count in sorted(result.listed.items())]
            if result.not_checked == result.rows:
                table.add_row(result.name, str(result.rows), "", "not checked", "")
                continue
            if result.not_checked:
                listed.append(f"not checked {result.not_checked}")
            counts = str(result.rows), str(result.agreed), ", ".join(listed), str(len(result.unlisted))
            table.add_row(result.name, *counts)
        _console.out.print(table)
        for result in results:
            if result.replies is not None:
                _console.out.print(_styles(result.name, result.replies))
    rows = [(result.name, row) for result in results for row in result.unlisted]
    for name, row in rows[:show]:
        _console.echo(f"{name}: {msgspec.json.encode(row).decode()}", stderr=as_json)
    if rows:
        raise typer.Exit(1)


def _styles(name: str, found: "ReplyResult") -> Table:
    """Recall and false acceptance of every style of replies."""
    table = Table(
        title=f"{name}: recall {found.share('call'):.3f}, false acceptance {found.share('none'):.3f}"
    )
    for column in ("style", "replies", "recall", "false acceptance"):
        table.add_column(column, justify="left" if column == "style" else "right")
    for style in found.styles:
        shares = (f"{style.share:.3f}", "") if style.kind == "call" else ("", f"{style.share:.3f}")
        table.add_row(style.style, str(style.replies), *shares)
    return table


def validate(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Release folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Self-check a release: every golden answer, written out, must score 1.0. Exit 1 if one does not.

    Example: rbtc validate robustbench-tc
    """
    from ..eval.validate import validate_release

    reports = validate_release(release)
    if as_json:
        _console.json(reports)
    else:
        table = Table()
        for name in ("config", "rows", "passed"):
            table.add_column(name, justify="left" if name == "config" else "right")
        for report in reports:
            table.add_row(report.config, str(report.rows), str(report.passed))
        total, passed = sum(r.rows for r in reports), sum(r.passed for r in reports)
        table.add_section()
        table.add_row("all", str(total), str(passed))
        _console.out.print(table)
        for report in reports:
            for row_id, reason in report.failed.items():
                _console.echo(f"{row_id}: {reason}")
    if any(report.failed for report in reports):
        raise typer.Exit(1)
