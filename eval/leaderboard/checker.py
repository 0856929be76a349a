"""A run folder of a stranger into an `Entry`, or a `Refused` that says why not.

    entry = checked(folder, "ann/Qwen3-8B/20261120-0123456789ab", data)

The folder holds `run.json`, `predictions.parquet` or `episodes.parquet`, and `submission.yaml`; an
`entry.json` that lies there too is not looked at.
"""

import hashlib
import re
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
from .datasets import Datasets, LiveRows, Rows
from .entry import Digest, Entry, Figures, LiveFigures, Refused

RECORD, SUBMISSION, ENTRY = "run.json", "submission.yaml", "entry.json"
PREDICTIONS, EPISODES = "predictions.parquet", "episodes.parquet"

SCORES = 1
"""Raise it when scorers, worlds or statistics change what an entry says of the same replies."""


_UNSAID = re.sub(rb'"description":"(?:[^"\\]|\\.)*",?', b"", msgspec.json.encode(msgspec.json.schema(Entry)))

_FORM = hashlib.sha256(_UNSAID).hexdigest()[:8]
CHECKER = f"{robustbench_tc.__version__}-reader{READER_VERSION}-scores{SCORES}-{_FORM}"
"""Entries of another one are made again."""


def checked(folder: Path, run: str, data: Datasets, limits: Limits = Limits()) -> Entry:
    """`check_run` in a child with limits, which is killed where it exceeds them. Raises Refused."""
    data.core.known  # noqa: B018 (worked out once, for all children)
    with tempfile.TemporaryDirectory() as scratch:
        return decode(in_child(lambda: encode(_entry(folder, run, data, Path(scratch))), limits))


def check_run(folder: Path, run: str, data: Datasets) -> Entry:
    """The entry of a run folder, in this process. `submitter`, `member` and `commit` are the caller's to add.
    Raises Refused."""
    with tempfile.TemporaryDirectory() as scratch:
        return _entry(folder, run, data, Path(scratch))


def _entry(folder: Path, run: str, data: Datasets, scratch: Path) -> Entry:
    _, model, identity = names.of_run(run)
    replies, inputs = replies_of(folder), digests(folder)
    if identity != (fits := run_id(folder, identity[:8])):
        raise Refused("name", f"the run id {identity} does not fit the files: {fits} does")
    submission = names.submission(reading.regular(folder / SUBMISSION, names.SUBMISSION_BYTES), model)
    record: RunRecord | LiveRecord
    rows: Rows | LiveRows
    core: Figures | None = None
    lived: LiveFigures | None = None
    if replies == EPISODES:
        if data.live is None:
            raise Refused("dataset", "this is a live run, and no live runs are taken here")
        rows = data.live
        record = reading.record(folder / RECORD, LiveRecord)
        episodes = live.check(folder, record, rows)
        lived = live.figures(live.replayed(episodes, rows))
        raised = live.flags(episodes, record.settings, rows)
    else:
        said = reading.record(folder / RECORD, RunRecord)
        rows = next((one for one in data.rows if one.digest == said.settings.fingerprint), data.core)
        record, answers = checks.check(folder, said, rows)
        core, verdicts = scoring.score(record, answers, rows, scratch)
        # On tools of one's own it is nothing strange to be right everywhere.
        raised = flags.of_run(answers, verdicts, rows) if rows.kind == "core" else ()
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
        inputs=inputs,
        checker=CHECKER,
        flags=raised,
        core=core,
        live=lived,
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
    lines = (f"{name} {one.sha256}\n" for name, one in digests(folder).items() if name != SUBMISSION)
    return f"{day}-{hashlib.sha256(''.join(lines).encode()).hexdigest()[:12]}"


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
