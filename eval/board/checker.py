"""A run folder of a stranger into an `Entry`, or a `Refused` that says why not.

    entry = checked(folder, "ann/Qwen3-8B/20261120-0123456789ab", data)

The folder holds `run.json`, `predictions.parquet` or `episodes.parquet`, and `submission.yaml`; an
`entry.json` that lies there too is not looked at.
"""

import hashlib
import tempfile
from pathlib import Path

import msgspec

import robustbench_tc
from robustbench_tc.eval.live.record import LiveRecord
from robustbench_tc.eval.parse import READER_VERSION
from robustbench_tc.eval.record import RunRecord
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.io import numbers

from . import checks, flags, live, names, reading, scoring
from .child import Limits, in_child
from .datasets import Datasets
from .entry import Digest, Entry, Refused, Submission

RECORD, PREDICTIONS, EPISODES, SUBMISSION = (
    "run.json",
    "predictions.parquet",
    "episodes.parquet",
    "submission.yaml",
)
ENTRY = "entry.json"

SCORES = 1
"""Raise it when scorers, worlds or statistics change what an entry says of the same replies."""


def _shape(of: object) -> object:
    """A JSON schema without its words."""
    if isinstance(of, dict):
        return {key: _shape(value) for key, value in of.items() if key != "description"}
    return [_shape(value) for value in of] if isinstance(of, list) else of


_SHAPE = hashlib.sha256(msgspec.json.encode(_shape(msgspec.json.schema(Entry)), order="sorted")).hexdigest()[
    :8
]

CHECKER = f"{robustbench_tc.__version__}-reader{READER_VERSION}-scores{SCORES}-{_SHAPE}"
"""Entries of another one are made again."""


class _Answer(msgspec.Struct, frozen=True):
    """What a child says."""

    entry: Entry | None = None
    step: str = ""
    text: str = ""
    details: tuple[str, ...] = ()


def checked(folder: Path, run: str, data: Datasets, limits: Limits = Limits()) -> Entry:
    """`check_run` in a child with limits, which is killed where it exceeds them. Raises Refused."""
    data.warm()
    with tempfile.TemporaryDirectory() as scratch:

        def work() -> bytes:
            try:
                return msgspec.json.encode(_Answer(_entry(folder, run, data, Path(scratch))))
            except Refused as refused:
                return msgspec.json.encode(_Answer(None, refused.step, str(refused), refused.details))

        answer = msgspec.json.decode(in_child(work, limits), type=_Answer)
    if answer.entry is None:
        raise Refused(answer.step, answer.text, answer.details)
    return answer.entry


def check_run(folder: Path, run: str, data: Datasets) -> Entry:
    """The entry of a run folder, in this process. `submitter`, `member` and `commit` are the caller's to add.
    Raises Refused."""
    with tempfile.TemporaryDirectory() as scratch:
        return _entry(folder, run, data, Path(scratch))


def _entry(folder: Path, run: str, data: Datasets, scratch: Path) -> Entry:
    name = names.of_run(run)
    replies = replies_of(folder)
    found = digests(folder)
    if name.id != run_id(folder, name.id[:8]):
        raise Refused(
            "name", f"the run id {name.id} does not fit the files: {run_id(folder, name.id[:8])} does"
        )
    submission = names.submission(reading.regular(folder / SUBMISSION, names.SUBMISSION_BYTES, "form"), name)
    if replies == EPISODES:
        return _live_entry(folder, run, data, submission, found)
    record = reading.record(folder / RECORD, RunRecord)
    rows = next((one for one in data.rows if one.digest == record.settings.fingerprint), data.core)
    accepted = checks.check(folder, record, rows)
    figures, judged = scoring.score(accepted, rows, scratch / "run")
    settings = record.settings
    return Entry(
        kind=rows.kind,
        run=run,
        submission=submission,
        mode=settings.mode,
        defend=settings.defend,
        repeats=settings.repeat,
        dataset=rows.title,
        version=rows.label,
        fingerprint=rows.digest,
        inputs=found,
        checker=CHECKER,
        # On tools of one's own to be right everywhere is nothing strange.
        flags=flags.of_run(accepted.predictions, judged, rows) if rows.kind == "core" else (),
        core=figures,
    )


def _live_entry(
    folder: Path, run: str, data: Datasets, submission: Submission, found: dict[str, Digest]
) -> Entry:
    if data.live is None:
        raise Refused("dataset", "this is a live run, and no live runs are taken here")
    record = reading.record(folder / RECORD, LiveRecord)
    episodes = live.check(folder, record, data.live)
    settings = record.settings
    return Entry(
        kind="live",
        run=run,
        submission=submission,
        mode=settings.mode,
        defend=settings.defend,
        repeats=settings.repeat,
        dataset=data.live.title,
        version=data.live.label,
        fingerprint=data.live.digest,
        inputs=found,
        checker=CHECKER,
        flags=live.flags(episodes, settings, data.live),
        live=live.figures(live.replayed(episodes, data.live)),
    )


def replies_of(folder: Path) -> str:
    """The name of the file with the replies. Raises Refused where other files lie than a run's."""
    there = {path.name for path in folder.iterdir()} - {ENTRY}
    for replies in (PREDICTIONS, EPISODES):
        if there == {RECORD, replies, SUBMISSION}:
            return replies
    listed = ", ".join(names.shown(one) for one in sorted(there)[: checks.LISTED])
    raise Refused(
        "format",
        f"a run is {RECORD}, {PREDICTIONS} or {EPISODES}, and {SUBMISSION}; here lie {listed or 'no files'}",
    )


def digests(folder: Path) -> dict[str, Digest]:
    """Of the three files. Raises Refused for one that is too large, or none."""
    most = {SUBMISSION: names.SUBMISSION_BYTES, RECORD: reading.RECORD_BYTES}
    found = {}
    for name in sorted((RECORD, SUBMISSION, replies_of(folder))):
        text = reading.regular(folder / name, most.get(name, reading.FILE_BYTES))
        git = hashlib.sha1(b"blob %d\0" % len(text) + text, usedforsecurity=False).hexdigest()
        found[name] = Digest(len(text), hashlib.sha256(text).hexdigest(), git)
    return found


def run_id(folder: Path, day: str) -> str:
    """`day` (YYYYMMDD) and 12 hex digits over the record and the replies: equal runs have equal ids."""
    over = hashlib.sha256()
    for name, digest in digests(folder).items():
        if name != SUBMISSION:
            over.update(f"{name} {digest.sha256}\n".encode())
    return f"{day}-{over.hexdigest()[:12]}"


def encode(entry: Entry) -> bytes:
    """`entry.json`: the same bytes for the same entry."""
    return msgspec.json.encode(entry) + b"\n"


def decode(text: bytes) -> Entry:
    """Raises ValueError for what is no entry."""
    return msgspec.json.decode(text, type=Entry)


def table(entry: Entry) -> str:
    """The figures with their intervals, the flags and what they mean, as Markdown."""
    found: dict[str, Interval | None] = {}
    if entry.live is not None:
        found = {"clean success": entry.live.clean, **{one.name: one.success for one in entry.live.lines}}
    elif entry.core is not None:
        found = dict(entry.core.metrics)
    behind = f", behind {', '.join(entry.defend)}" if entry.defend else ""
    lines = [
        f"**{entry.submission.model}**, mode {entry.mode}{behind}, on {entry.dataset} {entry.version} "
        f"({entry.fingerprint[:8]})",
        "",
        "| | value | 95 % interval |",
        "|---|---|---|",
    ]
    for name, one in found.items():
        if one is not None:
            words = name.replace("_", " ")
            lines.append(f"| {words} | {numbers.number(one.value)} | {numbers.interval(one)} |")
    lines.append("")
    lines += [f"- Flag `{one.code}`: {flags.says(one)}. With a flag there is no rank." for one in entry.flags]
    lines.append("The answers were scored here; the run itself was not repeated, so it is unverified.")
    return "\n".join(lines)
