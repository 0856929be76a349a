"""The answer to an upload, as a terminal shows it: every check, and the result with its intervals."""

from typing import TYPE_CHECKING

from ..io import numbers
from . import _console

if TYPE_CHECKING:
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
