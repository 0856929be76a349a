"""`rbtc export`, `import`: runs for other harnesses, and from them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from . import _console
from ._of_runs import DatasetOption, Run, say, say_left_out
from ._words import one_of

if TYPE_CHECKING:
    pass


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
        rows = data.by_id
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
    mode: Annotated[
        str | None, typer.Option(help="fc or prompt: how they were asked; default: as `rbtc eval` asks.")
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Of a Hub dataset.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; default runs/MODEL-MODE-imported.")] = None,
) -> None:
    """Make a run folder of existing predictions and score it.

    Example: rbtc import predictions/ api_eval --model o4-mini --mode fc
    """
    from ..eval import exchange, inputs, models, record, verdicts

    if out is not None:
        record.check_place(out)
    data = inputs.load(dataset, revision=revision)
    wanted = record.mode_of(mode or models.mode_of(model))
    place = out or record.default_place(model, wanted, "-imported")
    folder, found = exchange.import_run(predictions_path, data, model=model, mode=wanted, out=place)
    say(folder.notes)
    say_left_out(folder.record.left_out)
    if remade := verdicts.score_file(folder, data):
        _console.note(remade)
    absent = len(data.rows) - len({one.id for one in found})
    tail = f"; {absent} rows of the dataset have none" if absent else ""
    _console.err.print(f"{len(found)} predictions in {folder.path}{tail}", markup=False)
