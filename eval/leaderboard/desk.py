"""The submission desk: who may submit and how often, and the moment at which a submission is listed.

    place ──► waits in turns ──► read and scored in a worker ──► result ──► list

An upload is checked and scored first and shown to its user; listing it is a second step. Both look at the
quotas, the second under the store's lock, so that two at once cannot both be the last of the day. Nothing
here waits for a worker but `result`.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from . import names
from .checks import Trail
from .limits import Limits
from .metering import Meter
from .records import Checked, Step, Submission, encode
from .refusal import APART, Refused
from .store import PENDING, RECORD, RUN, UPLOAD, Store
from .submitting import Form, Progress, Stated, Submitter, stated
from .turns import Turns
from .worker import Job

Clock = Callable[[], datetime]

_REMEMBERED = 2_000
"""Refused uploads whose answers are kept; the oldest go first."""


class Scorer(Protocol):
    """What reads and scores an upload: `worker.Pool`, or a plain class in tests."""

    @property
    def size(self) -> int:
        """Uploads that are read at once."""
        ...

    def run(self, job: Job) -> Checked:
        """Checks and scores one upload. Blocks until it is done; a refusal is a step of the result."""
        ...


class Pending(msgspec.Struct, frozen=True):
    """A scored upload that its user may list."""

    user: str
    checked: Checked
    orgs: tuple[str, ...] = ()


class _Upload:
    """One upload from its place in the queue to its answer."""

    def __init__(self, who: Submitter, said: Stated, folder: Path) -> None:
        self.who = who
        self.said = said
        self.folder = folder
        self.reading = False
        self.done = False
        self.refused: Checked | None = None
        """The answer to one that is not kept; that of a kept one lies in its folder."""


class Desk:
    """Takes uploads for one board. Safe under threads."""

    def __init__(
        self, store: Store, scorer: Scorer, limits: Limits, clock: Clock = lambda: datetime.now(UTC)
    ) -> None:
        self.store = store
        self.limits = limits
        self._scorer = scorer
        self._clock = clock
        self._change = threading.Condition()
        self._uploads: dict[str, _Upload] = {}
        self._turns = Turns(limits, scorer.size)
        self._meter = Meter(limits)

    # --- from upload to answer ------------------------------------------------------------------------

    def place(self, who: Submitter, upload: Path | None, record: Path | None, form: Form) -> str:
        """Puts an upload into the queue and returns its ticket. The files are copied, and may go then.

        Raises Refused at once: for a form that cannot be listed, a quota or share that is used up, a file
        that is not there or too large.
        """
        names.check_user(who.user)
        said = stated(form)
        if upload is None:
            raise Refused("size", "there is no predictions file: choose one")
        folder = self.store.incoming()
        ticket = folder.name
        try:
            with self._change:
                gone = self._turns.join(ticket, who, time.monotonic())
                if gone is not None:
                    self._put_out(gone)
                self._meter.count(who, self._clock().date().isoformat())
                self._uploads[ticket] = _Upload(who, said, folder)
            self.store.sweep(self.limits.pending_s)
            self._quota(who, None)
            _copy(upload, folder / UPLOAD, self.limits.file_bytes, "predictions")
            if record is not None:
                _copy(record, folder / RECORD, self.limits.record_bytes, "run record")
        except BaseException:
            self._forget(ticket)
            self.store.throw_away(folder)
            raise
        with self._change:
            self._turns.ready(ticket)
            self._begin()
        return ticket

    def progress(self, who: Submitter, ticket: str) -> Progress:
        """Where an upload is. Raises Refused for a ticket that is not there, or somebody else's."""
        with self._change:
            mine = self._find(who.user, ticket)
            if mine is None or mine.done:
                return Progress("done")
            place, seconds = self._turns.place(ticket, time.monotonic())
            if not mine.reading:
                return Progress("waiting", place, seconds)
        return Progress("scoring" if (mine.folder / RUN).is_dir() else "checking", None, seconds)

    def result(self, who: Submitter, ticket: str, timeout: float | None = None) -> Checked:
        """The answer, once it is there; it may be listed if nothing of it is refused.

        Raises Refused as `progress` does, TimeoutError after `timeout` seconds.
        """
        with self._change:
            mine = self._find(who.user, ticket)
            if mine is not None and not self._change.wait_for(lambda: mine.done, timeout):
                raise TimeoutError
            if mine is not None and mine.refused is not None:
                return mine.refused
        return self._pending(who.user, ticket).checked

    def list(self, user: str, ticket: str) -> Submission:
        """Lists a scored upload. The same ticket twice, or the same run again, gives the same submission.

        Raises Refused, also for somebody else's ticket; UserError where the store does not take it.
        """
        pending = self._pending(user, ticket)
        made, entry = pending.checked.submission, pending.checked.entry or pending.checked.live
        if made is None or entry is None:
            raise Refused("quota", "this upload was not accepted: it cannot be listed")
        with self.store.locked():
            submissions, _ = self.store.submissions()
            same = next((one for one in submissions if one.id.endswith(made.id.partition("-")[2])), None)
            if same is None:
                names.refuse_lookalike(made.model, {one.model for one in submissions} | names.reserved())
                _refuse_name(Submitter(user, "", pending.orgs), made, submissions)
                self._quota(Submitter(user, "", pending.orgs), made)
                self.store.add(made, self._folder(ticket) / RUN, entry)
        return same or made

    # --- the queue ------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Starts every check that may begin, each in a thread of its own. Call it under the lock."""
        while (ticket := self._turns.take(time.monotonic())) is not None:
            mine = self._uploads[ticket]
            mine.reading = True
            threading.Thread(target=self._read, args=(ticket, mine), daemon=True).start()

    def _read(self, ticket: str, mine: _Upload) -> None:
        try:
            checked = self._checked(mine)
        except Exception:  # whatever it is, the visitor gets a line and nothing of the server's inside
            said = (
                "the server could not check this upload: try again, and tell the maintainers if it stays so"
            )
            checked = Checked(steps=(Step("score", False, said),))
        refused = checked.refused
        if refused is not None:
            self.store.throw_away(mine.folder)
        with self._change:
            mine.refused = checked if refused is not None else None
            mine.done = True
            scored = refused is None or checked.submission is not None
            self._turns.ended(ticket, time.monotonic(), scored=scored)
            self._trim()
            self._begin()
            self._change.notify_all()

    def _checked(self, mine: _Upload) -> Checked:
        submissions, _ = self.store.submissions()
        who, folder = mine.who, mine.folder
        try:
            checked = self._scorer.run(
                Job(
                    folder=str(folder),
                    user=who.user,
                    now=self._clock().isoformat(timespec="seconds"),
                    stated=mine.said,
                    listed=tuple({one.model for one in submissions}),
                )
            )
            if checked.submission is None:
                return checked
            try:
                _refuse_name(who, checked.submission, submissions)
                self._quota(who, checked.submission)
            except Refused as refusal:  # the report is shown all the same
                return msgspec.structs.replace(checked, steps=_with(checked.steps, refusal))
            (folder / PENDING).write_bytes(encode(Pending(who.user, checked, who.orgs)))
            self._make_room(who.user, folder)
            return checked
        finally:
            (folder / UPLOAD).unlink(missing_ok=True)

    def _put_out(self, ticket: str) -> None:
        """Answers an upload that lost its place. Call it under the lock."""
        mine = self._uploads[ticket]
        said = "the queue was full and the others had had fewer turns than you: upload it again later"
        mine.refused, mine.done = Checked(steps=steps_of(Refused("quota", said))), True
        self.store.throw_away(mine.folder)
        self._change.notify_all()

    def _forget(self, ticket: str) -> None:
        with self._change:
            self._turns.leave(ticket)
            self._uploads.pop(ticket, None)

    def _trim(self) -> None:
        """Forgets answers that are kept in their folders anyway, and the oldest of the others."""
        done = [ticket for ticket, one in self._uploads.items() if one.done]
        for ticket in done[: max(0, len(done) - _REMEMBERED)]:
            del self._uploads[ticket]

    # --- tickets --------------------------------------------------------------------------------------

    def _find(self, user: str, ticket: str) -> _Upload | None:
        """The upload of a ticket; None for one that is answered in its folder. Raises Refused."""
        mine = self._uploads.get(ticket)
        if mine is None:
            self._pending(user, ticket)
        elif mine.who.user != user:
            raise _anothers()
        return mine

    def _folder(self, ticket: str) -> Path:
        return self.store.folder / "incoming" / Path(ticket).name

    def _pending(self, user: str, ticket: str) -> Pending:
        try:
            pending = msgspec.json.decode((self._folder(ticket) / PENDING).read_bytes(), type=Pending)
        except (OSError, ValueError):
            raise Refused("quota", "this upload is no longer here: upload it again") from None
        if pending.user != user:
            raise _anothers()
        return pending

    # --- quotas ---------------------------------------------------------------------------------------

    def _quota(self, who: Submitter, made: Submission | None) -> None:
        """Raises Refused. Before an upload is read only the user's day is known."""
        today = self._clock().date().isoformat()
        submissions, _ = self.store.submissions()
        mine = [one for one in submissions if one.user == who.user and one.submitted_at.startswith(today)]
        if len(mine) >= self._meter.per_day(who):
            raise Refused(
                "quota",
                f"{who.user} has listed {len(mine)} submissions today, which is all a day takes: "
                "come tomorrow",
            )
        if made is not None:
            what = made.kind, made.model, made.defence
            listed = next((one for one in mine if (one.kind, one.model, one.defence) == what), None)
            if listed is not None and listed.id != made.id:
                raise Refused(
                    "quota",
                    f"{who.user} has listed {made.model} today ({listed.id}): one submission per model and "
                    "day, come tomorrow",
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


def _anothers() -> Refused:
    return Refused("quota", "this upload is another user's: upload yours")


def steps_of(refusal: Refused) -> tuple[Step, ...]:
    """The refusal as the answer to an upload."""
    if refusal.step in APART:
        return (Step(refusal.step, False, str(refusal)),)
    return Trail().refused(refusal)


def _with(steps: tuple[Step, ...], refusal: Refused) -> tuple[Step, ...]:
    """The steps of a scored upload, with the one that fails after all."""
    if refusal.step in APART:
        return (*steps, *steps_of(refusal))
    return tuple(
        Step(refusal.step, False, str(refusal)) if step.code == refusal.step else step for step in steps
    )


def _refuse_name(who: Submitter, made: Submission, submissions: Sequence[Submission]) -> None:
    """Raises Refused for a name that is another's: an organisation's, or a version of a model of somebody
    else's."""
    names.check_organisation(made.model, who.user, who.orgs)
    mine = {one.model for one in submissions if one.user == who.user}
    others = {one.model for one in submissions} - mine - {made.model}
    if made.model not in names.reserved() and made.model not in {one.model for one in submissions}:
        names.refuse_version(made.model, names.reserved(), others)


def _copy(source: Path, target: Path, bound: int, what: str) -> None:
    """Copies an upload into the job's folder under a name of ours; never more than `bound` bytes, no link."""
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
