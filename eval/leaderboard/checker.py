"""A run folder of a stranger into an `Entry`, or a `Refused` that says why not.

    entry = checked(folder, "ann/Qwen3-8B/20261120-0123456789ab", data)

The folder holds `run.json`, `predictions.parquet` or `episodes.parquet`, and `submission.yaml`; an
`entry.json` that lies there too is not looked at.
"""

import hashlib
import multiprocessing
import os
import re
import resource
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple, NoReturn

import msgspec
import numpy as np

import robustbench_tc
from robustbench_tc import schema, taxonomy
from robustbench_tc.eval import paper, predictions, verdicts
from robustbench_tc.eval.inputs import Dataset
from robustbench_tc.eval.live.inputs import LiveData
from robustbench_tc.eval.parse import READER_VERSION
from robustbench_tc.eval.record import RunFolder, RunRecord
from robustbench_tc.eval.stats import caveats, evidence, packs, runs, summary, values
from robustbench_tc.io import numbers, parquet
from robustbench_tc.schema import Json, Prediction, Verdict, dataset_label

from . import checks, flags, live
from .datasets import Datasets, title
from .entry import (
    SUBMISSION_BYTES,
    Digest,
    Entry,
    Figures,
    Flag,
    Kind,
    LiveFigures,
    Refused,
    Usage,
    Verdicts,
    of_run,
    read_submission,
    shown,
)

RECORD, SUBMISSION, ENTRY = "run.json", "submission.yaml", "entry.json"
PREDICTIONS, EPISODES = "predictions.parquet", "episodes.parquet"

SCORES = 2
"""Raise it when scorers, worlds or statistics change what an entry says of the same replies."""


_UNSAID = re.sub(rb'"description":"(?:[^"\\]|\\.)*",?', b"", msgspec.json.encode(msgspec.json.schema(Entry)))
CHECKER = (
    f"{robustbench_tc.__version__}-reader{READER_VERSION}-scores{SCORES}-"
    f"{hashlib.sha256(_UNSAID).hexdigest()[:8]}"
)
"""Entries of another one, or of another form, are made again."""


# --- a process that may be killed: it gives up memory, time and file sizes before it does its work ---------

_FAILED, _MEMORY = 3, 4
"""Exit codes of a child."""

_MUCH = ("size", "reading it needs more memory than a run may take")
_LONG = ("score", "reading and scoring it took longer than a run may take")
_ENDINGS = {_MEMORY: _MUCH, -signal.SIGABRT: _MUCH, -signal.SIGXCPU: _LONG, -signal.SIGKILL: _LONG}
"""Exit code → step and text of a refusal."""


class Limits(NamedTuple):
    """What a child may take."""

    memory: int
    """Address space, beyond what the process has when it begins."""
    cpu_s: int
    wall_s: float
    file: int
    """Of a file that it writes."""


def in_child(work: Callable[[Path], bytes], limits: Limits) -> bytes:
    """What `work` returns, from a process of its own; it gets a folder that is gone afterwards. Raises
    Refused where it raises, or does not get to its end.

    It is a fork, so that what is loaded need not be loaded again. Of a process whose threads may hold a lock,
    an app for one, it may hang: there let a command do the work.
    """
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch, "answer")
        child = multiprocessing.get_context("fork").Process(target=_work, args=(work, limits, answer))
        child.start()
        try:
            child.join(limits.wall_s)
        finally:
            child.kill()
            child.join()
        if child.exitcode:
            raise Refused(*_ENDINGS.get(child.exitcode, ("format", "it could not be read to its end")))
        return answer.read_bytes()


def _work(work: Callable[[Path], bytes], limits: Limits, answer: Path) -> NoReturn:
    code = _FAILED
    try:
        os.environ.clear()  # tokens, for one
        _bound(limits)
        answer.write_bytes(work(answer.parent))
        code = 0
    except MemoryError:
        code = _MEMORY
    finally:
        os._exit(code)  # without a word of what a hostile file made of it


def _bound(limits: Limits) -> None:
    """Gives up, for this process and for good, what the work does not need."""
    wanted = {
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_FSIZE: limits.file,
        resource.RLIMIT_NOFILE: 128,
        resource.RLIMIT_CORE: 0,
    }
    statm = Path("/proc/self/statm")
    if statm.is_file():  # no Linux: the other limits have to do
        pages = int(statm.read_text().split()[0])
        wanted[resource.RLIMIT_AS] = pages * resource.getpagesize() + limits.memory
    for what, amount in wanted.items():
        hard = resource.getrlimit(what)[1]
        bounded = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(what, (bounded, bounded))


# --- a run folder into an entry ---------------------------------------------------------------------------

LIMITS = Limits(memory=3 << 30, cpu_s=300, wall_s=900, file=1 << 30)
"""What one run may cost. 3,977 rows take about 1 s, the default live dataset about 6 s; the longest replies
that are read at all take a minute."""


def checked(folder: Path, run: str, data: Datasets) -> Entry:
    """The entry of a run folder, from a child with limits, which is killed where it exceeds them.
    `submitter`, `member` and `commit` are the caller's to add. Raises Refused."""
    data.known  # noqa: B018 (worked out once, for all children)

    def work(scratch: Path) -> bytes:
        try:
            return encode(_entry(folder, run, data, scratch))
        except Refused as refused:
            return msgspec.json.encode((refused.step, str(refused), refused.details))

    found = msgspec.json.decode(in_child(work, LIMITS), type=Entry | tuple[str, str, tuple[str, ...]])
    if isinstance(found, tuple):
        raise Refused(*found)
    return found


def _entry(folder: Path, run: str, data: Datasets, scratch: Path) -> Entry:
    _, model, identity = of_run(run)
    inputs = digests(folder)
    if identity != (fits := run_id(folder, identity[:8])):
        raise Refused("name", f"the run id {identity} does not fit the files: {fits} does")
    submission = read_submission((folder / SUBMISSION).read_bytes(), model)
    raised: tuple[Flag, ...] = ()
    core: Figures | None = None
    lived: LiveFigures | None = None
    record = checks.read_record(folder / RECORD)
    if record.live is not (EPISODES in inputs):
        raise Refused(
            "record", "run.json is of no run with such a file: add the one that lies beside the file"
        )
    if EPISODES in inputs:
        if data.live is None:
            raise Refused("dataset", "this is a live run, and no live runs are taken here")
        rows: Dataset | LiveData = data.live
        kind: Kind = "live"
        episodes = live.check(folder / EPISODES, record, data.live)
        lived = live.figures(live.replayed(episodes, data.live))
        raised = live.scripted(episodes, data.live)
    else:
        fitting = (one for one in data.rows if one.fingerprint() == record.settings.fingerprint)
        rows = asked = next(fitting, data.core)
        kind = "core" if asked is data.core else "own"
        answers = checks.check(folder / PREDICTIONS, record, asked)
        core, judged = score(record, answers, asked, kind, scratch)
        if kind == "core":  # on tools of one's own it is nothing strange to be right everywhere
            raised = flags.of_run(list(zip(answers, judged, strict=True)), data.known)
    settings = record.settings
    return Entry(
        kind=kind,
        run=run,
        submission=submission,
        mode=settings.mode,
        defend=settings.defend,
        repeats=settings.repeat,
        dataset=title(rows),
        version=rows.version or "",
        fingerprint=rows.fingerprint(),
        inputs=inputs,
        checker=CHECKER,
        flags=raised,
        core=core,
        live=lived,
    )


BYTES = {
    RECORD: checks.RECORD_BYTES,
    SUBMISSION: SUBMISSION_BYTES,
    PREDICTIONS: checks.FILE_BYTES,
    EPISODES: checks.FILE_BYTES,
}
"""What each file of a run may have."""


def complete(files: Iterable[str]) -> bool:
    """Whether these are the files of a run, with its entry or without."""
    return {*files} - {ENTRY} in ({RECORD, SUBMISSION, PREDICTIONS}, {RECORD, SUBMISSION, EPISODES})


def digests(folder: Path) -> dict[str, Digest]:
    """Of the three files. Raises Refused where other files lie than a run's, and for one too large."""
    there = sorted({path.name for path in folder.iterdir()} - {ENTRY})
    if not complete(there):
        listed = ", ".join(shown(name) for name in there[: checks.LISTED]) or "no files"
        raise Refused(
            "format",
            f"a run is {RECORD}, {PREDICTIONS} or {EPISODES}, and {SUBMISSION}; here lie {listed}",
        )
    return {name: Digest.of_bytes(checks.regular(folder / name, BYTES[name])) for name in there}


def run_id(folder: Path, day: str) -> str:
    """`day` (YYYYMMDD) and 12 hex digits over the record and the replies: equal runs have equal ids."""
    lines = (f"{name} {one.sha256}\n" for name, one in digests(folder).items() if name != SUBMISSION)
    return f"{day}-{hashlib.sha256(''.join(lines).encode()).hexdigest()[:12]}"


def encode(entry: Entry) -> bytes:
    """`entry.json`: the same bytes for the same entry."""
    return msgspec.json.encode(entry) + b"\n"


decode = msgspec.json.Decoder(Entry).decode
"""The entry of such bytes. Raises ValueError for what is no entry."""


def table(entry: Entry) -> str:
    """The figures with their intervals, the flags and what they mean, as Markdown."""
    behind = f", behind {', '.join(entry.defend)}" if entry.defend else ""
    lines = [
        f"**{entry.submission.model}**, mode {entry.mode}{behind}, on {entry.dataset} "
        f"{dataset_label(entry.version, entry.fingerprint)}",
        "",
        "| | value | 95 % interval |",
        "|---|---|---|",
    ]
    headline = entry.core.metrics if entry.core else entry.figures
    for name, one in headline.items():
        if one is not None:
            words = name.replace("_", " ")
            lines.append(f"| {words} | {numbers.number(one.value)} | {numbers.interval(one)} |")
    lines.append("")
    lines += [f"- Flag `{one.code}`: {flags.says(one)}. With a flag there is no rank." for one in entry.flags]
    lines.append("The answers were scored here; the run itself was not repeated, so it is unverified.")
    return "\n".join(lines)


# --- accepted answers into figures: the scorers of `rbtc score`, the values of `rbtc summary` -----------

CONDITIONS = (taxonomy.CLEAN, *taxonomy.codes())
"""The first axis of `Verdicts`."""


def score(
    record: RunRecord, answers: Sequence[Prediction], data: Dataset, kind: Kind, folder: Path
) -> tuple[Figures, list[Verdict]]:
    """Scores answers in the folder `folder`; their figures and verdicts."""
    run = RunFolder(folder, record)
    predictions.write(run.answers_path, answers)
    verdicts.score_file(run, data)
    columns = parquet.read_rows([run.scores_path], list(Verdict.__struct_fields__))
    judged = [schema.record(row, Verdict) for row in columns]
    of_scored = runs.read_run(folder)
    [outcomes] = runs.align([of_scored])
    # No row is missing; own tools have not every type, and then those that are there count.
    found = summary.summarise(outcomes, allow_missing=True)
    perturbed = [
        (one.source, verdict.correct)
        for one, verdict in zip(answers, judged, strict=True)
        if one.type_code in CONDITIONS[1:]
    ]
    asked, right = Counter(of for of, _ in perturbed), Counter(of for of, correct in perturbed if correct)
    unstated = runs.unstated(of_scored)
    says = evidence.answer(of_scored, outcomes)
    answered = [one for one in answers if one.status == "ok"]
    stated = {name: [getattr(one, name) for one in answered] for name in Usage.__struct_fields__}
    usage = {
        name: (median if name == "latency_s" else fmean)(each)
        for name, each in stated.items()
        if any(each) and None not in each
    }
    made = _figures(
        found,
        sources={source: (right[source], n) for source, n in sorted(asked.items())},
        verified=caveats.beside(outcomes, unstated, found.lines) if kind == "core" else {},
        usage=Usage(**usage),
        packs=Counter(taxonomy.get(one.type_code).pack for one in answers if one.type_code not in CONDITIONS),
        tables=packs.tables(packs.Given(of_scored, outcomes, found, True)),
        sentence=says.sentence,
        words={name: one.word for name, one in says.lines.items()},
        delivery=says.delivery,
        verdicts=verdicts_of(answers, judged),
        replies=flags.sketch(answers),
    )
    return made, judged


def of_paper() -> dict[str, Figures]:
    """The figures of the paper's models, by name: counts only, so nothing of theirs can be paired."""
    return {model: _figures(summary.from_counts(paper.counts(model))) for model in paper.models()}


def verdicts_of(answers: Sequence[Prediction], judged: Sequence[Verdict]) -> Verdicts:
    """A bit for each row and repeat."""
    samples = {name: at for at, name in enumerate(sorted({one.clean_id for one in answers}))}
    conditions = {code: at for at, code in enumerate(CONDITIONS)}
    repeats = 1 + max(one.repeat for one in answers)
    there, right = (np.zeros((repeats, len(conditions), len(samples)), dtype=bool) for _ in range(2))
    for one, verdict in zip(answers, judged, strict=True):
        if one.type_code in conditions:
            place = one.repeat, conditions[one.type_code], samples[one.clean_id]
            there[place], right[place] = True, verdict.correct
    return Verdicts(
        len(samples),
        np.packbits(there[0]).tobytes(),
        tuple(np.packbits(of_repeat).tobytes() for of_repeat in right),
    )


def _figures(found: summary.Summary, **rest: Json) -> Figures:
    core = [code for code in taxonomy.codes() if code in found.lines]
    return Figures(
        counts={name: found.lines[name].tally for name in (*values.HEADS, *core)},
        metrics=found.values,
        types={code: found.types[code] for code in core},
        **rest,
    )
