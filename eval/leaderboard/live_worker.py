"""Checks and scores an uploaded live run, in the process of `worker` that may be killed."""

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from .checks import Trail
from .limits import Limits
from .live_checks import Replaying, check_live
from .live_data import CLOSED, LiveAsked
from .live_records import LiveEntry
from .live_scoring import ALL, encode_record, score_live
from .records import Checked
from .refusal import CORE, Refused
from .store import RECORD, RUN, UPLOAD
from .submission import submission_of

if TYPE_CHECKING:
    from .worker import Job


def examine_live(
    job: "Job",
    asked: LiveAsked | None,
    limits: Limits,
    complete: Replaying = lambda episodes, size, calls: None,
) -> Checked:
    """As `worker.examine`; `complete` as `check_live`."""
    folder, trail = Path(job.folder), Trail(CORE)
    record = folder / RECORD
    try:
        if asked is None:
            raise Refused("dataset", f"this is a live run, and this board takes none: {CLOSED}")
        accepted = check_live(
            folder / UPLOAD,
            record if record.is_file() else None,
            asked,
            name=job.stated.name,
            listed=job.listed,
            limits=limits,
            trail=trail,
            complete=complete,
        )
        run = folder / RUN
        run.mkdir()
        written = accepted.journal.bytes()
        (run / "journal.jsonl").write_bytes(written)
        (run / "run.json").write_bytes(encode_record(accepted.record))
        entry, _ = score_live(accepted.episodes, accepted.record.settings, asked)
    except Refused as refusal:
        return Checked(steps=trail.refused(refusal))
    trail.passed("replay", f"{entry.episodes:,} episodes, every call answered as in the journal")
    trail.passed("score", _says(entry))
    return Checked(
        steps=trail.steps(),
        live=entry,
        submission=submission_of(
            job,
            accepted.record.settings,
            kind="live",
            model=accepted.model,
            answers=sha256(written).hexdigest(),
            label=asked.label,
            fingerprint=asked.fingerprint,
        ),
    )


def _says(entry: LiveEntry) -> str:
    every = entry.line(ALL)
    assert every is not None
    return f"{round(every.success.value * every.n):,} of {every.n:,} faulted episodes end as they should"
