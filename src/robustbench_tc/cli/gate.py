"""`rbtc gate`: pass or fail, for continuous integration."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ..errors import UserError
from ..io.numbers import p_value, percent, points
from . import _console
from ._words import Subset

if TYPE_CHECKING:
    from ..eval.stats.gate import Verdict

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Scored run folder.")]
Against = Annotated[
    Path | None,
    typer.Option(metavar="BASE", help="A run of the same dataset; default: the run's own clean rows."),
]
MaxDrop = Annotated[float, typer.Option(help="The largest drop that passes, as a share.")]
Components = Annotated[
    list[str] | None,
    typer.Option(
        "--component", metavar="NAME[:DROP]", help="Look at this one, with its own --max-drop. Repeatable."
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Pass only what rules a larger drop out; else status 2."),
]
AllowMissing = Annotated[bool, typer.Option("--allow-missing", help="Pass a run that has not every row.")]
JUnit = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML.")]
Markdown = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a pull request's summary.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


def gate(
    run: Run,
    against: Against = None,
    max_drop: MaxDrop = 0.05,
    component: Components = None,
    strict: Strict = False,
    allow_missing: AllowMissing = False,
    subset: Subset = "all",
    junit: JUnit = None,
    markdown: Markdown = None,
    as_json: Json = False,
) -> None:
    """Fail where a run lost more than it may: status 0 passed, 1 failed, 2 not shown.

    A component fails where the drop that was seen is above --max-drop and is more than chance explains.

    Example: rbtc gate runs/mine --against runs/released --component reward:0.10 --junit gate.xml
    """
    from .. import api
    from ..eval import gate as forms

    for path in (junit, markdown):
        if path is not None:
            forms.check_place(path)
    found = api.gate(
        run,
        against,
        max_drop=max_drop,
        components=dict(map(_asked, component or ())),
        strict=strict,
        allow_missing=allow_missing,
        subset=subset,
    )
    if junit is not None:
        forms.save(junit, forms.junit(found))
    if markdown is not None:
        forms.save(markdown, forms.markdown(found).encode())
    if as_json:
        _console.json({"exit_code": found.exit_code, "sentence": forms.sentence(found), "verdict": found})
    else:
        _print(found, forms.sentence(found))
    raise typer.Exit(found.exit_code)


def _asked(word: str) -> tuple[str, float | None]:
    name, colon, drop = word.partition(":")
    try:
        return name, float(drop) if colon else None
    except ValueError:
        raise UserError(f"--component {word}: write it as NAME or NAME:DROP, such as reward:0.10") from None


def _print(found: "Verdict", sentence: str) -> None:
    from ..eval.gate import size

    names = ("", "before", "after", "drop", "95 %", "allowed", "p (Holm)", "cases", "could miss", "")
    table = Table()
    for place, name in enumerate(names):
        table.add_column(name, justify="left" if place in (0, len(names) - 1) else "right")
    for line in found.lines:
        table.add_row(
            line.name,
            percent(line.before),
            percent(line.after),
            points(line.drop.value),
            f"{points(line.drop.low)} to {points(line.drop.high)}",
            size(line.max_drop),
            p_value(line.p_holm),
            str(line.cases),
            size(line.could_miss),
            line.outcome,
        )
    _console.out.print(table)
    for note in found.notes:
        _console.out.print(_console.styled(_console.one_line(f"note: {note}"), style="yellow"))
    _console.out.print(_console.styled(sentence, style="bold"))
