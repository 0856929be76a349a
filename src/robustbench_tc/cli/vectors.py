"""`rbtc vectors` and `rbtc validate`: parser and scorers held against upstream, and against the release."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.table import Table

from ..errors import UserError
from . import _console

if TYPE_CHECKING:
    from ..eval.vectors import ReplyResult
    from ..eval.vectors.bfcl_multi_turn import MultiTurn


def vectors(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of *.jsonl vector files.")],
    show: Annotated[int, typer.Option(help="Print the first N unlisted rows.", min=0)] = 0,
    world_python: Annotated[
        str | None,
        typer.Option(help="A Python with bfcl-eval, for BFCL's multi-turn rows. Default: .venv-live's."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Hold parser, scorers and reward against oracle vectors; exit 1 if a row disagrees in an unlisted way.

    BFCL's multi-turn rows are carried out in its world (`make env-live`); without it they are not checked.

    Example: rbtc vectors ../shared/vectors --show 3
    """
    from ..eval.vectors import MULTI_TURN, Check, run_vectors
    from ..train_recipes.toolrl_dr.reward import check_vector

    checks: dict[str, Check] = {"toolrl_reward": check_vector}
    with ExitStack() as worlds:
        if any(folder.glob(f"{MULTI_TURN}*.jsonl")):
            try:
                checks[MULTI_TURN] = worlds.enter_context(_multi_turn(world_python))
            except UserError as reason:
                if world_python is not None:
                    raise
                _console.echo(f"{MULTI_TURN}*.jsonl: not checked: {reason}", stderr=True)
        results = run_vectors(folder, checks)
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


def _multi_turn(world_python: str | None) -> "MultiTurn":
    """The check of BFCL's multi-turn rows. Raises UserError where BFCL's world cannot be opened."""
    from ..builders.live.bfcl import tasks_in
    from ..eval.vectors.bfcl_multi_turn import MultiTurn
    from ..worlds import find

    python = find.bfcl_python(world_python)
    return MultiTurn(tasks_in(find.bfcl_data(python)), find.find(find.BFCL, python=python))


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
