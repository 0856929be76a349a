"""What becomes public of a run on this machine: its record and replies, without names of places."""

import re
from pathlib import Path

import msgspec

from robustbench_tc import schema
from robustbench_tc.column_types import arrow_schema, in_struct
from robustbench_tc.errors import UserError
from robustbench_tc.eval import exchange
from robustbench_tc.eval.live import record as live_record
from robustbench_tc.eval.record import Mode, open_run
from robustbench_tc.io import parquet
from robustbench_tc.io.resolve import HUB_ID
from robustbench_tc.live import Episode

from . import checker, reading
from .child import in_child
from .datasets import Rows
from .entry import Refused, shown


def publish(run: Path, into: Path) -> None:
    """Writes `run.json` and the replies of the run folder `run` into the folder `into`, as everybody may see
    them: without paths, addresses, names of headers, texts of errors and log probabilities.

    Takes a live run too. Raises UserError and Refused.
    """
    is_live = (run / live_record.RECORD).is_file()
    found = (live_record.open_run(run) if is_live else open_run(run)).record
    kind: type[schema.Prediction | Episode] = Episode if is_live else schema.Prediction
    name = checker.EPISODES if is_live else checker.PREDICTIONS
    if not (run / name).is_file():
        raise UserError(f"{run} has no {name} yet: the command of the run makes it when it is complete")
    model = found.settings.model
    if re.match(r"[~./\\]|[A-Za-z]:\\|\w+://", model) or model.count("/") > 1:  # a folder, or an address
        model = "local:" + re.split(r"[/\\]", model.rstrip("/\\"))[-1]
    rows = [
        msgspec.structs.replace(one, model=model, error=None)
        for one in reading.rows(run / name, kind, found.expected)
    ]
    arrow = arrow_schema(in_struct(kind))
    parquet.write_file([parquet.table(schema.columns(rows, kind), arrow)], into / name, arrow)
    public = type(found)(
        dataset=found.dataset if HUB_ID.fullmatch(found.dataset) else Path(found.dataset).name,
        dataset_version=found.dataset_version,
        dataset_revision=None,
        settings=msgspec.structs.replace(found.settings, headers=(), model=model),
        expected=found.expected,
        totals=found.totals,
    )
    text = msgspec.json.format(msgspec.json.encode(public), indent=1) + b"\n"
    (into / checker.RECORD).write_bytes(text)


def from_json(upload: Path, into: Path, rows: Rows, *, model: str, mode: Mode) -> None:
    """Makes the run folder `into` of an uploaded JSON file, read in a child: an array or lines of
    predictions, as `rbtc export` writes them or in the layout of the paper's release. Raises Refused."""

    def work(scratch: Path) -> bytes:
        lines = (scratch / upload.name).with_suffix(".jsonl")
        try:
            text = reading.regular(upload, reading.FILE_BYTES)
            if text.lstrip()[:1] == b"[":
                text = b"\n".join(msgspec.json.decode(text, type=list[msgspec.Raw]))
            lines.write_bytes(text)
            exchange.import_run(lines, rows, model=model, mode=mode, out=into)
        except (UserError, ValueError, AttributeError, RecursionError) as error:
            said = str(error).replace(f"{scratch}/", "").replace(rows.name, rows.title)
            raise Refused("format", shown(said, 300)) from None
        return b""

    in_child(work)
