"""`rbtc score`, `summary`, `export`, `import`, `serve-command`: everything about a run but the asking."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import UserError, unknown
from ..io.numbers import counts, interval, number, p_value
from . import _console
from ._words import Subset, one_of
from ._workers import Address, Engine, NumProc, workers

if TYPE_CHECKING:
    from rich.table import Table

    from ..eval.record import RunFolder
    from ..eval.stats import packs
    from ..eval.stats.intervals import Interval
    from ..eval.stats.overview import Overview


DatasetName = Annotated[
    str, typer.Argument(metavar="[DATASET]", help="Release folder, Hub id org/name, or the paper's api_eval.")
]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
DatasetOption = Annotated[
    str | None,
    typer.Option("--dataset", help="Where the run's dataset lies now, if it was moved."),
]
AllowMissing = Annotated[
    bool, typer.Option("--allow-missing", help="Print numbers although some rows have no answer.")
]


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
    """Turn a run's predictions into verdicts (scores.parquet) without asking the model again.

    The journal of `rbtc proxy llm` becomes a run folder like any other (docs/proxy-llm.md).

    Example: rbtc score runs/qwen3-8b-fc
    Example: rbtc score journal.jsonl --out runs/my-agent
    Example: rbtc score runs/qwen3-8b-fc --explain "apibank__level1_301::transient_timeout"
    """
    from .. import api
    from ..eval import record

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
    _say_reader(folder)
    who = workers(num_proc, engine, address)
    kept = f"{folder.scores_path} was not touched, the answers neither; score again"
    with _console.keeping(kept), _console.working("scoring"):
        api.score(run, dataset=dataset, workers=who, progress=_console.note)
    _console.err.print(f"scored: {folder.scores_path}", markup=False)


def _score_journal(
    journal: Path, dataset: str | None, model: str | None, repeat: int | None, out: Path | None
) -> None:
    from ..api import proxy

    kept = f"{journal} was not touched; score it again"
    with _console.keeping(kept), _console.working("scoring"):
        made = proxy.score_journal(journal, dataset=dataset, model=model, repeat=repeat, out=out)
    say(made.folder.notes)
    say_left_out(made.folder.record.left_out)
    for reason, count in made.failures.items():
        _console.note(f"without an answer: {count} × {reason}")
    _console.note(f"{made.predictions} predictions in {made.folder.path}; scored: {made.folder.scores_path}")


def _say_reader(folder: "RunFolder") -> None:
    """A line where the run's verdicts rest on another version of the reader than this package's."""
    from ..eval.parse import READER_VERSION

    made_by = folder.record.reader or "1"
    if folder.scores_path.is_file() and made_by != READER_VERSION:
        _console.note(
            f"the verdicts of {folder.path} were made by version {made_by} of the reader, this is version "
            f"{READER_VERSION} (docs/calls.md): `rbtc score {folder.path}` makes them again"
        )


def _explain(folder: "RunFolder", wanted: str, dataset: str | None) -> None:
    from ..eval import verdicts
    from ..eval.explain import explain
    from ..schema import dumps

    data = verdicts.dataset_of(folder, dataset)
    rows, anchors = {row.id: row for row in data.rows}, data.anchors()
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


def summary(
    run: Run,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    subset: Subset = "all",
    allow_missing: AllowMissing = False,
    by: Annotated[
        Literal["component", "level"],
        one_of("grouping", "component", "level", help="The lines of the first table: component or level."),
    ] = "component",
) -> None:
    """Print clean and perturbed accuracy, the four gaps, retention and error modes of a scored run.

    Example: rbtc summary runs/qwen3-8b-fc --subset paper
    Example: rbtc summary runs/qwen3-8b-fc --by level
    """
    from ..eval import record

    print_summary(record.open_run(run), subset, allow_missing, as_json, by_level=by == "level")


def serve_command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name or Hub id of the models' table.")],
    weights: Annotated[
        str | None, typer.Option(help="Folder or Hub id; needed where the table names none.")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
) -> None:
    """Print the `vllm serve` line for one of the paper's models.

    Example: rbtc serve-command Qwen3-8B
    """
    from ..eval.models import serve_command as line

    _console.echo(line(model, weights=weights, port=port))


def export(
    run: Run,
    out: Annotated[Path, typer.Option(help="The .jsonl file to write.")],
    layout: Annotated[
        Literal["ours", "paper"],
        one_of("layout", "ours", "paper", help="ours: every column. paper: the form of the paper's release."),
    ] = "ours",
    dataset: DatasetOption = None,
) -> None:
    """Write a run's predictions as JSON lines.

    Example: rbtc export runs/qwen3-8b-fc --layout paper --out qwen3-8b.jsonl
    """
    from ..eval import exchange, predictions, record, score, verdicts
    from ..io.files import check_file

    check_file(out)
    folder = record.open_run(run)
    data = verdicts.dataset_of(folder, dataset)
    found, remade = verdicts.read_or_remake(folder, data)
    say([] if remade is None else [remade])
    if layout == "ours":
        predictions.write_lines(out, found)
    else:
        rows = {row.id: row for row in data.rows}
        exchange.write_predictions(
            out,
            found,
            rows,
            lambda one, row: score.read(one, row).calls,
        )
    _console.err.print(f"{len(found)} predictions in {out}", markup=False)


def import_(
    predictions_path: Annotated[
        Path, typer.Argument(metavar="PREDICTIONS", help="A .jsonl file, ours or the paper's, or a folder.")
    ],
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="What was asked.")],
    model: Annotated[str, typer.Option(help="Whose answers they are.")],
    mode: Annotated[str, typer.Option(help="prompt or fc: how they were asked.")] = "prompt",
    revision: Annotated[str | None, typer.Option(help="Of a Hub dataset.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; default runs/MODEL-MODE-imported.")] = None,
) -> None:
    """Make a run folder of existing predictions and score it.

    Example: rbtc import predictions/ api_eval --model o4-mini --mode fc
    """
    from ..eval import exchange, inputs, record, verdicts
    from ..eval import predictions as files

    if out is not None:
        record.check_place(out)
    data = inputs.load(dataset, revision=revision)
    wanted = record.mode_of(mode)
    found, left_out = exchange.read_predictions(predictions_path, data, model=model, mode=wanted)
    asked = {one.id for one in found}
    settings = record.Settings(
        fingerprint=data.fingerprint(),
        model=model,
        mode=wanted,
        backend="import",
        decoding={},
        prompt_version="unknown",
        selection=inputs.Selection(),
        repeat=1 + max(one.repeat for one in found),
    )
    place = out or record.default_place(model, wanted, "-imported")
    folder = record.start(place, data, settings, len(found))
    say(folder.notes)
    folder.record.left_out = data.left_out | left_out
    folder.record.totals = files.totals(found)
    files.write(folder.predictions_path, found)
    folder.save()
    say_left_out(folder.record.left_out)
    if remade := verdicts.score_file(folder, data):
        _console.note(remade)
    absent = len(data.rows) - len(asked)
    tail = f"; {absent} rows of the dataset have none" if absent else ""
    _console.err.print(f"{len(found)} predictions in {folder.path}{tail}", markup=False)


# --- what several verbs do ------------------------------------------------------------------------------


def say_left_out(left_out: dict[str, int]) -> None:
    """Rows of the dataset that cannot be evaluated, by reason."""
    for reason, count in left_out.items():
        _console.err.print(f"left out: {count} × {reason}", markup=False)


def say(notes: Sequence[str]) -> None:
    for one in notes:
        _console.note(one)


def print_summary(
    folder: "RunFolder", subset: Subset, allow_missing: bool, as_json: bool, *, by_level: bool = False
) -> None:
    """Prints a scored run: tables, or with `as_json` the same as `overview` gives it. `by_level`: the first
    table has the levels in place of the components."""
    from ..eval.stats.overview import overview
    from ..eval.stats.runs import read

    record = folder.record
    made = overview(
        read(folder.path),
        record.expected,
        record.flagged,
        subset=subset,
        allow_missing=allow_missing,
    )
    _say_reader(folder)
    if as_json:
        _console.json(made)
        return
    settings = record.settings
    version = f", version {record.dataset_version}" if record.dataset_version else ""
    version = version if made.verified else ", own tools"
    _console.out.print(
        f"{settings.model} · {settings.mode} · {record.dataset}{version} · {folder.path}", markup=False
    )
    _print_tables(made, by_level)


def _print_tables(made: "Overview", by_level: bool = False) -> None:
    from ..eval.stats import levels, stages

    title = f"rows: {made.subset}; below each value its 95 % interval"
    table = _table(title, "", "right / n", "accuracy", "Δ (paper's)", "Δ matched")
    for name, line in (("clean", made.clean), ("perturbed", made.perturbed)):
        table.add_row(name, f"{line.correct} / {line.n}", number(line.accuracy))
        table.add_row("", "", _span(made.intervals.get(name)))
    for name, line in ({} if by_level else made.components).items():
        values = (line.accuracy, line.delta, line.delta_matched)
        table.add_row(f" {name}", f"{line.correct} / {line.n}", *map(number, values))
        kinds = ("accuracy", "delta", "delta_matched")
        table.add_row("", "", *(_span(made.intervals.get(f"{kind}_{name}")) for kind in kinds))
    _console.out.print(table)
    if by_level:
        _print_made([levels.table(made.levels)])
    _print_verified(made)
    table = _table(None, "type", "n", "acc.", "Δ", "Δ matched")
    table.add_column("wrong answers", overflow="fold")
    for one in made.types:
        values = (one.accuracy, one.delta, one.delta_matched)
        table.add_row(one.type_code, str(one.n), *map(number, values), counts(one.error_modes))
    _console.out.print(table)
    if made.type_intervals:
        table = _table("95 % intervals", "type", "accuracy", "Δ matched", "p (Holm)")
        for code, row in made.type_intervals.items():
            p = p_value(row.flips.p_holm) if row.flips else ""
            table.add_row(code, _span(row.accuracy), _span(row.delta_matched), p)
        _console.out.print(table)
    tell = partial(_console.out.print, markup=False, highlight=False)
    with_transition = _with_span(
        made.retention_with_transition, made.intervals.get("retention_with_transition")
    )
    tell(
        f"retention {_with_span(made.retention, made.intervals.get('retention'))}, "
        f"with transition {with_transition} · wrong answers: {counts(made.error_modes) or 'none'}"
    )
    if made.power is not None:
        tell(made.power.line)
    _print_repeated(made)
    if made.stages is not None:
        _print_made([stages.table(made.stages)])
    cut = {"cut at the token limit": made.length, "content filter": made.content_filter}
    cut |= {"too long": made.too_long, "rejected": made.rejected}
    tell(f"{counts(cut)}, missing {made.missing} of {made.expected}")
    if made.tooleyes_score is not None:
        tell(f"ToolEyes mean partial score {number(made.tooleyes_score)} (no accuracy)")
    read = {name: one.replies for name, one in made.reply_flags.items()}
    tell(f"replies: {counts(read)} (rbtc failures RUN --flag shows them; docs/calls.md)")
    if read["call_beside_refusal"]:
        left = ", ".join(f"{name} {number(value)}" for name, value in made.without_beside_refusal.items())
        tell(f"accuracy without calls beside a refusal: {left}")
    for flag, cells in made.flagged.items():
        shown = ", ".join(f"{code} {cell['correct']} of {cell['n']}" for code, cell in cells.items())
        tell(f"right among rows flagged {flag}: {shown}")
    for gap in made.gaps:
        tell(f"gap: {gap}")
    if made.stages is None:
        tell("stages of the wrong answers: not known, score again (rbtc score RUN; docs/stages.md)")
    _print_made(made.packs)
    _print_blind(made)
    if made.unreviewed:
        _console.out.print(_console.styled(f"not reviewed: {made.unreviewed.line}", style="yellow"))


def _span(found: "Interval | None") -> str:
    return "" if found is None else interval(found)


def _with_span(value: float | None, found: "Interval | None") -> str:
    return f"{number(value)} {_span(found)}".rstrip()


def _print_repeated(made: "Overview") -> None:
    """With repeats: one of k right, all k right, and how much the answers to one row vary."""
    if made.repeated is None:
        return
    r = made.repeated.repeats
    title = f"{r} repeats; below each value its 95 % interval"
    table = _table(title, "", "rows", f"pass@{r}", f"pass^{r}", "variance within a row", "share")
    for name, line in made.repeated.lines.items():
        some, every = line.at[r], line.all[r]
        values = (some.value, every.value, line.within, line.within_share)
        table.add_row(name, str(line.rows), *map(number, values))
        table.add_row("", "", _span(some), _span(every))
    _console.out.print(table)


def _print_made(made: Iterable["packs.Table"]) -> None:
    """Tables that `eval.stats` made: of the packs beyond the core, the stages, the levels; below each value
    its interval."""
    from ..eval.stats.packs import spelled

    for one in made:
        table = _table(None, *one.columns)
        table.title = _console.styled(one.title)
        for row in one.rows:
            values, spans = zip(*map(spelled, row), strict=True)
            table.add_row(*map(_console.styled, values))
            if any(spans):
                table.add_row(*map(_console.styled, spans))
        _console.out.print(table)
        if one.note:
            _console.out.print(one.note, markup=False, highlight=False)


def _print_blind(made: "Overview") -> None:
    """The reference lines under the tables: what the same table is worth without a word of the request."""
    from ..eval.stats.blind import solved

    tell = partial(_console.out.print, markup=False, highlight=False)
    if not made.needs_no_reading:
        tell("what needs no reading: not known, audit the dataset and score again (docs/statistics.md)")
        return
    short = {"perturbed": "pert.", "observation": "obs.", "transition": "trans."}
    heads = {name: short.get(name, name) for name in ("clean", "perturbed", *made.components)}
    table = _table("what needs no reading: the right tool is chosen", "", *heads.values())
    for line in made.needs_no_reading:
        table.add_row(line.name, *(number(line.heads[name]) for name in heads))
    _console.out.print(table)
    there = {one.type_code for one in made.types}
    by: dict[str, list[str]] = {}
    for code, (name, accuracy) in solved(made.needs_no_reading).items():
        if code in there:
            by.setdefault(name, []).append(f"{code} {number(accuracy)}")
    for name, types in by.items():
        tell(f"types that {name} solves without reading: {', '.join(types)}")


def _print_verified(made: "Overview") -> None:
    """The same accuracies without the rows that nobody could answer, beside the best that can be reached;
    nothing of own tools, whose golden answers nobody classified."""
    if not made.verified:
        return
    title = "verified: rows that can be answered; best: what an honest model reaches over all"
    table = _table(title, "", "n", "correct", "accuracy", "best")
    for name, line in made.verified.items():
        values = (line.accuracy, line.best)
        table.add_row(f"verified {name}", str(line.n), str(line.correct), *map(number, values))
    _console.out.print(table)


def _table(title: str | None, first: str, *numbers: str) -> "Table":
    """A table of numbers that fits 80 columns."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table
