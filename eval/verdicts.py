"""`rbtc score`: predictions into verdicts, without asking the model again."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from robustbench_tc import parquet, schema
from robustbench_tc.errors import UserError
from robustbench_tc.schema import Prediction, Sample, Verdict

from . import inputs, predictions, summary
from .inputs import Dataset
from .record import RunFolder
from .score import judge


def dataset_of(folder: RunFolder, name: str | None = None) -> Dataset:
    """The dataset of a run, from where it lay then or from `name`. Raises UserError for another one."""
    record = folder.record
    revision = record.dataset_revision if name is None else None
    try:
        dataset = inputs.load(name or record.dataset, revision=revision)
    except UserError as error:
        raise UserError(f"{error}; {folder.path} was made of it, name its place with --dataset") from None
    here, there = dataset.fingerprint(), record.settings.fingerprint
    if here != there:
        raise UserError(
            f"{dataset.name} is another dataset than {folder.path} was asked: "
            f"fingerprint {here[:12]} (version {dataset.version}) here, {there[:12]} "
            f"(version {record.dataset_version}) there; name the right one with --dataset"
        )
    return dataset


def read_or_remake(folder: RunFolder, dataset: Dataset) -> tuple[list[Prediction], str | None]:
    """The run's predictions; made again from the journal where their file is missing or damaged.

    The second value says so, in one line.
    """
    try:
        return predictions.read(folder.predictions_path), None
    except UserError as error:
        if not folder.journal_path.is_file():
            raise
        with folder.journal() as journal:
            rows = inputs.select(dataset, folder.record.settings.selection)
            found = list(predictions.of(journal, rows, dataset.hashes(), folder.record.settings))
        predictions.write(folder.predictions_path, found)
        return found, f"{error}; made again from the journal: {len(found)} of {folder.record.expected}"


def score_run(
    folder: RunFolder,
    dataset: Dataset,
    found: Sequence[Prediction],
    progress: Callable[[int], None] = lambda _: None,
) -> list[Verdict | None]:
    """Judges every prediction and writes `scores.parquet`: prediction columns, then verdict columns.

    A request_error is no answer: its verdict columns are null. `progress` gets the number judged so far.
    Raises UserError for a prediction whose row the dataset does not have in that wording.
    """
    rows = {row.id: row for row in dataset.rows}
    hashes, anchors = dataset.hashes(), dataset.anchors()
    verdicts: list[Verdict | None] = []
    flagged: dict[str, dict[str, dict[str, int]]] = {}
    for number, one in enumerate(found, 1):
        if hashes.get(one.id) != one.sample_hash:
            raise UserError(f"{folder.path}: {one.id!r} was asked in other words than the dataset's")
        verdict = None if one.status == "request_error" else judge(one, rows[one.id], anchors[one.id])
        verdicts.append(verdict)
        if verdict is not None:
            _count_flags(flagged, rows[one.id], verdict)
        progress(number)
    _write(folder.scores_path, found, verdicts)
    folder.record.flagged = flagged
    folder.save()
    return verdicts


def _count_flags(flagged: dict[str, dict[str, dict[str, int]]], row: Sample, verdict: Verdict) -> None:
    for flag in row.flags:
        cell = flagged.setdefault(flag, {}).setdefault(row.type_code, {"correct": 0, "n": 0})
        cell["n"] += 1
        cell["correct"] += verdict.correct


def _write(path: Path, found: Sequence[Prediction], verdicts: Sequence[Verdict | None]) -> None:
    columns = schema.columns(found, Prediction)
    judged = schema.columns((v for v in verdicts if v is not None), Verdict)
    for name, values in judged.items():
        rest = iter(values)
        columns[name] = [None if verdict is None else next(rest) for verdict in verdicts]
    predictions.write_table(path, columns)


def read_scores(path: Path) -> list[summary.ScoredRow]:
    """The rows of a `scores.parquet`. Raises UserError."""
    if not path.is_file():
        raise UserError(f"{path.parent} is not scored yet: rbtc score {path.parent}")
    wanted = summary.ScoredRow.__struct_fields__
    try:
        return [msgspec.convert(row, summary.ScoredRow) for row in parquet.read_rows([path], wanted)]
    except msgspec.ValidationError as error:
        raise UserError(f"{path} is damaged: {error}") from None
