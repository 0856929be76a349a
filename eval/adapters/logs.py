"""Logs of other harnesses beside run folders: `rbtc report` and `rbtc compare` take both.

A log becomes a scored run in a folder of its own, which is gone after the block. What is counted then is
counted by the code that counts for runs.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa

from robustbench_tc.errors import UserError
from robustbench_tc.eval import predictions, record
from robustbench_tc.eval.stats import runs
from robustbench_tc.eval.stats.runs import Run
from robustbench_tc.eval.verdicts import with_verdicts
from robustbench_tc.io import parquet
from robustbench_tc.schema import Prediction, Verdict, arrow_schema, arrow_table

from . import inspect_log, lm_eval_log
from .foreign import Keys, Log, Origin, Scored, keys_of, text

READERS: dict[str, Callable[[Path, Keys], AbstractContextManager[Log]]] = {
    ".eval": inspect_log.open_log,
    ".json": lm_eval_log.open_log,
}
"""By the end of a file's name."""


class Opened(msgspec.Struct, frozen=True):
    """A scored run: a folder as it was given, or the one that a log became."""

    name: str
    """As given."""
    folder: str
    notes: tuple[str, ...] = ()

    def read_run(self) -> Run:
        """The run, under the name that was given."""
        return msgspec.structs.replace(runs.read_run(self.folder), path=self.name)


@contextmanager
def opened(names: Sequence[str], log_keys: Sequence[str] = ()) -> Iterator[list[Opened]]:
    """Runs and logs by name, as scored runs for as long as the block lasts. Raises UserError."""
    keys = keys_of(log_keys)
    with tempfile.TemporaryDirectory(prefix="rbtc-logs-") as place:
        found = []
        for number, name in enumerate(names):
            path, folder = Path(name), Path(place) / str(number)
            # A run is a folder: any file is a log, and so is what is called like one and is not there.
            if path.is_dir() or not (path.is_file() or path.suffix in READERS):
                found.append(Opened(name, name))
            elif path.suffix in READERS:
                with READERS[path.suffix](path, keys) as log:
                    found.append(Opened(name, str(folder), _written(log, log.scored(keys), folder)))
            else:
                raise UserError(
                    f"{name} is neither a run folder nor a supported log (.eval of inspect_ai, "
                    "results_….json of lm-eval)"
                )
        yield found


def _written(log: Log, found: Sequence[Scored], folder: Path) -> tuple[str, ...]:
    """Writes the run of a log; what has to be said of it."""
    if not found:
        raise UserError(f"{log.path} holds no samples: was it written without them?")
    folder.mkdir()
    kinds = arrow_schema(Prediction, Verdict)
    try:
        table = with_verdicts(
            arrow_table((one for one, _ in found), Prediction), [verdict for _, verdict in found]
        )
        parquet.write_file([table.select(kinds.names)], folder / "scores.parquet", kinds)
        (folder / record.RECORD).write_bytes(msgspec.json.encode(_record(log, found)))
    # Half a surrogate pair, a number of 30 digits.
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise UserError(f"{log.path} is damaged: {text(error)}") from None
    between = sum(verdict is not None and verdict.score not in (0, 1) for _, verdict in found)
    more = [f"{between} scores lie between right and wrong: they count as wrong"] if between else []
    return tuple(f"{log.path}: {note}" for note in (*log.notes, *more))


def _record(log: Log, found: Sequence[Scored]) -> record.RunRecord:
    """As far as a log says it. Its dataset's path is that of another machine: the name is kept."""
    origin = log.origin or Origin(dataset="", fingerprint="", prompt_version="")
    settings = record.Settings(
        fingerprint=text(origin.fingerprint, 64),
        model=log.model,
        mode=found[0][0].mode,
        backend=log.backend,
        decoding=log.decoding,
        prompt_version=text(origin.prompt_version, 64),
        selection=origin.selection,
        repeat=log.repeats,
    )
    return record.RunRecord(
        dataset=text(origin.dataset).rstrip("/").rpartition("/")[2],
        dataset_version=text(origin.dataset_version, 64) if origin.dataset_version else None,
        dataset_revision=None,
        settings=settings,
        expected=max(log.expected, len(found)),
        sessions=[
            record.Session(started=log.started, endpoint="", package_version=log.package, concurrency=0)
        ],
        totals=predictions.totals([one for one, _ in found]),
    )
