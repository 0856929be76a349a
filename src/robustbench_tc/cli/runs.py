"""`rbtc score`, `summary`, `export`, `import`, `serve-command`: everything about a run but the asking."""

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import unknown
from . import _console
from ._workers import Address, Engine, NumProc, workers

if TYPE_CHECKING:
    from rich.table import Table

    from ..eval.inputs import Dataset
    from ..eval.record import RunFolder
    from ..eval.summary import Summary


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
    run: Run,
    dataset: DatasetOption = None,
    num_proc: NumProc = 1,
    engine: Engine = "local",
    address: Address = None,
) -> None:
    """Turn a run's predictions into verdicts (scores.parquet) without asking the model again.

    Example: rbtc score runs/qwen3-8b-fc
    """
    from ..eval import record, verdicts

    folder = record.open_run(run)
    who = workers(num_proc, engine, address)
    rows = verdicts.rows_of(folder, dataset, num_proc)
    _note(verdicts.score_file(folder, rows, who, dataset=dataset))
    _console.err.print(f"scored: {folder.scores_path}", markup=False)


def summary(
    run: Run,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    subset: Annotated[
        str, typer.Option(help="all, or paper: only rows whose kind the paper's release has.")
    ] = "all",
    allow_missing: AllowMissing = False,
) -> None:
    """Print clean and perturbed accuracy, the four gaps, retention and error modes of a scored run.

    Example: rbtc summary runs/qwen3-8b-fc --subset paper
    """
    from ..eval import record

    print_summary(record.open_run(run), subset, allow_missing, as_json)


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

    typer.echo(line(model, weights=weights, port=port))


def export(
    run: Run,
    out: Annotated[Path, typer.Option(help="The .jsonl file to write.")],
    layout: Annotated[
        str, typer.Option(help="ours: every column. paper: the form of the paper's release.")
    ] = "ours",
    dataset: DatasetOption = None,
) -> None:
    """Write a run's predictions as JSON lines.

    Example: rbtc export runs/qwen3-8b-fc --layout paper --out qwen3-8b.jsonl
    """
    from ..eval import exchange, predictions, record, verdicts
    from ..eval.parse import parse

    if layout not in ("ours", "paper"):
        raise unknown("layout", layout, ("ours", "paper"))
    folder = record.open_run(run)
    data = verdicts.dataset_of(folder, dataset)
    found, note = verdicts.read_or_remake(folder, data)
    _note(note)
    if layout == "ours":
        predictions.write(out.with_suffix(".jsonl"), found)
    else:
        rows = {row.id: row for row in data.rows}
        exchange.write_predictions(
            out,
            found,
            rows,
            lambda one, row: (
                parse(
                    one.raw_output or "", source=row.source, tools=row.tools, tool_calls=one.tool_calls
                ).calls
            ),
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
    from ..eval import exchange, inputs, record
    from ..eval import predictions as files

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
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-") or "model"
    folder = record.start(out or Path("runs") / f"{slug}-{wanted}-imported", data, settings, len(found))
    folder.record.left_out = data.left_out | left_out
    folder.record.totals = files.totals(found)
    files.write(folder.predictions_path, found)
    folder.save()
    say_left_out(folder.record.left_out)
    score_run(folder, data, None)
    absent = len(data.rows) - len(asked)
    tail = f"; {absent} rows of the dataset have none" if absent else ""
    _console.err.print(f"{len(found)} predictions in {folder.path}{tail}", markup=False)


# --- what several verbs do ------------------------------------------------------------------------------


def say_left_out(left_out: dict[str, int]) -> None:
    for reason, count in left_out.items():
        _console.err.print(f"left out: {count} × {reason}", markup=False)


def _note(note: str | None) -> None:
    if note is not None:
        _console.err.print(note, markup=False)


def score_run(folder: "RunFolder", data: "Dataset", agent: str | None) -> list[str]:
    """Scores the run; for a reference agent the ids whose verdict is not the known one."""
    from .. import parquet
    from ..eval import verdicts
    from ..eval.agents import is_right

    _note(verdicts.score_file(folder, data))
    if agent is None:
        return []
    rows, anchors = {row.id: row for row in data.rows}, data.anchors()
    return [
        row["id"]
        for row in parquet.read_rows([folder.scores_path], ["id", "correct"])
        if row["correct"] is not is_right(agent, rows[row["id"]], anchors[row["id"]])
    ]


def print_summary(folder: "RunFolder", subset: str, allow_missing: bool, as_json: bool) -> None:
    import msgspec

    from ..eval import verdicts
    from ..eval.summary import summarise

    record = folder.record
    made = summarise(
        verdicts.read_scores(folder.scores_path),
        record.expected,
        subset=subset,
        allow_missing=allow_missing,
        flagged=record.flagged,
    )
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(made), indent=1).decode())
        return
    settings = record.settings
    version = f", version {record.dataset_version}" if record.dataset_version else ""
    _console.out.print(
        f"{settings.model} · {settings.mode} · {record.dataset}{version} · {folder.path}", markup=False
    )
    _print_tables(made)


def _print_tables(made: "Summary") -> None:
    table = _table(f"rows: {made.subset}", "", "n", "correct", "accuracy", "Δ (paper's)", "Δ matched")
    for name, cell in (("clean", made.clean), ("perturbed", made.perturbed)):
        table.add_row(name, str(cell["n"]), str(cell["correct"]), _number(cell["accuracy"]))
    for name, cell in made.components.items():
        numbers = (cell["accuracy"], cell["delta"], cell["delta_matched"])
        table.add_row(f"  {name}", str(cell["n"]), str(cell["correct"]), *map(_number, numbers))
    _console.out.print(table)
    table = _table(None, "type", "n", "acc.", "Δ", "Δ matched")
    table.add_column("wrong answers", overflow="fold")
    for line in made.types:
        numbers = (line.accuracy, line.delta, line.delta_matched)
        table.add_row(line.type_code, str(line.n), *map(_number, numbers), _counts(line.error_modes))
    _console.out.print(table)
    tell = partial(_console.out.print, markup=False, highlight=False)
    retention = _number(made.retention) or "unknown"
    tell(f"retention {retention} · wrong answers: {_counts(made.error_modes) or 'none'}")
    counts = {"cut at the token limit": made.length, "too long": made.too_long, "rejected": made.rejected}
    tell(f"{_counts(counts)}, missing {made.missing} of {made.expected}")
    if made.tooleyes_score is not None:
        tell(f"ToolEyes mean partial score {made.tooleyes_score:.3f} (no accuracy)")
    for flag, cells in made.flagged.items():
        shown = ", ".join(f"{code} {cell['correct']} of {cell['n']}" for code, cell in cells.items())
        tell(f"right among rows flagged {flag}: {shown}")


def _table(title: str | None, first: str, *numbers: str) -> "Table":
    """A table of numbers that fits 80 columns."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
