"""The answer to an upload, as a terminal shows it: every check, and the result with its intervals."""

from typing import TYPE_CHECKING

from ..io import numbers
from . import _console

if TYPE_CHECKING:
    from ..eval.leaderboard.live_records import LiveEntry
    from ..eval.leaderboard.records import Checked


def print_checked(checked: "Checked") -> None:
    """Prints the checks in their order and, where all passed, the table."""
    from rich.table import Table

    from .. import taxonomy
    from ..eval.leaderboard.refusal import STEPS

    echo = _console.out.print
    for step in checked.steps:
        word = {True: "passed", False: "FAILED", None: "not reached"}[step.passed]
        echo(f"{word:12}{STEPS[step.code]}{': ' + step.text if step.text else ''}", markup=False)
        for line in step.details:
            echo(f"            {line}", markup=False)
    if checked.live is not None:
        _print_live(checked.live)
    if checked.entry is None:
        return
    table = Table()
    for name in ("rows", "n", "right", "accuracy", "95 %"):
        table.add_column(name, justify="left" if name == "rows" else "right", no_wrap=True)
    for name in (taxonomy.CLEAN, "perturbed", *taxonomy.COMPONENTS):
        metric = checked.entry.metrics[name if name in checked.entry.metrics else f"accuracy_{name}"]
        correct, n = checked.entry.counts[name]
        table.add_row(name, str(n), str(correct), numbers.number(metric.value), numbers.interval(metric))
    echo(table)
    claims = checked.claims
    if claims is not None:
        echo(
            f"the file's own verdicts (not used) agree in {claims.agree} of {claims.rows} rows", markup=False
        )


def _print_live(entry: "LiveEntry") -> None:
    """Success by kind of fault, as `rbtc live report` spells it."""
    from rich.table import Table

    from ..eval.leaderboard import live_flags
    from ..eval.live import report

    table = Table()
    for name in ("episodes", "right / n", "success", "Δ to clean", "recovered", "false success"):
        table.add_column(name, justify="left" if name == "episodes" else "right", no_wrap=True)
    table.add_row("clean", report.right_of(entry.clean), report.spelled(entry.clean), "", "", "")
    for line in entry.lines:
        table.add_row(
            line.name,
            report.right_of(line.success),
            report.spelled(line.success),
            report.spelled(line.delta),
            "" if line.recovery is None else report.spelled(line.recovery),
            report.false_success(line),
        )
    _console.out.print(table)
    for flag in entry.flags:
        _console.out.print(f"{flag.code}: {live_flags.says(flag)}; it has no rank", markup=False)
