"""The submission desk: who may submit and how often, and the moment at which a submission is listed.

An upload is checked and scored first and shown to its user; listing it is a second step. Both look at the
quotas, the second under the store's lock, so that two at once cannot both be the last of the day.
"""

import math
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from . import names
from .checks import Trail
from .limits import Limits
from .records import Checked, Step, Submission, encode
from .refusal import Refused
from .store import PENDING, RECORD, RUN, UPLOAD, Store
from .worker import Job

Clock = Callable[[], datetime]


class Scorer(Protocol):
    """What reads and scores an upload: `worker.Pool`, or a plain function in tests."""

    def run(self, job: Job) -> Checked:
        """Checks and scores one upload. Blocks until it is done; a refusal is a step of the result."""
        ...


class Pending(msgspec.Struct, frozen=True):
    """A scored upload that its user may list."""

    user: str
    checked: Checked


class Desk:
    """Takes uploads for one board."""

    def __init__(
        self, store: Store, scorer: Scorer, limits: Limits, clock: Clock = lambda: datetime.now(UTC)
    ) -> None:
        self.store = store
        self.limits = limits
        self._scorer = scorer
        self._clock = clock

    def check(
        self,
        user: str,
        upload: Path | None,
        record: Path | None,
        *,
        name: str | None = None,
        params: str | None = None,
    ) -> tuple[Checked, str | None]:
        """The answer to an upload, and the ticket with which its user may list it (None if refused)."""
        self.store.sweep(self.limits.pending_s)
        folder = self.store.incoming()
        kept = False
        try:
            self._quota(names.check_user(user), None)
            _copy(upload, folder / UPLOAD, self.limits.file_bytes, "predictions")
            if record is not None:
                _copy(record, folder / RECORD, self.limits.record_bytes, "run record")
            submissions, _ = self.store.submissions()
            job = Job(
                folder=str(folder),
                user=user,
                now=self._clock().isoformat(timespec="seconds"),
                name=(name or "").strip() or None,
                params_b=_size(params),
                listed=tuple({one.model for one in submissions}),
            )
            checked = self._scorer.run(job)
            if checked.submission is None:
                return checked, None
            try:
                self._quota(user, checked.submission)
            except Refused as refusal:  # the report is shown all the same
                return msgspec.structs.replace(checked, steps=checked.steps + _steps(refusal)), None
            (folder / PENDING).write_bytes(encode(Pending(user, checked)))
            kept = True
            self._make_room(user, folder)
            return checked, folder.name
        except Refused as refusal:
            return Checked(steps=_steps(refusal)), None
        finally:
            (folder / UPLOAD).unlink(missing_ok=True)
            if not kept:
                self.store.throw_away(folder)

    def list(self, user: str, ticket: str) -> Submission:
        """Lists a scored upload. The same ticket twice, or the same run again, gives the same submission.

        Raises Refused, also for somebody else's ticket; UserError where the store does not take it.
        """
        folder = self.store.folder / "incoming" / Path(ticket).name
        try:
            pending = msgspec.json.decode((folder / PENDING).read_bytes(), type=Pending)
        except (OSError, ValueError):
            raise Refused("quota", "this upload is no longer here: upload it again") from None
        made, entry = pending.checked.submission, pending.checked.entry
        if pending.user != user or made is None or entry is None:
            raise Refused("quota", "this upload is another user's: upload yours")
        with self.store.locked():
            submissions, _ = self.store.submissions()
            same = next((one for one in submissions if one.id.endswith(made.id.partition("-")[2])), None)
            if same is None:
                names.refuse_lookalike(made.model, {one.model for one in submissions} | names.reserved())
                self._quota(user, made)
                self.store.add(made, folder / RUN, entry)
        return same or made

    def _quota(self, user: str, made: Submission | None) -> None:
        """Raises Refused. Before an upload is read only the user's day is known."""
        today = self._clock().date().isoformat()
        submissions, _ = self.store.submissions()
        mine = [one for one in submissions if one.user == user and one.submitted_at.startswith(today)]
        if len(mine) >= self.limits.per_day:
            raise Refused(
                "quota",
                f"{user} has listed {len(mine)} submissions today, which is all a day takes: come tomorrow",
            )
        if made is not None:
            listed = next((one for one in mine if one.model == made.model), None)
            if listed is not None and listed.id != made.id:
                raise Refused(
                    "quota",
                    f"{user} has listed {made.model} today ({listed.id}): one submission per model and day, "
                    "come tomorrow",
                )

    def _make_room(self, user: str, newest: Path) -> None:
        """At most `limits.pending` scored uploads per user: the oldest go."""
        mine = []
        for path in (self.store.folder / "incoming").iterdir():
            try:
                if msgspec.json.decode((path / PENDING).read_bytes(), type=Pending).user == user:
                    mine.append((path.stat().st_mtime, path))
            except (OSError, msgspec.DecodeError):  # not scored yet, or gone meanwhile
                continue
        for _, path in sorted(mine)[: -self.limits.pending]:
            if path != newest:
                self.store.throw_away(path)


def _steps(refusal: Refused) -> tuple[Step, ...]:
    if refusal.step == "quota":
        return (Step("quota", False, str(refusal)),)
    return Trail().refused(refusal)


def _size(typed: str | None) -> float | None:
    """Billions of parameters as typed, None for nothing. Raises Refused."""
    text = (typed or "").strip()
    if not text:
        return None
    try:
        found = float(text.removesuffix("B").removesuffix("b"))
    except ValueError:
        found = math.nan
    if not 0.001 <= found <= 100_000:  # also refuses NaN
        raise Refused("name", "parameters are given in billions, between 0.001 and 100,000: 7 for a 7B model")
    return found


def _copy(source: Path | None, target: Path, bound: int, what: str) -> None:
    """Copies an upload into the job's folder under a name of ours; never more than `bound` bytes, no link."""
    if source is None:
        raise Refused("size", f"there is no {what} file: choose one")
    try:
        handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        raise Refused("size", f"the {what} file did not arrive: upload it again") from None
    with os.fdopen(handle, "rb") as file, target.open("wb") as out:
        left = bound + 1
        while left and (block := file.read(min(left, 1 << 20))):
            out.write(block)
            left -= len(block)
    if not left:
        raise Refused("size", f"the {what} file has more than {bound:,} bytes, which is as much as is read")
