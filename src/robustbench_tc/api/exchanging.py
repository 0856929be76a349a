"""Predictions and results for other places, and from them: `export`, `export hub` and `import`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ..option import Option, Tell, silent
from . import options

if TYPE_CHECKING:
    from ..eval.exchange import Exchanged
    from ..eval.leaderboard.eval_results import Exported


def export(
    run: Annotated["str | Path", options.RUN],
    *,
    out: Annotated["str | Path", options.OUT],
    layout: Annotated[
        Literal["ours", "paper"], Option(help="ours: every column; paper: the form of the paper's release.")
    ] = "ours",
    dataset: Annotated[str | None, options.DATASET] = None,
) -> "Exchanged":
    """Write a run's predictions as JSON lines.

    Example: rbtc export runs/qwen3-8b-fc --layout paper --out qwen3-8b.jsonl

    Raises UserError.
    """
    from ..eval import exchange, predictions, record, verdicts
    from ..io.files import check_file

    check_file(Path(out))
    folder = record.open_run(Path(run))
    data = verdicts.dataset_of(folder, dataset)
    found = predictions.read(folder.answers_path)
    rows = data.by_id
    ours = layout == "ours"
    predictions.write_lines(
        Path(out), (one if ours else exchange.in_paper_layout(one, rows[one.id]) for one in found)
    )
    return exchange.Exchanged(predictions=len(found), path=str(out))


def export_hub(
    run: Annotated["str | Path", options.RUN],
    *,
    dataset: Annotated[str, options.DATASET],
    out: Annotated["str | Path", options.OUT],
    partial: Annotated[
        bool, Option(help="Take a run that lacks answers or rows too; the notes then say so.")
    ] = False,
    source_url: Annotated[str | None, Option(help="Where the results can be looked into.")] = None,
    source_name: Annotated[str | None, Option(help="What is found there, as `Report`.")] = None,
    source_user: Annotated[str | None, Option(help="Whose it is: an account on the Hub.")] = None,
    date: Annotated[
        str | None, Option(help="When it was run, as 2026-11-27. Default: the day of the run's last start.")
    ] = None,
    push: Annotated[
        str | None, Option(help="The model on the Hub, ORG/NAME, that gets the file as a pull request.")
    ] = None,
    progress: Tell = silent,
) -> "Exported":
    """Write a run's accuracies as the Hub shows them on a model's page, .eval_results/robustbench-tc.yaml.

    A result in percent for clean, perturbed and each component: the tasks of the dataset's eval.yaml. A pull
    request names the revision by its commit.

    Example: rbtc export hub runs/qwen3-8b-fc --dataset acme/robustbench-tc@v1.0.0 --out results
    Example: rbtc export hub runs/qwen3-8b-fc --dataset acme/robustbench-tc@v1.0.0 --out results \
    --push Qwen/Qwen3-8B --source-url https://acme.org/report.html

    Raises UserError for a live run, and unless it may be partial for one that lacks answers or rows.
    """
    from ..eval.leaderboard.eval_results import Source, export as write

    return write(
        Path(run),
        Path(out),
        dataset=dataset,
        source=Source(source_url, source_name, source_user),
        date=date,
        partial=partial,
        push=push,
        said=progress,
    )


def import_predictions(
    predictions: Annotated[
        "str | Path", Option(help="A .jsonl file, ours or the paper's, or a folder of them.", typed=Path)
    ],
    dataset: Annotated["str | Path", options.ASKED],
    *,
    model: Annotated[str, options.MODEL],
    mode: Annotated[str | None, options.MODE] = None,
    revision: Annotated[str | None, options.REVISION] = None,
    out: Annotated["str | Path | None", options.OUT] = None,
) -> "Exchanged":
    """Make a run folder of existing predictions and score it; by default runs/MODEL-MODE-imported.

    Example: rbtc import predictions/ api_eval --model o4-mini --mode fc

    Raises UserError.
    """
    from ..eval import exchange, inputs, models, record, verdicts

    if out is not None:
        record.check_place(Path(out))
    data = inputs.load_samples(str(dataset), revision=revision)
    wanted = record.mode_of(mode or models.mode_of(model))
    place = record.default_place(model, wanted, "-imported") if out is None else Path(out)
    folder, found = exchange.import_run(Path(predictions), data, model=model, mode=wanted, out=place)
    notes = [*folder.notes, *(f"left out: {count} × {why}" for why, count in folder.record.left_out.items())]
    verdicts.score_file(folder, data)
    if absent := len(data.rows) - len({one.id for one in found}):
        notes.append(f"{absent} rows of the dataset have none")
    return exchange.Exchanged(predictions=len(found), path=str(folder.path), notes=tuple(notes))
