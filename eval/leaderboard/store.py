"""The results: a folder to which submissions are only ever added. The board is computed from it.

    results/
      submissions/ID/record.json           one small record                         (Submission)
                     predictions.parquet   the raw answers, without any verdict     (Prediction)
                     run.json              how they were asked                      (RunRecord)
      submissions/ID/journal.jsonl         of a live run in the place of these: answers and results of calls
      verifications/ID.json                a maintainer repeated the run            (Verification)
      moderation/ID-0001.json              one taken off the board, or a flag       (Decision)
      entries/ENTRY_VERSION/ID.json        computed: may be thrown away             (Entry)
      entries/LIVE_VERSION/ID.json         the same of live runs                    (LiveEntry)
      boards/                              computed: tables, and an index for a quick start
      incoming/                            uploads that nobody has listed yet
      rbtc.json                            says that the folder is ours

A submission is written beside, synced and renamed: it is wholly there or not at all, whatever is killed when.
Whatever becomes of a stored file later leaves out that submission alone, with one line (`stored`).
"""

import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.io import folders
from robustbench_tc.io.files import atomic_file, is_ours

from . import moderation, stored
from .live_records import LIVE_VERSION, LiveEntry
from .moderation import Decision
from .records import ENTRY_VERSION, Entry, Kind, Submission, Verification, encode

PARTS = ("submissions", "verifications", "moderation", "entries", "boards", "incoming")

RAW: dict[Kind, str] = {"core": "predictions.parquet", "live": "journal.jsonl"}
"""What was answered, by the kind of submission."""

FILES: dict[Kind, tuple[str, ...]] = {kind: ("record.json", raw, "run.json") for kind, raw in RAW.items()}

CARD = """---
license: cc-by-4.0
configs:
- config_name: submissions
  data_files: submissions/*/record.json
---
# Results of the RobustBench-TC leaderboard

One folder per submission: `record.json`, the raw answers (`predictions.parquet`; of a live run
`journal.jsonl`) and the run record (`run.json`). Submissions are added by the leaderboard and never changed;
a newer one of the same user, model and mode supersedes an older one on the board, and both stay here.
`verifications/` says which runs were repeated by a maintainer, `moderation/` which are off the board or
cleared of a flag, and why.
Every figure of the board can be computed again from these files:
`rbtc leaderboard rebuild`.
"""

UPLOAD, RECORD, ANSWER, RUN = "upload", "run.json", "checked.json", "run"
"""Files and folders of an upload's job: what was uploaded, what came out."""

PENDING = "pending.json"
"""Beside them: who may list it."""

SENT = "sent.json"
"""Beside an upload that arrives in parts: what was announced (`uploads`)."""

UPLOADED = {UPLOAD, RECORD, ANSWER, PENDING, SENT, "record.json", *RAW.values()} | {
    f"{RUN}/{name}" for name in (*RAW.values(), "scores.parquet", "run.json")
}
"""Every file that the folder of an upload, or of a submission that is being stored, may hold."""


class Read(msgspec.Struct, frozen=True):
    """A submission as it was read."""

    seen: tuple[int, ...]
    """What changes with its files: see `stored.seen`."""
    submission: Submission


_TICKET = re.compile(r"[A-Za-z0-9_-]{24}")


class Store:
    """A results folder. Safe under several threads and processes; all writing happens under `locked`."""

    def __init__(self, folder: Path) -> None:
        """Opens the folder, or makes it. Raises UserError for one that is something else."""
        self.folder = folder.absolute()
        self._own()
        self.read: dict[str, Read] = {}
        """What has been read of the submissions, by the folder's name."""
        try:
            for part in (*PARTS, f"entries/{ENTRY_VERSION}", f"entries/{LIVE_VERSION}"):
                (self.folder / part).mkdir(exist_ok=True)
        except OSError as error:
            raise UserError(
                f"{error.filename} cannot be a folder ({error.strerror}): move it away, or name another "
                "folder for the results"
            ) from None

    def _own(self) -> None:
        if self.folder.is_symlink():
            raise UserError(f"{self.folder} is a link: name the results folder itself")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise UserError(f"{self.folder} is not a folder: name one for the results") from None
        folder = folders.owner(self.folder)
        if folder is None and not folders.is_more_than(self.folder):
            folders.begin(self.folder, "leaderboard")
            folder = folders.owner(self.folder)
        if folder is None or folder.kind != "leaderboard":
            raise UserError(f"{self.folder} is not a results folder: name another, or a new one")

    # --- reading --------------------------------------------------------------------------------------

    def submissions(self, *, verify: bool = False) -> tuple[list[Submission], list[str]]:
        """Every submission, oldest first, and one line for each that cannot be read.

        One that was read before is not looked at again unless `verify`: it never changes.
        """
        found: dict[str, Submission] = {}
        damaged = []
        for name in sorted(path.name for path in (self.folder / "submissions").iterdir()):
            if name.startswith("."):
                continue
            known = self.read.get(name)
            try:
                if known is None or verify:
                    one = self._record(name) if known is None else known.submission
                    files = self._seen(name, one.kind)
                    if known is None or known.seen != files:
                        known = Read(files, one if known is None else self._record(name))
                        self.read[name] = known
                found[name] = known.submission
            except (OSError, ValueError) as error:
                damaged.append(f"submission {name} is left out: {stored.said(error)}")
        for name in set(self.read) - set(found):
            self.read.pop(name, None)
        return sorted(found.values(), key=lambda one: (one.submitted_at, one.id)), damaged

    def _seen(self, name: str, kind: Kind) -> tuple[int, ...]:
        return tuple(part for file in FILES[kind] for part in stored.seen(self.path(name) / file))

    def _record(self, name: str) -> Submission:
        one = stored.decode(self.path(name) / "record.json", Submission)
        stored.sound(one, name)
        return one

    def verifications(self) -> tuple[dict[str, Verification], list[str]]:
        """By submission id, and one line for each that cannot be read: it counts as absent."""
        found, damaged = {}, []
        for path in sorted((self.folder / "verifications").glob("*.json")):
            try:
                one = stored.decode(path, Verification)
                stored.sound_verification(one, path.stem)
                found[path.stem] = one
            except (OSError, ValueError) as error:
                damaged.append(f"verification {path.stem} is left out: {stored.said(error)}")
        return found, damaged

    def decisions(self) -> tuple[dict[str, tuple[Decision, ...]], list[str]]:
        """What was decided on each submission, in order, and one line for each decision that cannot be read:
        its submission is hidden."""
        return moderation.read(self.folder / "moderation")

    def off_the_board(self) -> tuple[dict[str, Decision], list[str]]:
        """The submissions that are hidden or withdrawn, each with the decision that counts, and the lines of
        `decisions`."""
        decisions, damaged = self.decisions()
        return moderation.hidden(decisions), damaged

    def submission(self, submission_id: str) -> Submission:
        """Raises UserError."""
        found, _ = self.submissions()
        for one in found:
            if one.id == submission_id:
                return one
        raise UserError(
            f"no submission {submission_id!r} in {self.folder}: its page on the board names the id"
        )

    def path(self, submission_id: str) -> Path:
        """The folder of a submission, there or not."""
        return self.folder / "submissions" / submission_id

    @property
    def entries(self) -> Path:
        """The folder of the entries of this version."""
        return self.folder / "entries" / ENTRY_VERSION

    @property
    def live_entries(self) -> Path:
        """The folder of the entries of live runs."""
        return self.folder / "entries" / LIVE_VERSION

    def entry(self, submission_id: str) -> Entry | None:
        """The computed entry; None where there is none that can be read, so that it is computed again."""
        try:
            return stored.decode(self.entries / f"{submission_id}.json", Entry, stored.ENTRY_BYTES)
        except (OSError, ValueError):
            return None

    def live_entry(self, submission_id: str) -> LiveEntry | None:
        """The same of a live run."""
        try:
            return stored.decode(self.live_entries / f"{submission_id}.json", LiveEntry, stored.ENTRY_BYTES)
        except (OSError, ValueError):
            return None

    def entry_of(self, one: Submission) -> Entry | LiveEntry | None:
        """`entry` or `live_entry`, by its kind."""
        return self.live_entry(one.id) if one.kind == "live" else self.entry(one.id)

    def entries_seen(self, *, live: bool = False) -> dict[str, tuple[int, int]]:
        """Submission id → what changes with its entry."""
        there = {}
        with os.scandir(self.live_entries if live else self.entries) as found:
            for one in found:
                if one.name.startswith(".") or not one.name.endswith(".json"):
                    continue
                with suppress(FileNotFoundError):  # it was there a moment ago
                    if one.is_file(follow_symlinks=False):
                        of = one.stat(follow_symlinks=False)
                        there[one.name.removesuffix(".json")] = of.st_mtime_ns, of.st_size
        return there

    def revision(self) -> tuple[int, ...]:
        """Another value after every addition: a look at five folders, cheap enough for every request."""
        parts = ("submissions", "verifications", "moderation")
        folders = (*(self.folder / part for part in parts), self.entries, self.live_entries)
        return tuple(folder.stat().st_mtime_ns for folder in folders)

    # --- writing --------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time; the others wait. The kernel drops the lock with its process."""
        with (self.folder / ".lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def add(self, submission: Submission, run: Path, entry: Entry | LiveEntry) -> None:
        """Stores a submission with the files of its run folder. Call it under `locked`.

        Raises UserError where it cannot be stored; then it is not there.
        """
        self.put_entry(submission.id, entry)
        computed = self._entry_path(submission.id, entry)
        files = FILES[submission.kind]
        staged = self.incoming()
        try:
            (staged / "record.json").write_bytes(encode(submission))
            for name in files[1:]:
                shutil.copyfile(run / name, staged / name)
            self._publish(
                {f"submissions/{submission.id}/{name}": staged / name for name in files}
                | {computed.relative_to(self.folder).as_posix(): computed},
                f"Submission {submission.id}: {submission.model} by {submission.user}",
            )
            self._place(staged, submission.id, files)
        finally:
            self.throw_away(staged)

    def _place(self, staged: Path, submission_id: str, files: Sequence[str] = ()) -> None:
        """Gives it its name, once `files` are on the disk; without them it is there already."""
        for name in files:
            _sync(staged / name)
        if files:
            _sync(staged)
        staged.rename(self.path(submission_id))
        if files:
            _sync(self.folder / "submissions")

    def verify(self, verification: Verification) -> None:
        """Stores a verification. Call it under `locked`."""
        name = f"verifications/{verification.submission}.json"
        with atomic_file(self.folder / name, replace=True) as beside:
            beside.write_bytes(encode(verification))
            self._publish({name: beside}, f"Verified {verification.submission}")

    def decide(self, decision: Decision) -> None:
        """Stores a decision behind those on the same submission. Call it under `locked`.

        Raises UserError where it would change nothing.
        """
        made, _ = self.decisions()
        one = decision.submission
        if decision.action in moderation.ON_FLAGS:
            cleared = moderation.cleared(made).get(one, {})
            moderation.refuse_idle_flag(decision, cleared.get(decision.flag))
        else:
            moderation.refuse_idle(decision.action, one, moderation.hidden(made).get(one))
        before = len(list((self.folder / "moderation").glob(f"{one}-*.json")))
        name = f"moderation/{moderation.file_name(one, before + 1)}"
        with atomic_file(self.folder / name) as beside:
            beside.write_bytes(encode(decision))
            self._publish({name: beside}, f"{one}: {decision.says()}")

    def put_entry(self, submission_id: str, entry: Entry | LiveEntry) -> None:
        """Stores a computed entry, in the place of an older one. `publish_entries` sends it on."""
        with atomic_file(self._entry_path(submission_id, entry), replace=True) as beside:
            beside.write_bytes(encode(entry))

    def _entry_path(self, submission_id: str, entry: Entry | LiveEntry) -> Path:
        folder = self.live_entries if isinstance(entry, LiveEntry) else self.entries
        return folder / f"{submission_id}.json"

    def _take_entry(self, source: Path, target: Path) -> None:
        """An entry from elsewhere."""
        if source.is_file():
            with atomic_file(target, replace=True) as beside:
                shutil.copyfile(source, beside)

    def publish_entries(self, ids: Sequence[str]) -> None:
        """Where results also go elsewhere: entries that were computed again. Raises UserError."""
        files = [folder / f"{name}.json" for name in ids for folder in (self.entries, self.live_entries)]
        there = {path.relative_to(self.folder).as_posix(): path for path in files if path.is_file()}
        if there:
            self._publish(there, f"{len(there)} entries, {ENTRY_VERSION}")

    def put_board(self, version: str, table: bytes) -> None:
        """Stores the table of a board."""
        with atomic_file(self.folder / "boards" / f"{version}.json", replace=True) as beside:
            beside.write_bytes(table)

    def board(self, version: str) -> bytes | None:
        """The bytes that `put_board` stored; None where there are none."""
        path = self.folder / "boards" / f"{version}.json"
        return path.read_bytes() if path.is_file() else None

    def incoming(self) -> Path:
        """A new folder for an upload."""
        path = self.folder / "incoming" / secrets.token_urlsafe(18)
        path.mkdir(mode=0o700)
        return path

    def sweep(self, older_than_s: float) -> None:
        """Removes uploads that nobody listed, and what a killed process left of one."""
        for path in (self.folder / "incoming").iterdir():
            try:
                if time.time() - path.lstat().st_mtime > older_than_s:
                    self.throw_away(path)
            except FileNotFoundError:  # listed, or swept by another request, meanwhile
                continue

    def throw_away(self, path: Path) -> None:
        """Removes an upload, file by file; anything else that lies among them stays."""
        if _TICKET.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            for found in (*sorted(path.rglob("*"), reverse=True), path):  # what is in a folder before itself
                if found.is_dir() and not found.is_symlink():
                    with suppress(OSError):  # something else lies among them
                        found.rmdir()
                elif found.relative_to(path).as_posix() in UPLOADED or is_ours(found.name):
                    found.unlink()

    def _publish(self, files: Mapping[str, Path], message: str) -> None:
        """Where results also go elsewhere (`hub`): all of `files` at once, before they count here."""


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def current(submissions: Sequence[Submission]) -> dict[str, str | None]:
    """For each submission id the id of the one that supersedes it, or None. `submissions` oldest first."""
    newest: dict[tuple[str, ...], str] = {one.line: one.id for one in submissions}
    return {one.id: None if newest[one.line] == one.id else newest[one.line] for one in submissions}
