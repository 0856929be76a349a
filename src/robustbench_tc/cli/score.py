"""`rbtc score`: a run's verdicts, or how one of them came about."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError, unknown
from . import _console
from ._of_runs import DatasetOption, say, say_left_out
from ._workers import Address, Engine, NumProc, workers

if TYPE_CHECKING:
    from ..eval.record import RunFolder


def score(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or the journal of a door.")],
    explain: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Score nothing; show how the reply to this row is read and judged."),
    ] = None,
    dataset: DatasetOption = None,
    num_proc: NumProc = 1,
    engine: Engine = "local",
    address: Address = None,
    out: Annotated[
        Path | None, typer.Option(help="Of a journal: the run folder; default runs/MODEL-fc-door.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Of a journal: the run's name.")] = None,
    repeat: Annotated[
        int | None, typer.Option(help="Of a journal: how many attempts at each row count.")
    ] = None,
) -> None:
    """Turn a run's predictions into verdicts (scores.parquet), asking the model nothing; print the summary.

    The journal of `rbtc proxy llm` becomes a run folder like any other (docs/proxy-llm.md).

    Example: rbtc score runs/qwen3-8b-fc
    Example: rbtc score journal.jsonl --out runs/my-agent
    Example: rbtc score runs/qwen3-8b-fc --explain "apibank__level1_301::transient_timeout"
    """
    from .. import api
    from ..eval import record
    from ..eval.stats.screen import reader_note, screen

    if run.is_file():
        if explain is not None:
            raise UserError(f"--explain needs a run folder: `rbtc score {run}` makes one of this journal")
        _score_journal(run, dataset, model, repeat, out)
        return
    if (out, model, repeat) != (None, None, None):
        raise UserError("--out, --model and --repeat are for the journal of a door; this is none")
    folder = record.open_run(run)
    if explain is not None:
        _explain(folder, explain, dataset)
        return
    if note := reader_note(folder):
        _console.note(note)
    who = workers(num_proc, engine, address)
    kept = f"{folder.scores_path} was not touched, the answers neither; score again"
    with _console.keeping(kept), _console.working("scoring"):
        api.score(run, dataset=dataset, workers=who, progress=_console.note)
    scored = record.open_run(run)
    _console.note(f"scored by reader {scored.record.reader}: {scored.scores_path}")
    _console.show(screen(scored, allow_missing=True))


def _score_journal(
    journal: Path, dataset: str | None, model: str | None, repeat: int | None, out: Path | None
) -> None:
    from ..api import proxy
    from ..eval.stats.screen import screen

    kept = f"{journal} was not touched; score it again"
    with _console.keeping(kept), _console.working("scoring"):
        made = proxy.score_journal(journal, dataset=dataset, model=model, repeat=repeat, out=out)
    say(made.folder.notes)
    say_left_out(made.folder.record.left_out)
    for reason, count in made.failures.items():
        _console.note(f"without an answer: {count} × {reason}")
    _console.note(f"{made.predictions} predictions in {made.folder.path}; scored: {made.folder.scores_path}")
    _console.show(screen(made.folder, allow_missing=True))


def _explain(folder: "RunFolder", wanted: str, dataset: str | None) -> None:
    from ..eval import verdicts
    from ..eval.explain import explain
    from ..schema import dumps

    data = verdicts.dataset_of(folder, dataset)
    rows, anchors = data.by_id, data.anchors()
    found = [one for one in verdicts.read_or_remake(folder, data)[0] if one.id == wanted]
    if not found:
        raise unknown("row of this run", wanted, rows)
    for one in found:
        if one.status == "request_error":
            raise UserError(f"{one.id}: no answer was had ({one.error}): run the same rbtc eval again")
        made = explain(one, rows[one.id], anchors[one.id])
        _console.echo(f"{made.id}, repeat {made.repeat}, read by reader {made.reader}")
        for part in made.passages:
            _console.echo(f"{part.kind} [{part.start}:{part.end}] {part.text!r}")
        tried = "native calls" if made.verdict.variant == "fc" else ", ".join(made.tried)
        _console.echo(f"tried: {tried or 'nothing'}")
        for call in made.verdict.calls:
            _console.echo(f"call: {call.name} {dumps(call.parameters)}")
        verdict = (
            "right" if made.verdict.correct else f"wrong ({made.verdict.error_mode}: {made.verdict.reason})"
        )
        _console.echo(f"verdict: {verdict}, score {made.verdict.score:g}, variant {made.verdict.variant}")
        if made.verdict.stage:
            _console.echo(f"stage: {made.verdict.stage}, {made.verdict.stage_detail}")
        _console.echo(f"flags: {', '.join(made.verdict.flags) or 'none'}")
