"""`rbtc leaderboard verify` of live runs: a maintainer has played the dataset again.

An endpoint is not asked again: a live run cannot be drawn as single rows, each answer depends on what the
world said before. So a live run becomes `reproduced`, or stays unverified.
"""

from datetime import UTC, datetime
from pathlib import Path

import robustbench_tc
from robustbench_tc.errors import UserError
from robustbench_tc.eval.live.record import JOURNAL, LiveRecord
from robustbench_tc.eval.live.record import RECORD as LIVE_RECORD
from robustbench_tc.eval.live.score import LiveScore
from robustbench_tc.eval.record import Settings
from robustbench_tc.eval.stats.live import same_success
from robustbench_tc.io.numbers import number, p_value

from . import stored
from .board import LEVEL
from .checks import Trail
from .limits import Limits
from .live_checks import check_live, replay, stored_episodes
from .live_data import LiveAsked
from .records import Submission, Verification
from .store import Store


def refuse_live(one: Submission) -> None:
    """Raises UserError for a live run where one over the rows is meant."""
    if one.kind == "live":
        raise UserError(
            f"{one.id} is a live run: it is verified by playing it again, with --run RUN and --live-dataset "
            "(no endpoint can be matched to one)"
        )


def refuse_core(one: Submission) -> None:
    """Raises UserError for a run over the rows where a live one is meant."""
    if one.kind != "live":
        raise UserError(f"{one.id} is no live run: name its dataset with --dataset")


def refuse_other(
    ours: Settings, theirs: Settings, fields: tuple[str, ...], run: Path, submission_id: str
) -> None:
    """Raises UserError for a repeated run that was asked otherwise than the submission."""
    for what in fields:
        here, there = getattr(ours, what), getattr(theirs, what)
        if here != there:
            raise UserError(f"{run} has another {what} than {submission_id}: {here} here, {there} there")


def verify_live(
    store: Store,
    submission_id: str,
    run: Path,
    asked: LiveAsked,
    *,
    by: str,
    now: datetime | None = None,
) -> Verification:
    """Marks a live run that was repeated in the run folder `run`. Raises UserError where it was not.

    The repeated run passes the checks of an upload, is of the same mode, decoding, defences and repeats, and
    its success over all faulted episodes is not significantly another (exact paired test over tasks).
    """
    submission = store.submission(submission_id)
    refuse_core(submission)
    if (already := store.verifications()[0].get(submission_id)) is not None:
        raise UserError(f"{submission_id} is verified already, by {already.by} on {already.verified_at[:10]}")
    if submission.fingerprint != asked.fingerprint:
        raise UserError(
            f"{submission_id} is of live dataset version {submission.dataset_version} "
            f"({submission.fingerprint[:8]}): name that dataset with --live-dataset"
        )
    folder = store.path(submission_id)
    try:
        before = stored.decode(folder / "run.json", LiveRecord)
        theirs = replay(stored_episodes(folder, before, asked), asked)
    except (OSError, ValueError) as error:
        raise UserError(f"{submission_id} is damaged: {stored.said(error)}") from None
    if not (run / JOURNAL).is_file():
        raise UserError(f"{run} is not a live run: it has no {JOURNAL} (`rbtc live run` makes one)")
    record = run / LIVE_RECORD
    accepted = check_live(
        run / JOURNAL,
        record if record.is_file() else None,
        asked,
        name=submission.model,
        listed=[submission.model],
        limits=Limits(),
        trail=Trail(),
    )
    settings = accepted.record.settings
    refuse_other(settings, before.settings, ("mode", "decoding", "repeat", "defend"), run, submission_id)
    again = replay(accepted.episodes, asked)
    made = _compared(submission_id, run, theirs, again, by, accepted.journal.digest(), now)
    with store.locked():
        store.verify(made)
    return made


def _compared(
    submission_id: str,
    run: Path,
    theirs: list[LiveScore],
    again: list[LiveScore],
    by: str,
    digest: str,
    now: datetime | None,
) -> Verification:
    same = same_success(theirs, again)
    if same.p < LEVEL:
        raise UserError(
            f"{run} does not repeat {submission_id}: success with faults {number(same.b)} here, "
            f"{number(same.a)} there, p = {p_value(same.p)}; it stays unverified"
        )
    return Verification(
        submission=submission_id,
        verified_at=(now or datetime.now(UTC)).isoformat(timespec="seconds"),
        by=by,
        rows=same.n,
        agree=same.agree,
        submitted=same.a,
        repeated=same.b,
        p=same.p,
        predictions_sha256=digest,
        package_version=robustbench_tc.__version__,
    )
