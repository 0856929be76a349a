"""The checks of a live run: its journal against the dataset's rows, and every episode played again.

The model is not needed: what it said stands in the journal, and what came of it the server finds out itself.
Nothing that the run says of itself is believed: no score, no result of a call.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from robustbench_tc import schema
from robustbench_tc.errors import UserError
from robustbench_tc.eval.inputs import Selection
from robustbench_tc.eval.live import prompts
from robustbench_tc.eval.live.episode import Place, kept
from robustbench_tc.eval.live.record import RECORD as LIVE_RECORD
from robustbench_tc.eval.live.record import LiveRecord
from robustbench_tc.eval.live.score import LiveScore, score_episodes
from robustbench_tc.eval.record import Session, Settings
from robustbench_tc.live import Episode
from robustbench_tc.schema import Json
from robustbench_tc.worlds.host import Worlds

from . import live_journal, names
from .checks import LISTED, Trail, check_chain
from .limits import Limits
from .live_data import LiveAsked
from .live_journal import Journal, Written
from .names import shown
from .refusal import Refused

RECORD = f"attach {LIVE_RECORD}, which lies beside journal.jsonl in the run folder"


Replaying = Callable[[int, int, int], None]
"""Is told before a replay how many episodes, bytes of journal and calls there are."""


class LiveAccepted(NamedTuple):
    """A journal that passed, with the episodes that it makes; they are not replayed yet."""

    model: str
    record: LiveRecord
    """As it is stored."""
    journal: Written
    episodes: tuple[Episode, ...]


def check_live(
    upload: Path,
    record: Path | None,
    asked: LiveAsked,
    *,
    name: str | None = None,
    listed: Iterable[str] = (),
    limits: Limits,
    trail: Trail,
    complete: Replaying = lambda episodes, size, calls: None,
) -> LiveAccepted:
    """A journal as the episodes to replay. `complete` gets their number, the journal's bytes and its calls
    once it is known to be one of the dataset's. Raises Refused by the first check that fails."""
    rows = asked.data.rows
    found = live_journal.read(upload, len(rows) * limits.repeats, limits)
    size = upload.stat().st_size
    trail.passed("size", f"{size:,} bytes, {len(found):,} lines")
    trail.passed("format", "the journal of a live run")
    run = read_record(record, limits)
    _dataset(run, asked)
    trail.passed("dataset", f"live version {asked.label}, fingerprint {asked.fingerprint[:12]}")
    expected = _whole(run, asked, limits)
    model = names.check_model(name or run.settings.model)
    settings = msgspec.structs.replace(run.settings, model=model)
    journal = live_journal.rewritten(found, rows, run.settings, settings, limits)
    if journal.unanswered:
        raise Refused(
            "ids",
            f"{journal.unanswered:,} episodes have no answer (request_error): start the same `rbtc live run` "
            "again",
        )
    complete(expected, size, journal.calls)
    episodes = _episodes(journal.lines, settings, asked)
    trail.passed("ids", f"{expected:,} episodes, each to its end")
    behind = f", behind {', '.join(settings.defend)}: it has no place" if settings.defend else ""
    trail.passed("record", f"{run.settings.model}, mode {settings.mode}{behind}")
    names.refuse_lookalike(model, {*listed, *names.reserved()})
    trail.passed("name", model)
    trail.passed("journal", f"{sum(len(one.replies) for one in episodes):,} replies, none beyond an end")
    return LiveAccepted(model, _public(run, settings, asked), journal, episodes)


def read_record(path: Path | None, limits: Limits) -> LiveRecord:
    """The run's record. Raises Refused."""
    if path is None:
        raise Refused("record", f"there is no run record: {RECORD}")
    size = path.stat().st_size
    if size > limits.record_bytes:
        raise Refused(
            "record", f"the run record has {size:,} bytes, at most {limits.record_bytes:,}: {RECORD}"
        )
    try:
        text = path.read_bytes()
        run = msgspec.json.decode(text, type=LiveRecord)
        if "flagged" in msgspec.json.decode(text, type=dict[str, msgspec.Raw]):
            raise ValueError("it is one of `rbtc eval`, whose predictions.parquet is submitted")
        if len(schema.dumps(run.settings)) > 20_000:
            raise ValueError("its settings are longer than any run's")
        return run
    except (ValueError, RecursionError, OverflowError) as error:
        raise Refused(
            "record", f"the run record cannot be read ({shown(str(error), 120)}): {RECORD}"
        ) from None


def _dataset(run: LiveRecord, asked: LiveAsked) -> None:
    if run.settings.fingerprint != asked.fingerprint or (run.dataset_version or "unversioned") != asked.label:
        raise Refused(
            "dataset",
            f"the run is of live dataset version {shown(run.dataset_version or 'unversioned')}, fingerprint "
            f"{shown(run.settings.fingerprint, 12)}; this board is of version {asked.label}, fingerprint "
            f"{asked.fingerprint[:12]}: play that version",
        )


def _whole(run: LiveRecord, asked: LiveAsked, limits: Limits) -> int:
    """How many episodes the run has. Raises Refused for one of selected rows, or of other prompts."""
    settings = run.settings
    if not 1 <= settings.repeat <= limits.repeats:
        raise Refused(
            "ids",
            f"every row was played {shown(str(settings.repeat))} times: 1 to {limits.repeats} are taken",
        )
    expected = len(asked.data.rows) * settings.repeat
    if settings.selection != Selection() or run.expected != expected:
        raise Refused(
            "record",
            f"the run is of {run.expected:,} episodes or of selected rows, the dataset has {expected:,}: "
            "play all of it, without --types, --ids and --limit",
        )
    if settings.prompt_version != prompts.version():
        raise Refused(
            "record",
            f"the run was asked in other words ({shown(settings.prompt_version, 40)}) than this board's "
            f"version of robustbench-tc asks in ({prompts.version()}): play it with that version",
        )
    check_chain(settings.defend, RECORD)
    return expected


def _episodes(
    lines: Mapping[str, dict[str, Json]], settings: Settings, asked: LiveAsked
) -> tuple[Episode, ...]:
    """The episodes that a journal makes. Raises Refused where one is missing, does not end, or has a line
    that does not follow from what stands before it."""
    journal = Journal(lines)
    found: list[Episode] = []
    missing: list[str] = []
    for row in asked.data.rows:
        for repeat in range(settings.repeat):
            try:
                one = kept(Place.of(row, settings, repeat), journal)
            except UserError as error:
                raise Refused("journal", plain(str(error))) from None
            except Exception as error:  # whatever hostile lines make a reader raise
                raise Refused(
                    "journal", f"{row.id}: its journal cannot be read ({type(error).__name__})"
                ) from None
            if one is None:
                missing.append(row.id)
            else:
                _refuse_lost(one)
                found.append(one)
    if missing:
        raise Refused(
            "ids",
            f"{len(missing):,} episodes are not there, or not to their end: start the same `rbtc live run` "
            "until it is complete",
            tuple(missing[:LISTED]),
        )
    if surplus := len(lines) - len(journal.used):
        raise Refused(
            "journal", f"{surplus:,} lines stand behind the end of an episode, or belong to no call"
        )
    return tuple(found)


def _refuse_lost(one: Episode) -> None:
    """A call that was cut off had no effect, says the journal, and nobody can look: a run could leave out
    what harms it."""
    steps = [step for reply in one.replies for step in reply.steps]
    for number, step in enumerate(steps, 1):
        if step.problem in ("timeout", "died"):
            raise Refused(
                "replay",
                f"{one.id}: call {number} was cut off in the run, or ended its world ({step.problem}), which "
                "cannot be replayed: begin the run again with --fresh",
            )


def replay(episodes: Sequence[Episode], asked: LiveAsked) -> list[LiveScore]:
    """Plays every episode again and scores it: the figures are these, whatever the run says. Raises Refused
    where a call is answered otherwise than the journal says."""
    try:
        return asyncio.run(score_episodes(episodes, asked.by_id, Worlds(), world_of=asked.worlds.__getitem__))
    except UserError as error:
        raise Refused("replay", plain(str(error))) from None
    except RecursionError:
        raise Refused("replay", "a call is nested too deeply to be made again") from None


def stored_episodes(folder: Path, run: LiveRecord, asked: LiveAsked) -> tuple[Episode, ...]:
    """The episodes of a stored live run. Raises UserError, OSError and ValueError."""
    return _episodes(live_journal.load(folder / "journal.jsonl"), run.settings, asked)


def plain(text: str) -> str:
    """A line whose words may be hostile: everything beyond printable ASCII escaped, bounded."""
    found = ascii(text)[1:-1]
    return found if len(found) <= 400 else f"{found[:400]}…"


def _requests(run: LiveRecord) -> list[Session]:
    """How many requests all sessions made, and nothing else of them; none where that is not said."""
    made, again = (sum(getattr(one, name) for one in run.sessions) for name in ("requests", "retries"))
    if not 0 < made <= 10**12 or not 0 <= again <= made:
        return []
    return [Session(started="", endpoint="", package_version="", concurrency=0, requests=made, retries=again)]


def _public(run: LiveRecord, settings: Settings, asked: LiveAsked) -> LiveRecord:
    """The record as it is stored: without places on the submitter's machine, and without its own totals."""
    return msgspec.structs.replace(
        run,
        dataset="robustbench-tc-live",
        dataset_version=asked.label,
        dataset_revision=None,
        settings=settings,
        sessions=_requests(run),
        served_models=[],
        totals={},
    )
