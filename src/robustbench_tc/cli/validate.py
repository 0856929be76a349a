"""`rbtc validate`: the scorers held against a release's own golden answers."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from . import _console


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
