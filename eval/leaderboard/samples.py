"""Single rows of a board's dataset: how many of its models are right on each, and what each of them answered.

Verdicts come from the rows of the board, so a list over ten thousand models reads no file. Replies are read
from the stored predictions, one row of each file, and only for the models of one page.
"""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc import schema, taxonomy
from robustbench_tc.eval import failures
from robustbench_tc.eval.report.pool import Cut, cut
from robustbench_tc.eval.report.samples import calls_said
from robustbench_tc.eval.score import judge
from robustbench_tc.eval.stats.lattice import Ints
from robustbench_tc.io import parquet
from robustbench_tc.schema import Prediction, Sample

from .board import Board
from .checks import Asked
from .row import CONDITIONS, Figures, Row

CLIP = 4_000
"""Characters shown of a reply."""

READ = 20_000
"""Characters of a reply, and of its native calls, that are read again for a page."""

_BATCH = 50
"""Rows that are decoded at once on the way to one of them: replies may be as long as an upload may be."""


class Rows:
    """The rows of a dataset by sample and type."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.clean_ids: tuple[str, ...] = tuple(sorted({row.clean_id for row in asked.rows}))
        """In the order of the verdicts of `Figures`."""
        self._at = {one: place for place, one in enumerate(self.clean_ids)}
        self._places = {(row.clean_id, row.type_code): at for at, row in enumerate(asked.rows)}

    @cached_property
    def types(self) -> tuple[str, ...]:
        """Clean, then every type that has a row, in the taxonomy's order."""
        there = {code for _, code in self._places} - {taxonomy.CLEAN}
        return (taxonomy.CLEAN, *(one.code for one in taxonomy.known_with(there) if one.code in there))

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The sources that have a row, in their order there."""
        return tuple(dict.fromkeys(row.source for row in self.asked.rows))

    def row(self, clean_id: str, code: str) -> Sample | None:
        """The row of a sample under a type."""
        at = self._places.get((clean_id, code))
        return None if at is None else self.asked.rows[at]

    def place(self, row: Sample) -> int:
        """Its number among the dataset's rows: predictions are stored in that order."""
        return self._places[row.clean_id, row.type_code]

    def column(self, clean_id: str) -> int:
        """Its place among the clean ids."""
        return self._at[clean_id]

    def types_of(self, clean_id: str) -> tuple[str, ...]:
        """The types that the sample has rows of, clean first."""
        return tuple(code for code in self.types if (clean_id, code) in self._places)


class Tally(msgspec.Struct, frozen=True):
    """How many models of a board are right on each row."""

    models: int
    """Those whose verdicts are known and are of the dataset's samples."""
    right: Ints
    """[CONDITIONS, clean ids]; a model counts where it is right in more than half of its repeats."""

    def of(self, rows: Rows, row: Sample) -> int | None:
        """Of one row; None for types beyond the core, whose verdicts a board's rows do not hold."""
        if row.type_code not in CONDITIONS:
            return None
        return int(self.right[CONDITIONS.index(row.type_code), rows.column(row.clean_id)])


def tally(board: Board, rows: Rows) -> Tally:
    """Over the board's rows, superseded and defended runs not among them."""
    right = np.zeros((len(CONDITIONS), len(rows.clean_ids)), np.int64)
    models = 0
    for row in board.rows:
        found = verdicts(row.figures, rows)
        if found is not None:
            right += found
            models += 1
    return Tally(models, right)


def verdicts(figures: Figures, rows: Rows | None = None) -> Ints | None:
    """[CONDITIONS, clean ids] 1 where the model is right in more than half of its repeats, else 0; None where
    the samples are not known or are others than those of `rows`."""
    if figures.verdicts is None or (rows is not None and figures.samples != len(rows.clean_ids)):
        return None
    right, _ = figures.columns()
    found: Ints = (2 * right > figures.repeats).astype(np.int64)
    return found


def is_right(row: Row, rows: Rows, sample: Sample) -> bool | None:
    """The verdict of a board's row on a row of its dataset; None where the board does not hold it."""
    digit = _digit(row.figures, rows, sample)
    return None if digit is None else 2 * digit > row.figures.repeats


def _digit(figures: Figures, rows: Rows, sample: Sample) -> int | None:
    """Right answers over all repeats."""
    known = figures.verdicts is not None and figures.samples == len(rows.clean_ids)
    if not known or figures.verdicts is None or sample.type_code not in CONDITIONS:
        return None
    at = CONDITIONS.index(sample.type_code) * figures.samples + rows.column(sample.clean_id)
    found = chr(figures.verdicts[at])
    return int(found) if found != "-" else None


class Listed(msgspec.Struct, frozen=True):
    """A line of the list of rows."""

    row: Sample
    right: int | None
    """Models that are right."""


def listed(
    rows: Rows,
    counts: Tally,
    *,
    source: str = "",
    type_code: str = "",
    bounds: tuple[int, int] | None = None,
    words: str = "",
    between: tuple[Row, Row] | None = None,
) -> list[Listed]:
    """The rows that fit, in the dataset's order. `bounds`: models that are right, from and to. `words`: all
    in the id. `between`: the first of the two is right and the second is not."""
    wanted = words.casefold().split()
    found = []
    for row in rows.asked.rows:
        if (source and row.source != source) or (type_code and row.type_code != type_code):
            continue
        if wanted and not all(word in row.id.casefold() for word in wanted):
            continue
        right = counts.of(rows, row)
        if bounds is not None and (right is None or not bounds[0] <= right <= bounds[1]):
            continue
        if between is not None:
            a, b = (is_right(one, rows, row) for one in between)
            if a is not True or b is not False:
                continue
        found.append(Listed(row, right))
    return found


# --- replies ------------------------------------------------------------------------------------------


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What one model made of one row. Every text is bounded, and hostile: it is shown, never obeyed."""

    row: Row
    correct: bool | None
    """The board's verdict; None: not known here."""
    right: int | None = None
    """Right answers over the repeats."""
    status: str = ""
    text: Cut = Cut("", 0)
    native: Cut = Cut("", 0)
    first: Cut | None = None
    """The reply before the error, where one was injected."""
    first_native: Cut = Cut("", 0)
    calls: Cut = Cut("", 0)
    why: str = ""
    """In one sentence, of a wrong answer."""
    problem: str = ""
    """Why there is no reply here."""


def reply(row: Row, rows: Rows, sample: Sample, folder: Path, repeat: int = 0) -> Reply:
    """The reply of a board's row to a row of its dataset, from the submission's `folder`. Never raises for
    what lies there: it says what is wrong."""
    digit = _digit(row.figures, rows, sample)
    correct = is_right(row, rows, sample)
    found = _stored(folder / "predictions.parquet", rows, sample, row.figures.repeats, repeat)
    if isinstance(found, str):
        return Reply(row=row, correct=correct, right=digit, problem=found)
    calls, why, judged = _read(found, rows, sample)
    if correct is None or row.figures.repeats > 1:
        correct = judged  # of this very repeat
    elif judged is not None and judged != correct:
        why = "read otherwise by this version of the package than when it was scored"
    return Reply(
        row=row,
        correct=correct,
        right=digit,
        status=found.status,
        text=cut(found.raw_output, CLIP),
        native=_native(found.tool_calls),
        first=cut(found.first_output, CLIP) if found.injected else None,
        first_native=_native(found.first_tool_calls),
        calls=cut(calls, CLIP),
        why=why,
    )


def _stored(path: Path, rows: Rows, sample: Sample, repeats: int, repeat: int) -> Prediction | str:
    """One prediction of a file, or why there is none."""
    place = rows.place(sample) * repeats + min(repeat, repeats - 1)
    try:
        with parquet.opened(path) as file:
            plain = _at(file, place)
        if plain is None or plain["id"] != sample.id or plain["sample_hash"] != rows.asked.hash_of(sample.id):
            return "its stored answers are not in the order of this dataset's rows"
        return schema.record(plain, Prediction)
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return "its stored answers cannot be read"


def _at(file: pq.ParquetFile, place: int) -> dict[str, schema.Json] | None:
    columns = [name for name in Prediction.__struct_fields__ if name != "logprobs"]
    for group in range(file.metadata.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        if place < size:
            there = [name for name in columns if name in file.schema_arrow.names]
            for batch in file.iter_batches(_BATCH, row_groups=[group], columns=there, use_threads=False):
                if place < batch.num_rows:
                    found: dict[str, schema.Json] = batch.slice(place, 1).to_pylist()[0]
                    return found
                place -= batch.num_rows
        place -= size
    return None


def _read(one: Prediction, rows: Rows, sample: Sample) -> tuple[str, str, bool | None]:
    """The calls in a reply, why it is wrong, and whether it is right; nothing for one that is too long."""
    if one.status == "request_error":
        return "", "no answer was had", None
    if any(len(text) > READ for text in _texts(one)):
        return "", f"longer than {READ:,} characters: read when it was scored, not again for this page", None
    anchor = rows.row(sample.clean_id, taxonomy.CLEAN) or sample
    verdict = judge(one, sample, anchor)
    calls = calls_said(schema.dumps(verdict.calls))
    return calls, "" if verdict.correct else failures.said(verdict, sample), verdict.correct


def _texts(one: Prediction) -> Iterable[str]:
    for text, calls in ((one.raw_output, one.tool_calls), (one.first_output, one.first_tool_calls)):
        yield text or ""
        yield schema.dumps(calls) if calls else ""


def _native(calls: schema.Json) -> Cut:
    return cut("" if not calls else schema.dumps(calls), CLIP)
