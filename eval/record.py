"""A run's folder: what was asked under which settings, every answer as it came, and what was made of it.

    runs/qwen3-8b-fc/
      run.json              settings, dataset, sessions, totals               (RunRecord)
      journal.jsonl         one line per answer, synced as it arrives         (Answer, by key; of a live run
                            also one per reply's results)
      predictions.parquet   one row per (row, repeat)                         (Prediction)
      episodes.parquet      of a live run in their place                      (Episode)
      scores.parquet        the same rows with their verdicts                 (`rbtc score`)
      rbtc.json             names these files: what of the folder is ours (`io.folders`)

The journal is the truth: the parquet files are made from it and can be made again.
"""

import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, Self, cast

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.io import folders
from robustbench_tc.io.files import atomic_file
from robustbench_tc.llm import Stats, Store
from robustbench_tc.llm.store import read_lines
from robustbench_tc.schema import ASKED_AGAIN, Json, Status, dumps

from . import growth
from .agents.blind import TypeFigures
from .data import Data, Selection
from .live.inputs import LiveData

RECORD = "run.json"
FORMAT = 2
"""Of the run record."""
JOURNAL, SCORES = "journal.jsonl", "scores.parquet"
PREDICTIONS, EPISODES = "predictions.parquet", "episodes.parquet"

Mode = Literal["prompt", "fc"]


class Settings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the answers of a run depend on, and which rows it holds.

    A run goes on under equal settings, and grows where only `selection` and `repeat` differ (`growth`).
    """

    fingerprint: str
    """Of the dataset: `inputs.Dataset.fingerprint`."""
    model: str
    mode: Mode
    backend: str
    decoding: dict[str, Json]
    """Parameters as asked for; what an endpoint does not take is listed in its session's `left_out`."""
    prompt_version: str
    selection: Selection = Selection()
    """The first of the run's selections; a grown run may have others (`RunRecord.also`)."""
    repeat: int = 1
    """How often every row is asked."""
    system: str | None = None
    """A text of the user's in front of every system message."""
    headers: tuple[str, ...] = ()
    """Names of the headers sent beside the client's own; a session has digests of their values."""
    defend: tuple[str, ...] = ()
    """Defences between the rows and the model (`defend.names`), the first in front."""
    share: bool = True
    """Whether equal requests are asked once at temperature 0."""
    checkpoint: str | None = None
    """What the endpoint is asked for, where `model` is a name that the user gave it (`--name`)."""

    @property
    def shares(self) -> bool:
        """Whether equal requests of a model have one answer."""
        return self.share and self.decoding.get("temperature") == 0

    def key(
        self, asked_hash: str, repeat: int, number: int, wording: str | None = None, further: int = 0
    ) -> str:
        """The address of an answer: model, mode, decoding, prompt texts, what is asked, repeat, pass.

        A system text, names of headers, a wording of the row's own (`prompts.wording`), defences and the
        number of a further request of the pass count where there are some: keys from before there were any
        stay.
        """
        what: tuple[Json, ...] = (
            self.model,
            self.mode,
            self.backend,
            # Names sorted: equal settings are equal, in whatever order they came.
            [*msgspec.json.decode(msgspec.json.encode(self.decoding, order="sorted")).items()],
            self.prompt_version if self.mode == "prompt" else None,
            asked_hash,
            repeat,
            number,
        )
        if self.system is not None or self.headers:
            what = (*what, self.system, self.headers)
        if wording is not None:
            what = (*what, wording)
        if self.defend:
            what = (*what, "defend", self.defend, further)
        return hashlib.sha256(dumps(what).encode()).hexdigest()[:32]


class Session(Stats, kw_only=True):
    """One start of the command on a run; the cost is 0 without prices."""

    started: str
    """UTC, ISO 8601."""
    seconds: float | None = None
    """None: it was killed."""
    endpoint: str = ""
    package_version: str
    concurrency: int = 0
    selection: Selection | None = None
    """What this start asked; None for predictions that were not asked here."""
    repeat: int | None = None
    shared: int = 0
    """Requests that were not sent: an equal one had its answer."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """A digest of each header's value (`RequestSettings.header_digests`)."""


Answered = Literal["yes", "no", "not in this form"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What one check of `rbtc probe` found."""

    check: str
    answer: Answered
    note: str = ""
    """What the server said or did, and what that means for a run."""

    @property
    def line(self) -> str:
        """For people: `native call: no. The call is in the text …`"""
        return f"{self.check}: {self.answer}. {self.note}".rstrip()


class RunRecord(msgspec.Struct, kw_only=True):
    """`run.json`."""

    format: int = FORMAT
    live: bool = False
    """Whether its rows are episodes, each played in a world."""
    dataset: str
    """Folder or Hub id, as loaded."""
    dataset_version: str | None
    dataset_revision: str | None
    left_out: dict[str, int] = {}
    """Rows of the dataset's files that cannot be evaluated, by reason."""
    settings: Settings
    also: tuple[Selection, ...] = ()
    """Selections besides that of the settings: the run holds the rows of all."""
    expected: int
    """Predictions or episodes of a complete run: rows of all selections times repeats."""
    reused: dict[str, int] = {}
    """Answers that were taken from elsewhere: from other runs (`--reuse`), by their folder as given, and from
    files of answers (`rbtc import`), by their name."""
    sessions: list[Session] = []
    served_models: list[str] = []
    """Model ids that the replies named."""
    totals: dict[str, Json] = {}
    """Over the predictions (`predictions.totals`) or episodes that are there."""
    flagged: dict[str, dict[str, dict[str, int]]] = {}
    """Correct and n of the rows that carry a flag, by flag and type; filled by `rbtc score`."""
    needs_no_reading: tuple[TypeFigures, ...] = ()
    """How far one gets in the dataset without the request; filled by `rbtc score`."""
    open_wording: str | None = None
    """`prompts.open_version` where rows were asked in words that leave it open to call nothing."""
    unreviewed: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """Clean ids whose golden answers a log proposed and nobody looked at; filled by `rbtc score`."""
    probed: tuple[Finding, ...] | None = None
    """What the server did with the first questions of `rbtc probe`, asked once a run."""
    reader: str | None = None
    """`eval.parse.READER_VERSION` that the verdicts rest on; None before there was one."""

    @property
    def answered(self) -> int:
        """Predictions or episodes that are there."""
        return int(self.totals.get("predictions", 0) or self.totals.get("episodes", 0))

    def how_far(self, done: int) -> str:
        """`12 of 40 rows`"""
        return f"{done:,} of {self.expected:,} " + ("episodes" if self.live else "rows")

    @property
    def selections(self) -> tuple[Selection, ...]:
        """What the run was asked, all together."""
        return (self.settings.selection, *self.also)


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reply, or its absence: a line of the journal."""

    id: str
    repeat: int
    number: int
    """The pass, from 1: each further one follows a call that was answered with the row's text."""
    further: int = 0
    """Which of the pass's requests, from 0: defences may make several. Their answers stand here as the model
    gave them; what is scored is made of them again whenever the journal is read."""
    status: Status
    text: str | None = None
    tool_calls: Json = None
    has_call: bool | None = None
    """A pass whose call is answered with the row's text: whether one was made, so whether it was."""
    finish_reason: str | None = None
    error: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_s: float | None = None
    retries: int = 0
    logprobs: Json = None
    reasoning: str | None = None
    """What a reasoning parser of the server split off; kept for the reader, never scored."""
    served_model: str | None = None
    reused: bool = False
    """Taken from another run (`--reuse`) or a file of answers: asked and paid for there."""
    request: str | None = None
    """A digest of the request, where equal ones are asked once (`run.Sharing`)."""
    shared: bool = False
    """The answer to an equal request of this run, which was paid for there."""


def mode_of(word: str) -> Mode:
    """`prompt` or `fc`; the paper's `api` is fc against the provider. Raises UserError."""
    if word == "api":
        return "fc"
    if word not in ("prompt", "fc"):
        raise UserError(f"mode {word!r}: prompt or fc (api is another name of fc)")
    return cast(Mode, word)


@dataclass
class RunFolder:
    """The files of one run; the journal is open only inside `journal()`."""

    path: Path
    record: RunRecord
    notes: list[str] = field(default_factory=list)
    """What the user has to know of how the folder was found."""
    before: RunRecord | None = None
    """The record before this start let the run grow."""

    @property
    def answers_path(self) -> Path:
        """The file that is made of the journal: predictions, or episodes."""
        return self.path / (EPISODES if self.record.live else PREDICTIONS)

    @property
    def ended(self) -> bool:
        """Whether its last session wrote what it got; one that runs or was killed has not."""
        return bool(self.record.sessions) and self.record.sessions[-1].seconds is not None

    @property
    def under_way(self) -> bool:
        """Whether it is to have more answers, and some are not scored: it runs, was stopped or cut off."""
        record, journal = self.record, self.journal_path
        if not record.sessions or (self.ended and record.answered >= record.expected):
            return False
        if not self.scores_path.exists():
            return True
        # Scored since its last answer: `rbtc score` of such a run, or `rbtc eval` where requests failed.
        return journal.exists() and self.scores_path.stat().st_mtime < journal.stat().st_mtime

    @property
    def scores_path(self) -> Path:
        return self.path / SCORES

    @property
    def journal_path(self) -> Path:
        return self.path / JOURNAL

    def save(self) -> None:
        """Writes the record."""
        with atomic_file(self.path / RECORD, replace=True) as beside:
            beside.write_bytes(msgspec.json.format(msgspec.json.encode(self.record), indent=1) + b"\n")

    def journal(self) -> Store:
        """The journal, locked for this process; a torn last line is cut off."""
        return Store(self.journal_path)

    def claim(self, *new: Path) -> None:
        """Makes the folder of a copied run one of ours. UserError where one of the `new` is there already."""
        folders.claim(self.path, "run", (RECORD, JOURNAL, self.answers_path.name, SCORES), *new)

    @classmethod
    def check_place(cls, path: Path) -> None:
        """UserError where no such run can be begun or gone on with at `path`: said before any work."""
        if (meant := os.path.expanduser(path)) != str(path):  # noqa: PTH111 (as pyarrow would, and nobody else)
            raise UserError(f"{path}: the shell did not expand the ~ (is it in quotes?): write {meant}")
        if (path / RECORD).exists() and not path.is_symlink():
            cls.open(path)
        else:
            folders.check_begin(path, "run")

    @classmethod
    def open(cls, path: Path) -> Self:
        """An existing folder. Raises UserError."""
        file = path / RECORD
        try:
            record = msgspec.json.decode(file.read_bytes(), type=RunRecord)
        except (FileNotFoundError, NotADirectoryError):
            refuse_no_run(path)
        except PermissionError:  # nothing is wrong with the file
            raise UserError(f"{file} may not be read: change its rights") from None
        except (msgspec.DecodeError, OSError) as error:
            hint = "bring back a copy of it, or ask into another folder"
            raise UserError(f"{file} is damaged ({error}): {hint}") from None
        if record.format != FORMAT:
            raise UserError(
                f"{file} is of format {record.format}, this version reads {FORMAT}: begin a new run"
            )
        return cls(path, record)


open_run, check_place = RunFolder.open, RunFolder.check_place


def default_place(model: str, mode: Mode, suffix: str = "", *, live: bool = False) -> Path:
    """Where a run goes that was given no place: `runs/MODEL-MODE` or `runs/live/MODEL-MODE`, with characters
    that a path may hold."""
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-") or "model"
    return Path("runs/live" if live else "runs") / f"{slug}-{mode}{suffix}"


def start(path: Path, data: Data[Any], settings: Settings, expected: int, *, dry: bool = False) -> RunFolder:
    """The folder for a run: a new one, or the one that is there if its answers were got under equal settings.

    That one grows by rows and repeats that it does not hold yet; `expected` is for a new one. `dry`: nothing
    is written.
    Raises UserError with every difference for a folder that has answers under other settings.
    """
    check_place(path)
    folder = RunFolder(
        path,
        RunRecord(
            live=isinstance(data, LiveData),
            dataset=data.name,
            dataset_version=data.version,
            dataset_revision=data.revision,
            left_out=data.left_out,
            settings=settings,
            expected=expected,
        ),
    )
    if (path / RECORD).exists():
        found = open_run(path)
        there = found.record.settings
        same = not growth.differences(there, settings) and not found.record.also
        if same or _has_answers(found):
            growth.check(path, there, settings)
            if not same and settings.backend not in ("import", "door"):
                growth.grow(found, data, settings)
            found.record.dataset = data.name
            folder = found
    if not dry:
        path.mkdir(parents=True, exist_ok=True)
        folder.claim(folder.answers_path, folder.scores_path)
        if folder.before is None:  # what a run grows by is saved with its next session
            folder.save()
    return folder


def _has_answers(folder: RunFolder) -> bool:
    """False for a run that never got beyond its start: nobody was there, the model's name was wrong, or an
    own agent failed on its first row."""
    journal = folder.journal_path
    if journal.is_file():
        return any(line.get("status") not in ASKED_AGAIN for _, line in read_lines(journal))
    return folder.answers_path.is_file()


def refuse_live(path: Path) -> None:
    """UserError for the folder of a live run, or a file in one."""
    for folder in (path, path.parent):
        if (folder / EPISODES).is_file():
            raise UserError(
                f"{folder} is a live run: use rbtc summary, score, report or show "
                "(or rbtc sql live_recovery --run)"
            )


def refuse_no_run(path: Path) -> NoReturn:
    """UserError for what is no run folder: to score it would not help."""
    raise UserError(f"{path} is not a run folder: it has no {RECORD} (`rbtc eval` makes one)") from None
