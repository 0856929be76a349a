"""`rbtc failures`: the wrong answers of a run."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError
from . import _console
from ._console import styled
from ._predictions import beginning, calls_of, dataset_of, reply_of


def failures(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Scored run folder.")],
    type_code: Annotated[str | None, typer.Option("--type", help="Only this type, or clean.")] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help="empty, omitted, missing_call, wrong_name, ghost, wrong_parameters, name_bias, "
            "wrong_language or other."
        ),
    ] = None,
    source: Annotated[str | None, typer.Option(help="Only this source.")] = None,
    flag: Annotated[
        str | None,
        typer.Option(help="Replies whose verdict carries it, right ones too: quoted_call …"),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows to print.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List a run's wrong answers: the gold call and the answer side by side, and why it is wrong.

    Example: rbtc failures runs/qwen3-8b-fc --type transient_timeout --mode omitted
    Example: rbtc failures runs/qwen3-8b-fc --flag quoted_call
    """
    from ..eval import failures as room

    found = room.failures(run, type_code=type_code, mode=mode, source=source, flag=flag)
    if as_json:
        _console.json(found[:limit])
        return
    dataset, problem = dataset_of(run, None)
    rows = {} if dataset is None else {one.id: one for one in dataset.rows}
    lines = []
    for row in found[:limit]:
        sample, verdict = rows.get(row.prediction.id), row.verdict
        gold = "" if sample is None else " or ".join(map(calls_of, sample.golden_answers))
        answer = calls_of(verdict.calls) if verdict and verdict.calls else reply_of(row.prediction)
        mode, why = "", ""
        if verdict is not None:
            mode, why = verdict.error_mode or "right", room.said(verdict, sample)
        lines.append((row.prediction.id, mode, beginning(gold, 160), beginning(answer, 160), why))
    columns = ("id", "error mode", "gold", "answer", "why")
    _console.out.print(_console.table(columns, lines, folded=columns))
    if problem:
        _console.out.print(styled(f"no gold calls: {problem}"))
    shown = f", the first {limit} shown (--limit)" if len(found) > limit else ""
    _console.out.print(
        f"{len(found)} {'wrong answers' if flag is None else 'replies'}{shown}; "
        f"rbtc show ID --run {run} shows one whole",
        markup=False,
    )
    _say_why(run)


def _say_why(run: Path) -> None:
    """Why requests failed, over the whole run: the table above does not list failed requests."""
    from ..eval import reasons, record

    try:
        sessions = record.open_run(run).record.sessions
    except UserError:  # the verdicts alone are enough
        sessions = []
    found = reasons.of_predictions(run / "scores.parquet")
    for line in reasons.lines(found, sessions[-1] if sessions else None):
        _console.out.print(styled(line))
