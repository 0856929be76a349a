"""Again from the raw predictions: every entry, every board, and the verification of a repeated run."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

import robustbench_tc
from robustbench_tc.compute import parallel
from robustbench_tc.compute.parallel import Workers
from robustbench_tc.errors import UserError
from robustbench_tc.eval import predictions, record
from robustbench_tc.eval.record import RunRecord
from robustbench_tc.io.numbers import number, p_value

from . import live_board, moderation, stored
from . import table as tables
from .board import LEVEL, Board, boards, p_of, tier_of
from .checks import Accepted, Asked, Trail, check
from .index import Index
from .limits import Limits
from .live_board import LiveBoard
from .live_data import LiveAsked
from .live_records import LiveEntry
from .live_scoring import rescore_live
from .live_verify import refuse_live, refuse_other
from .moderation import Decision
from .records import Entry, Kind, Submission, Verification
from .row import Figures
from .scoring import entries_of_paper, score
from .store import Store
from .tiers import Flag


class Rebuilt(msgspec.Struct, frozen=True, kw_only=True):
    """What a rebuild found. With nothing in `changed` and `not_possible` the served boards are the same."""

    same: tuple[str, ...]
    changed: tuple[str, ...]
    """Submissions whose stored entry was another; it has been replaced."""
    new: tuple[str, ...]
    """Submissions that had no entry."""
    not_possible: dict[str, str]
    """Submission → why."""
    boards_changed: tuple[str, ...]


def rescore(folder: Path, submission: Submission, asked: Asked) -> Entry:
    """The entry of a stored submission from its raw predictions. Raises UserError where they are damaged."""
    raw = folder / "predictions.parquet"
    try:
        stored.seen(raw)
        if sha256(raw.read_bytes()).hexdigest() != submission.predictions_sha256:
            raise UserError(f"{raw} is not what was submitted: its sha256 is another")
        answers = tuple(predictions.read(raw))
        run = stored.decode(folder / "run.json", RunRecord)
        accepted = Accepted(submission.model, run, answers, (None,) * len(answers))
        with tempfile.TemporaryDirectory() as temporary:
            entry, _ = score(accepted, asked, Path(temporary) / "run")
    except UserError:
        raise
    except Exception as error:  # whatever a file that was changed by hand makes a reader raise
        said = stored.said(error) or type(error).__name__
        raise UserError(f"{submission.id} cannot be scored: {said}") from None
    return entry


def rescored(
    folder: Path, submission: Submission, asked: Asked | LiveAsked | None
) -> Entry | LiveEntry | str:
    """`rescore`, or `rescore_live`, or why not."""
    try:
        if isinstance(asked, LiveAsked):
            return rescore_live(folder, submission, asked)
        if asked is None:
            return f"{submission.id} is a live run, and its dataset was not given (--live-dataset)"
        return rescore(folder, submission, asked)
    except UserError as error:
        return str(error)


def rebuild(
    store: Store,
    asked: Sequence[Asked],
    *,
    live: Sequence[LiveAsked] = (),
    only_missing: bool = False,
    num_proc: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> Rebuilt:
    """Computes entries and boards from what was submitted and replaces what differs.

    A submission of a dataset version that is not among `asked`, or `live` for a live run, keeps the
    entry that it has. The number of processes moves no byte.
    """
    datasets: dict[tuple[Kind, str], Asked | LiveAsked] = {
        **{("core", one.fingerprint()): one for one in asked},
        **{("live", one.fingerprint): one for one in live},
    }
    submissions, damaged = store.submissions()
    same: list[str] = []
    changed: list[str] = []
    new: list[str] = []
    _, unread = store.verifications()
    why: dict[str, str] = {line.split()[1]: line for line in damaged}
    _, hiding = store.off_the_board()
    why |= {f"moderation/{line.split()[1]}": line for line in hiding}
    why |= {f"verifications/{line.split()[1]}.json": line for line in unread}
    todo = []
    for one in submissions:
        if only_missing and store.entry_of(one) is not None:
            continue
        if (one.kind, one.fingerprint) in datasets:
            todo.append(one)
        else:
            option = " (--live-dataset)" if one.kind == "live" else ""
            why[one.id] = (
                f"dataset version {one.dataset_version} ({one.fingerprint[:8]}) was not given{option}"
            )

    def work(one: Submission) -> Entry | LiveEntry | str:
        return rescored(store.path(one.id), one, datasets[one.kind, one.fingerprint])

    done = parallel.map_ordered(work, todo, Workers(num_proc=num_proc))
    for one, found in zip(todo, done, strict=True):
        progress(one.id)
        if isinstance(found, str):
            why[one.id] = found
            continue
        old = store.entry_of(one)
        (new if old is None else same if old == found else changed).append(one.id)
        if old != found:
            with store.locked():
                store.put_entry(one.id, found)
    store.publish_entries([*changed, *new])
    index = Index(store)
    looked = look(store, entries_of_paper(), index)
    tables = {version: table(board) for version, board in looked.boards.items()}
    tables |= {live_board.file_of(board): live_board.table(board) for board in looked.live.values()}
    moved = write_tables(store, tables)
    index.save()
    return Rebuilt(
        same=tuple(same),
        changed=tuple(changed),
        new=tuple(new),
        not_possible=why,
        boards_changed=moved,
    )


def load(store: Store, published: Mapping[str, Entry], index: Index | None = None) -> dict[str, Board]:
    """The boards of what is stored."""
    return look(store, published, index or Index(store)).boards


class Looked(NamedTuple):
    """What is stored, as the boards show it."""

    boards: dict[str, Board]
    submissions: dict[str, Submission]
    """Those on the boards, by id, oldest first."""
    verifications: dict[str, Verification]
    cleared: dict[str, dict[str, Decision]]
    """By submission the flags that a maintainer has cleared."""
    damaged: list[str]
    """One line for each record that is left out."""
    live: dict[str, LiveBoard]
    """The boards of live runs."""
    live_submissions: dict[str, Submission]
    """Those on them."""


def look(store: Store, published: Mapping[str, Entry], index: Index) -> Looked:
    """Brings the index up to date with the folder, and makes the boards."""
    index.look()
    decisions, undecided = store.decisions()
    off, cleared = moderation.hidden(decisions), moderation.cleared(decisions)
    here = [one for one in index.submissions if one.id not in off]
    core = [one for one in here if one.kind == "core"]
    live = [one for one in here if one.kind == "live"]
    verifications, unread = store.verifications()
    return Looked(
        boards(core, verifications, index.entries, published, cleared),
        {one.id: one for one in core},
        verifications,
        cleared,
        [*index.damaged, *unread, *undecided],
        live_board.boards(live, verifications, index.live, cleared),
        {one.id: one for one in live},
    )


def flags_of(store: Store, submission_id: str) -> tuple[Flag, ...]:
    """Every flag of a submission, whether it counts or has been cleared."""
    entry = store.entry_of(store.submission(submission_id))
    copied = [
        board.copies[submission_id] for board in load(store, {}).values() if submission_id in board.copies
    ]
    return (*(() if entry is None else entry.flags), *copied)


def table(board: Board) -> bytes:
    """What a rebuild compares."""
    names = board.version, board.dataset_version, board.fingerprint
    return tables.table(
        names, board.rows, board.past, lambda row: row.figures.numbers + (row.figures.verdicts or b"")
    )


def write_boards(store: Store, found: Mapping[str, Board]) -> tuple[str, ...]:
    """Writes the tables of boards; the versions whose table is another than before."""
    return write_tables(store, {version: table(board) for version, board in found.items()})


def write_tables(store: Store, tables: Mapping[str, bytes]) -> tuple[str, ...]:
    """Writes the tables; those that are others than before."""
    moved = []
    with store.locked():
        for version, made in tables.items():
            if store.board(version) != made:
                moved.append(version)
                store.put_board(version, made)
    return tuple(moved)


def _same_verdicts(a: Entry, b: Entry) -> list[bool]:
    """Of every row that is there, whether both have the same verdict."""
    return [
        mine == other
        for code, digits in (a.verdicts or {}).items()
        for mine, other in zip(digits, (b.verdicts or {})[code], strict=True)
        if mine != "-"
    ]


def verify(
    store: Store,
    submission_id: str,
    run: Path,
    asked: Asked,
    *,
    by: str,
    now: datetime | None = None,
) -> Verification:
    """Marks a submission whose run was repeated in the run folder `run`, one whose endpoint has been matched
    as well. Raises UserError where it was not.

    The repeated run passes the same checks as an upload, is of the same dataset, mode and decoding, and its
    perturbed accuracy is not significantly another (paired cluster test).
    """
    submission = store.submission(submission_id)
    refuse_live(submission)
    already = store.verifications()[0].get(submission_id)
    if already is not None and already.kind == "reproduced":
        raise UserError(f"{submission_id} is verified already, by {already.by} on {already.verified_at[:10]}")
    theirs = store.entry(submission_id)
    if theirs is None:
        raise UserError(f"{submission_id} has no entry yet: rbtc leaderboard rebuild")
    if submission.fingerprint != asked.fingerprint():
        raise UserError(
            f"{submission_id} is of dataset version {submission.dataset_version} "
            f"({submission.fingerprint[:8]}): name that dataset with --dataset"
        )
    repeated = record.open_run(run)
    try:
        before = stored.decode(store.path(submission_id) / "run.json", RunRecord)
    except (OSError, ValueError) as error:
        raise UserError(f"{submission_id} is damaged: {stored.said(error)}") from None
    accepted = check(
        repeated.predictions_path,
        run / "run.json",
        asked,
        name=submission.model,
        listed=[submission.model],
        limits=Limits(),
        trail=Trail(),
    )
    refuse_other(
        repeated.record.settings,
        before.settings,
        ("mode", "decoding", "prompt_version", "repeat"),
        run,
        submission_id,
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        entry, _ = score(accepted, asked, folder)
        digest = sha256((folder / "predictions.parquet").read_bytes()).hexdigest()
    p = p_of(Figures.of(theirs), Figures.of(entry), "perturbed")
    submitted, again = (one.metrics["perturbed"].value or 0.0 for one in (theirs, entry))
    if p < LEVEL:
        tier = tier_of(already)
        raise UserError(
            f"{run} does not repeat {submission_id}: perturbed accuracy {number(again)} here, "
            f"{number(submitted)} there, p = {p_value(p)}; it stays {tier}"
        )
    same = _same_verdicts(theirs, entry)
    made = Verification(
        submission=submission_id,
        verified_at=(now or datetime.now(UTC)).isoformat(timespec="seconds"),
        by=by,
        rows=len(same),
        agree=sum(same),
        submitted=submitted,
        repeated=again,
        p=p,
        predictions_sha256=digest,
        package_version=robustbench_tc.__version__,
        matched=None if already is None else already.matched,
    )
    with store.locked():
        store.verify(made)
    return made
