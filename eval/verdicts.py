"""`rbtc score`: predictions into verdicts, without asking the model again."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias, TypeVar

import msgspec
import pyarrow as pa

from robustbench_tc.compute.parallel import SERIAL, Workers, map_ordered
from robustbench_tc.errors import UserError
from robustbench_tc.io import parquet
from robustbench_tc.io.resolve import resolve_dataset
from robustbench_tc.schema import Prediction, Sample, Tool, Verdict, arrow_schema, arrow_table, columns

from . import growth, inputs, predictions, session
from .inputs import Dataset, only
from .journal import Lines
from .live import episodes, inputs as live_inputs, score as live_score
from .live.inputs import LiveData
from .parse import READER_VERSION
from .record import RunFolder, open_run
from .row_files import RowFiles
from .score import judge

Kind = TypeVar("Kind", bound="Dataset | LiveData | RowFiles")

Flagged: TypeAlias = Counter[tuple[str, str, Literal["correct", "n"]]]
"""Rows with a flag, by flag and type: how many are correct, and how many there are."""


def data_of(folder: RunFolder, name: str | None = None) -> Dataset | LiveData:
    """The dataset of a run, from where it lay then or from `name`. Raises UserError for another one."""
    return _checked(folder, name, inputs.load(str(place_of(folder, name))))


def _checked(folder: RunFolder, name: str | None, found: Kind) -> Kind:
    if found.fingerprint() != folder.record.settings.fingerprint:
        what = f"{name or folder.record.dataset} is another dataset than {folder.path} was asked"
        raise UserError(f"{what}: name the right one with --dataset")
    return found


def dataset_of(folder: RunFolder, name: str | None = None) -> Dataset:
    """`data_of` for a run whose rows are samples. Raises UserError."""
    return only(data_of(folder, name), Dataset, f"{folder.path} is a live run: this looks at predictions")


def live_data_of(folder: RunFolder, name: str | None = None) -> LiveData:
    """`data_of` for a live run. Raises UserError."""
    return only(data_of(folder, name), LiveData, f"{folder.path} is no live run: this looks at episodes")


def place_of(folder: RunFolder, name: str | None = None) -> Path:
    """Where the dataset of a run lies. Raises UserError."""
    asked, revision = folder.record.dataset, folder.record.dataset_revision
    try:
        return resolve_dataset(name or asked, None if name else revision, patterns=inputs.NEEDED)
    except UserError as error:
        if name is not None:  # --dataset names it
            raise
        raise UserError(
            f"{error}; {folder.path} was made from it; give its location with --dataset"
        ) from None


Rows: TypeAlias = Dataset | RowFiles
"""What predictions are judged against: in memory, or where they lie."""


def rows_of(folder: RunFolder, name: str | None = None, num_proc: int = 1) -> Rows:
    """The rows of a run's dataset: where they lie, or, in the paper's layout, in memory. Raises UserError for
    another dataset."""
    place = place_of(folder, name)
    return _checked(folder, name, inputs.paper_rows(place) or RowFiles(place, num_proc))


def score(
    run: str | Path,
    *,
    dataset: str | None = None,
    workers: Workers = SERIAL,
    worlds: Sequence[str] = (),
    world_python: str | None = None,
) -> RunFolder:
    """Turns the predictions or episodes of a run folder into verdicts (`scores.parquet`); the model is not
    asked.

    `dataset`: where the run's dataset lies now, if it was moved. `worlds`: Python files of the worlds of live
    rows that this package does not bring. Raises UserError for a folder that is not a
    run, a copied one that has verdicts, damaged predictions, and a dataset that is not the one that was
    asked; the verdicts of before then stay.
    """
    folder = open_run(Path(run))
    if folder.record.sessions and not folder.ended and _older(folder.answers_path, folder.journal_path):
        folder.notes.append(
            f"{folder.path} runs or was killed: {folder.answers_path.name}, which is scored, lacks its "
            "latest answers; the same rbtc eval writes them there"
        )
    folder.claim(folder.scores_path)
    if folder.record.live:
        score_data(folder, live_data_of(folder, dataset), worlds, world_python)
    else:
        score_file(folder, rows_of(folder, dataset, workers.num_proc), workers)
    return folder


def _older(file: Path, than: Path) -> bool:
    return file.exists() and than.exists() and file.stat().st_mtime < than.stat().st_mtime


def score_data(
    folder: RunFolder, data: Dataset | LiveData, worlds: Sequence[str] = (), python: str | None = None
) -> None:
    """Turns the predictions or episodes of `folder` into verdicts, with its dataset in memory.

    Episodes are replayed, without the model. Raises UserError for a world that is not at hand, and for
    episodes that are not the journal's.
    """
    if isinstance(data, Dataset):
        score_file(folder, data)
        return
    kinds = live_inputs.world_types(growth.rows(data, folder.record.selections), worlds, python)
    episodes.check_all(folder, data.by_id)
    live_score.score_run(folder.path, data.by_id, world_of=kinds.__getitem__)
    folder.record.reader = READER_VERSION
    folder.save()


@contextmanager
def so_far(folder: RunFolder, worlds: Sequence[str] = (), python: str | None = None) -> Iterator[RunFolder]:
    """A run that is under way, as its journal has it at this moment: a scored copy, which is removed again.

    Raises UserError where no row has its answer yet.
    """
    data = data_of(folder)
    with TemporaryDirectory() as place:
        copy = RunFolder(Path(place), deepcopy(folder.record))
        session.leave(copy, Lines(folder.journal_path), data)
        if not copy.record.answered:
            raise UserError(f"{folder.path} is in progress: no row is answered yet")
        score_data(copy, data, worlds, python)
        yield copy


def score_file(folder: RunFolder, rows: Rows, workers: Workers = SERIAL) -> None:
    """Judges the run's predictions and writes `scores.parquet`: prediction columns, then verdict columns.

    A request_error is not an answer: its verdict columns are null. Predictions go through a row group at a
    time, and with `RowFiles` their rows too. Raises UserError for predictions that are missing or damaged,
    and for one whose row the dataset does not have in that wording.
    """

    def work(item: tuple[pa.RecordBatch, pa.Table]) -> tuple[pa.Table, Flagged]:
        batch, taken = item
        found = predictions.records(folder.answers_path, batch)
        as_it_is = batch.schema.equals(arrow_schema(Prediction))
        table = pa.Table.from_batches([batch]) if as_it_is else arrow_table(found, Prediction)
        registries: dict[str, tuple[Tool, ...]] = {}
        return _judged(found, table, [inputs.sample(row, registries) for row in taken.to_pylist()])

    def batches() -> Iterator[tuple[pa.RecordBatch, pa.Table]]:
        for batch in predictions.read_batches(folder.answers_path):
            ids: list[str] = batch["id"].to_pylist()  # type: ignore[assignment]
            asked: list[str] = batch["sample_hash"].to_pylist()  # type: ignore[assignment]
            for one, sample_hash in zip(ids, asked, strict=True):
                if rows.hash_of(one) != sample_hash:
                    raise UserError(f"{folder.path}: {one!r} was asked in other words than the dataset's")
            yield batch, rows.take(ids)

    kinds = arrow_schema(Prediction, Verdict)
    flagged: Flagged = Counter()

    def tables() -> Iterator[pa.Table]:
        for table, counted in map_ordered(work, batches(), workers):
            flagged.update(counted)
            yield table.select(kinds.names)

    parquet.write_file(tables(), folder.scores_path, kinds, replace=True)
    folder.record.flagged = {}
    for (flag, code, what), number in flagged.items():
        folder.record.flagged.setdefault(flag, {}).setdefault(code, {})[what] = number
    folder.record.needs_no_reading = rows.needs_no_reading()
    folder.record.unreviewed = (rows.book and rows.book.unreviewed) or msgspec.UNSET
    folder.record.reader = READER_VERSION
    folder.save()


def _judged(found: Sequence[Prediction], table: pa.Table, rows: Sequence[Sample]) -> tuple[pa.Table, Flagged]:
    """`table`, which holds predictions, with the columns of their verdicts; `rows` has their clean rows
    too."""
    by_id, anchors = {row.id: row for row in rows}, inputs.anchors(rows)
    verdicts: list[Verdict | None] = []
    flagged: Flagged = Counter()
    for one in found:
        row = by_id[one.id]
        if one.status == "request_error":
            verdicts.append(None)
            continue
        verdict = judge(one, row, anchors[one.id])
        verdicts.append(verdict)
        for flag in row.flags:
            flagged[flag, row.type_code, "correct"] += verdict.correct
            flagged[flag, row.type_code, "n"] += 1
    return with_verdicts(table, verdicts), flagged


def with_verdicts(table: pa.Table, verdicts: Sequence[Verdict | None]) -> pa.Table:
    """A table of predictions with the columns of their verdicts, which are null where there is none."""
    made = columns((verdict for verdict in verdicts if verdict is not None), Verdict)
    for field in arrow_schema(Prediction, Verdict):
        if field.name in made:
            rest = iter(made[field.name])
            values = [None if verdict is None else next(rest) for verdict in verdicts]
            table = table.append_column(field, pa.array(values, field.type))
    return table
