"""What becomes public of a run folder on this machine: its record and replies, without names of places."""

from pathlib import Path

import msgspec

from robustbench_tc import schema
from robustbench_tc.column_types import arrow_schema, in_struct
from robustbench_tc.errors import UserError
from robustbench_tc.eval import predictions
from robustbench_tc.eval.live import record as live_record
from robustbench_tc.eval.record import open_run
from robustbench_tc.io import parquet
from robustbench_tc.live import Episode

from . import checker, reading
from .checks import public, public_model


def publish(run: Path, into: Path) -> None:
    """Writes `run.json` and the replies of the run folder `run` into the folder `into`, as everybody may see
    them: without paths, addresses, names of headers, texts of errors and log probabilities.

    Takes a live run too, and a run of a results repository, which it copies. Raises UserError and Refused.
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
    record = msgspec.json.format(msgspec.json.encode(public(found)), indent=1) + b"\n"
    (into / checker.RECORD).write_bytes(record)
