"""What becomes public of a run on this machine: its record and replies, without names of places."""

import re
from pathlib import Path

import msgspec

from robustbench_tc import schema
from robustbench_tc.errors import UserError
from robustbench_tc.eval.record import RunRecord, open_run
from robustbench_tc.io import parquet
from robustbench_tc.io.resolve import HUB_ID
from robustbench_tc.schema import Episode, arrow_table

from . import checker, reading


def model_of(run: Path) -> str:
    """The model that the record of a run names. Raises UserError."""
    return open_run(run).record.settings.model


def publish(run: Path, into: Path) -> None:
    """Writes `run.json` and the replies of the run folder `run` into the folder `into`, as everybody may see
    them: without paths, addresses, names of headers, texts of errors and log probabilities.

    Takes a live run too. Raises UserError and Refused.
    """
    found = open_run(run).record
    live = (Episode, checker.EPISODES)
    kind, name = live if found.live else (schema.Prediction, checker.PREDICTIONS)
    if not (run / name).is_file():
        raise UserError(f"{run} has no {name} yet: the command of the run makes it when it is complete")
    model = found.settings.model
    if re.match(r"[~./\\]|[A-Za-z]:\\|\w+://", model) or model.count("/") > 1:  # a folder, or an address
        model = "local:" + re.split(r"[/\\]", model.rstrip("/\\"))[-1]
    rows = [
        msgspec.structs.replace(one, model=model, error=None)
        for one in reading.rows(run / name, kind, found.expected)
    ]
    table = arrow_table(rows, kind)
    parquet.write_file([table], into / name, table.schema)
    public = RunRecord(
        live=found.live,
        dataset=found.dataset if HUB_ID.fullmatch(found.dataset) else Path(found.dataset).name,
        dataset_version=found.dataset_version,
        dataset_revision=None,
        settings=msgspec.structs.replace(found.settings, headers=(), model=model, checkpoint=None),
        expected=found.expected,
        totals=found.totals,
    )
    text = msgspec.json.format(msgspec.json.encode(public), indent=1) + b"\n"
    (into / checker.RECORD).write_bytes(text)
