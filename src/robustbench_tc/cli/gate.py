"""`rbtc gate`: pass or fail, for continuous integration."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table

from ..errors import UserError
from ..io.numbers import p_value, percent, points
from . import _console
from ._words import Subset, one_of

if TYPE_CHECKING:
    from ..eval.stats.gate import Verdict

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Scored run folder.")]
Against = Annotated[
    Path | None,
    typer.Option(
        metavar="BASE", help="Baseline: a run of the same dataset; default: the run's own clean rows."
    ),
]
MaxDrop = Annotated[float, typer.Option(help="Largest drop that passes, as a share.")]
Components = Annotated[
    list[str] | None,
    typer.Option(
        "--component", metavar="NAME[:DROP]", help="Gate this one, with its own --max-drop. Repeatable."
    ),
]
GatedOn = Annotated[
    Literal["meant", "delivered"] | None,
    one_of(
        "verdict",
        "meant",
        "delivered",
        help="Gate the calls that the model meant, or those that its server delivered (default in fc mode).",
    ),
]
AllowUndelivered = Annotated[
    bool, typer.Option("--allow-undelivered", help="Pass a server that loses more than 1 % of the calls.")
]
AllowInconclusive = Annotated[
    bool, typer.Option("--allow-inconclusive", help="Exit 0 where the run is too small to tell.")
]
AgentErrors = Annotated[
    int, typer.Option("--allow-agent-errors", min=0, metavar="N", help="Rows on which the agent may fail.")
]
AllowMissing = Annotated[
    bool, typer.Option("--allow-missing", help="Pass a run in which rows have no verdict.")
]
Baseline = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Save the verdicts there, for a later --against.")
]
JUnit = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML.")]
Markdown = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a pull request's summary.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


def gate(
    run: Run,
    against: Against = None,
    max_drop: MaxDrop = 0.05,
    component: Components = None,
    verdict: GatedOn = None,
    allow_undelivered: AllowUndelivered = False,
    allow_inconclusive: AllowInconclusive = False,
    allow_agent_errors: AgentErrors = 0,
    allow_missing: AllowMissing = False,
    save_baseline: Baseline = None,
    subset: Subset = "all",
    junit: JUnit = None,
    markdown: Markdown = None,
    as_json: Json = False,
) -> None:
    """Fail CI if accuracy drops by more than --max-drop.

    Exits 0 (passed), 1 (failed) or 3 (inconclusive: too few cases to tell).

    Example: rbtc gate runs/mine --against baseline --component reward:0.10 --junit gate.xml
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
        verdict=verdict,
        allow_undelivered=allow_undelivered,
        allow_inconclusive=allow_inconclusive,
        allow_agent_errors=allow_agent_errors,
        save_baseline=save_baseline,
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

    names = ("", "before", "after", "drop", "95 %", "allowed", "p (Holm)", "cases", "")
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
            line.outcome,
        )
    echo = _console.out.print
    echo(_console.styled(sentence, style="bold"))
    echo(table)
    for reason in (*found.faults, *(f"{line.name}: {line.why}" for line in found.lines if line.why)):
        echo(_console.styled(_console.one_line(reason)))
    for note in found.notes:
        echo(_console.styled(_console.one_line(f"note: {note}"), style="yellow"))
