"""Logs of other harnesses beside run folders: `rbtc report` and `rbtc compare` take both.

A log becomes a scored run in a folder of its own, which is gone after the block. What is counted then is
counted by the code that counts for runs.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa

from robustbench_tc.errors import UserError
from robustbench_tc.eval import predictions, record
from robustbench_tc.eval.inputs import Selection
from robustbench_tc.eval.stats import runs
from robustbench_tc.eval.stats.runs import Run
from robustbench_tc.eval.verdicts import with_verdicts
from robustbench_tc.io import parquet
from robustbench_tc.schema import Prediction, Verdict, arrow_schema

from . import inspect_log, lm_eval_log
from .foreign import Keys, Read, keys_of, text

READERS: dict[str, Callable[[Path, Keys], Read]] = {".eval": inspect_log.read, ".json": lm_eval_log.read}
"""By the end of a file's name."""


def is_log(name: str) -> bool:
    """Whether a name is that of a log: any file is one, since a run is a folder."""
    return not Path(name).is_dir() and (reader(name) is not None or Path(name).is_file())


def reader(name: str) -> Callable[[Path, Keys], Read] | None:
    """What reads a log of that name."""
    return next((read for ending, read in READERS.items() if name.endswith(ending)), None)


class Opened(msgspec.Struct, frozen=True):
    """A scored run: a folder as it was given, or the one that a log became."""

    name: str
    """As given."""
    folder: str
    notes: tuple[str, ...] = ()

    def read(self) -> Run:
        """The run, under the name that was given."""
        return msgspec.structs.replace(runs.read(self.folder), path=self.name)


@contextmanager
def opened(names: Sequence[str], log_keys: Sequence[str] = ()) -> Iterator[list[Opened]]:
    """Runs and logs by name, as scored runs for as long as the block lasts. Raises UserError."""
    keys = keys_of(log_keys)
    with tempfile.TemporaryDirectory(prefix="rbtc-logs-") as place:
        found = []
        for number, name in enumerate(names):
            if is_log(name):
                folder = Path(place) / str(number)
                found.append(Opened(name, str(folder), _written(name, keys, folder)))
            else:
                found.append(Opened(name, name))
        yield found


def _written(name: str, keys: Keys, folder: Path) -> tuple[str, ...]:
    """Writes the run of a log; what has to be said of it."""
    read = reader(name)
    if read is None:
        raise UserError(
            f"{name} is neither a run folder nor a log that is read: those are .eval of inspect_ai, and "
            "results_….json of lm-eval"
        )
    log = read(Path(name), keys)
    folder.mkdir()
    try:
        _write(log, folder)
    except (
        pa.ArrowException,
        ValueError,
        OverflowError,
    ) as error:  # half a surrogate pair, a number of 30 digits
        raise UserError(f"{name} is damaged: {text(error)}") from None
    return tuple(f"{name}: {note}" for note in log.notes)


def _write(log: Read, folder: Path) -> None:
    table = with_verdicts(
        predictions.table(one for one, _ in log.found), [verdict for _, verdict in log.found]
    )
    kinds = arrow_schema(Prediction, Verdict)
    parquet.write_file([table.select(kinds.names)], folder / "scores.parquet", kinds)
    (folder / record.RECORD).write_bytes(msgspec.json.encode(_record(log)))


def _record(log: Read) -> record.RunRecord:
    """As far as a log says it. Its dataset's path is that of another machine: the name is kept."""
    origin = log.origin
    first = log.found[0][0]
    settings = record.Settings(
        fingerprint="" if origin is None else text(origin.fingerprint, 64),
        model=log.model,
        mode=first.mode,
        backend=log.backend,
        decoding=log.decoding,
        prompt_version="" if origin is None else text(origin.prompt_version, 64),
        selection=Selection() if origin is None else origin.selection,
        repeat=log.repeats,
    )
    version = None if origin is None or origin.dataset_version is None else text(origin.dataset_version, 64)
    made = record.Session(started=log.started, endpoint="", package_version=log.package, concurrency=0)
    return record.RunRecord(
        dataset="" if origin is None else text(origin.dataset).rstrip("/").rpartition("/")[2],
        dataset_version=version,
        dataset_revision=None,
        settings=settings,
        expected=log.expected,
        sessions=[made],
        totals=predictions.totals([one for one, _ in log.found]),
    )
