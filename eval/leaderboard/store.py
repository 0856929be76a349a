"""The results: a folder to which submissions are only ever added. The board is computed from it.

    results/
      submissions/ID/record.json           one small record                         (Submission)
                     predictions.parquet   the raw answers, without any verdict     (Prediction)
                     run.json              how they were asked                      (RunRecord)
      verifications/ID.json                a maintainer repeated the run            (Verification)
      moderation/ID-0001.json              a submission taken off the board         (Decision)
      entries/ID.json                      computed: may be thrown away             (Entry)
      boards/VERSION.json                  computed: the table that is served
      incoming/                            uploads that nobody has listed yet
      rbtc.json                            says that the folder is ours

A submission is written beside, synced and renamed: it is wholly there or not at all, whatever is killed when.
"""

import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.io import owned, scratch
from robustbench_tc.io.files import atomic_file
from robustbench_tc.io.folders import is_more_than
from robustbench_tc.io.removal import remove_files

from . import moderation
from .moderation import Decision
from .records import Entry, Submission, Verification, encode

PARTS = ("submissions", "verifications", "moderation", "entries", "boards", "incoming")

FILES = ("record.json", "predictions.parquet", "run.json")
CARD = """---
license: cc-by-4.0
configs:
- config_name: submissions
  data_files: submissions/*/record.json
---
# Results of the RobustBench-TC leaderboard

One folder per submission: `record.json`, the raw answers (`predictions.parquet`) and the run record
(`run.json`). Submissions are added by the leaderboard and never changed; a newer one of the same user, model
and mode supersedes an older one on the board, and both stay here. `verifications/` says which runs were
repeated by a maintainer, `moderation/` which are off the board, and why.
Every figure of the board can be computed again from these files:
`rbtc leaderboard rebuild`.
"""

UPLOAD, RECORD, ANSWER, RUN = "upload", "run.json", "checked.json", "run"
"""Files and folders of an upload's job: what was uploaded, what came out."""

PENDING = "pending.json"
"""Beside them: who may list it."""

SENT = "sent.json"
"""Beside an upload that arrives in parts: what was announced (`uploads`)."""

UPLOADED = {UPLOAD, RECORD, ANSWER, PENDING, SENT, *FILES} | {
    f"{RUN}/{name}" for name in ("predictions.parquet", "scores.parquet", "run.json")
}
"""Every file that the folder of an upload, or of a submission that is being stored, may hold."""

_TICKET = re.compile(r"[A-Za-z0-9_-]{24}")

T = TypeVar("T", bound=msgspec.Struct)


class Store:
    """A results folder. Safe under several threads and processes; all writing happens under `locked`."""

    def __init__(self, folder: Path) -> None:
        """Opens the folder, or makes it. Raises UserError for one that is something else."""
        self.folder = folder.absolute()
        self._own()
        for part in PARTS:
            (self.folder / part).mkdir(exist_ok=True)

    def _own(self) -> None:
        if self.folder.is_symlink():
            raise UserError(f"{self.folder} is a link: name the results folder itself")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise UserError(f"{self.folder} is not a folder: name one for the results") from None
        folder = owned.owner(self.folder)
        if folder is None and (not is_more_than(self.folder) or self._is_unmarked()):
            folder = owned.create(self.folder, "leaderboard")
        if folder is None or folder.kind != "leaderboard":
            raise UserError(f"{self.folder} is not a results folder: name another, or a new one")

    def _is_unmarked(self) -> bool:
        """Whether it is one from before folders had markers: all of its parts, and nothing else."""
        there = {path.name for path in self.folder.iterdir()} - {".lock"}
        return there | {"moderation"} == set(PARTS) and all(
            (self.folder / part).is_dir() and not (self.folder / part).is_symlink() for part in there
        )

    # --- reading --------------------------------------------------------------------------------------

    def submissions(self) -> tuple[list[Submission], list[str]]:
        """Every submission, oldest first, and one line for each that cannot be read."""
        found, damaged = [], []
        for path in sorted((self.folder / "submissions").iterdir()):
            if path.name.startswith("."):
                continue
            try:
                one = _decode(path / "record.json", Submission)
                missing = [name for name in FILES if not (path / name).is_file()]
                if missing:
                    raise ValueError(f"it has no {', '.join(missing)}")
                if one.id != path.name:
                    raise ValueError(f"its record is that of {one.id}")
                found.append(one)
            except (OSError, ValueError) as error:
                damaged.append(f"submission {path.name} is left out: {error}")
        return sorted(found, key=lambda one: (one.submitted_at, one.id)), damaged

    def verifications(self) -> tuple[dict[str, Verification], list[str]]:
        """By submission id, and one line for each that cannot be read: it counts as absent."""
        found, damaged = {}, []
        for path in sorted((self.folder / "verifications").glob("*.json")):
            try:
                found[path.stem] = _decode(path, Verification)
            except (OSError, ValueError) as error:
                damaged.append(f"verification {path.stem} is left out: {error}")
        return found, damaged

    def off_the_board(self) -> tuple[dict[str, Decision], list[str]]:
        """The submissions that are hidden or withdrawn, each with the decision that counts, and one line for
        each decision that cannot be read: its submission is hidden."""
        decisions, damaged = moderation.read(self.folder / "moderation")
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

    def entry(self, submission_id: str) -> Entry | None:
        """The computed entry; None where there is none yet."""
        try:
            return _decode(self.folder / "entries" / f"{submission_id}.json", Entry)
        except (OSError, ValueError):
            return None

    def revision(self) -> tuple[int, ...]:
        """Another value after every addition: two looks at folders, cheap enough for every request."""
        parts = ("submissions", "verifications", "moderation", "entries")
        return tuple((self.folder / part).stat().st_mtime_ns for part in parts)

    # --- writing --------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time; the others wait. The kernel drops the lock with its process."""
        with (self.folder / ".lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def add(self, submission: Submission, run: Path, entry: Entry) -> None:
        """Stores a submission with the files of its run folder. Call it under `locked`.

        Raises UserError where it cannot be stored; then it is not there.
        """
        self.put_entry(submission.id, entry)
        staged = self.incoming()
        try:
            (staged / "record.json").write_bytes(encode(submission))
            for name in ("predictions.parquet", "run.json"):
                shutil.copyfile(run / name, staged / name)
            self._publish(
                {f"submissions/{submission.id}/{name}": staged / name for name in FILES},
                f"Submission {submission.id}: {submission.model} by {submission.user}",
            )
            self._place(staged, submission.id)
        finally:
            self.throw_away(staged)

    def _place(self, staged: Path, submission_id: str) -> None:
        for name in FILES:
            _sync(staged / name)
        _sync(staged)
        staged.rename(self.path(submission_id))
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
        off, _ = self.off_the_board()
        moderation.refuse_idle(decision.action, decision.submission, off.get(decision.submission))
        before = len(list((self.folder / "moderation").glob(f"{decision.submission}-*.json")))
        name = f"moderation/{moderation.file_name(decision.submission, before + 1)}"
        with atomic_file(self.folder / name) as beside:
            beside.write_bytes(encode(decision))
            self._publish({name: beside}, f"{decision.submission}: {moderation.SAYS[decision.action]}")

    def put_entry(self, submission_id: str, entry: Entry) -> None:
        """Stores a computed entry, in the place of an older one. Not published: it can be computed again."""
        with atomic_file(self.folder / "entries" / f"{submission_id}.json", replace=True) as beside:
            beside.write_bytes(encode(entry))

    def put_board(self, version: str, table: bytes) -> None:
        """The served table; written only where it changed."""
        path = self.folder / "boards" / f"{version}.json"
        if not path.is_file() or path.read_bytes() != table:
            with atomic_file(path, replace=True) as beside:
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
        if _TICKET.fullmatch(path.name):
            remove_files(path, lambda name, found: name in UPLOADED or scratch.is_ours(Path(name).name))

    def _publish(self, files: Mapping[str, Path], message: str) -> None:
        """Where results also go elsewhere (`hub`): all of `files` at once, before they count here."""


def _decode(path: Path, kind: type[T]) -> T:
    return msgspec.json.decode(path.read_bytes(), type=kind)


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
