"""What becomes public of a run on this machine: its record and replies, without names of places."""

import tempfile
from pathlib import Path

import msgspec

from robustbench_tc import schema
from robustbench_tc.column_types import arrow_schema, in_struct
from robustbench_tc.errors import UserError
from robustbench_tc.eval import exchange, predictions
from robustbench_tc.eval.live import record as live_record
from robustbench_tc.eval.record import Mode, open_run
from robustbench_tc.io import parquet
from robustbench_tc.live import Episode

from . import checker, reading
from .checks import public, public_model
from .child import in_child
from .datasets import Rows
from .entry import Refused
from .names import shown


def publish(run: Path, into: Path) -> None:
    """Writes `run.json` and the replies of the run folder `run` into the folder `into`, as everybody may see
    them: without paths, addresses, names of headers, texts of errors and log probabilities.

    Takes a live run too. Raises UserError and Refused.
    """
    is_live = (run / live_record.RECORD).is_file()
    found = live_record.open_run(run).record if is_live else open_run(run).record
    replies = run / (checker.EPISODES if is_live else checker.PREDICTIONS)
    if not replies.is_file():
        raise UserError(
            f"{run} has no {replies.name} yet: the command of the run makes it when it is complete"
        )
    scrubbed = {"error": None, "model": public_model(found.settings.model)}
    if is_live:
        episodes = [
            msgspec.structs.replace(one, **scrubbed) for one in reading.episodes(replies, found.expected)
        ]
        arrow = arrow_schema(in_struct(Episode))
        tables = [parquet.table(schema.columns(episodes, Episode), arrow)]
        parquet.write_file(tables, into / checker.EPISODES, arrow)
    else:
        answers = [
            msgspec.structs.replace(one, **scrubbed) for one in reading.predictions(replies, found.expected)
        ]
        predictions.write(into / checker.PREDICTIONS, answers)
    text = msgspec.json.format(msgspec.json.encode(public(found)), indent=1) + b"\n"
    (into / checker.RECORD).write_bytes(text)


def from_json(upload: Path, into: Path, rows: Rows, *, model: str, mode: Mode) -> None:
    """Makes the run folder `into` of an uploaded JSON file, read in a child: an array or lines of
    predictions, as `rbtc export` writes them or in the layout of the paper's release. Raises Refused."""
    with tempfile.TemporaryDirectory() as scratch:
        lines = Path(scratch, upload.name).with_suffix(".jsonl")

        def work() -> bytes:
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
