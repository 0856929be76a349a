"""Live runs into entries of the board: replayed here, in the figures of `rbtc live`."""

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.eval.live.counts import counted
from robustbench_tc.eval.live.record import LiveRecord
from robustbench_tc.eval.live.replay import replayed
from robustbench_tc.eval.live.report import side_effects
from robustbench_tc.eval.live.score import LiveScore
from robustbench_tc.eval.live.show import Shown, shown
from robustbench_tc.eval.record import Settings
from robustbench_tc.eval.stats.live import clean_success, lines
from robustbench_tc.live import Episode
from robustbench_tc.worlds.host import Worlds

from . import live_flags, stored
from .live_checks import plain, replay, stored_episodes
from .live_data import LiveAsked
from .live_records import LiveEntry
from .records import Submission
from .refusal import Refused

DRAWN_BYTES = 60_000
"""Of an episode that is drawn on the run's page; a longer one makes room for the next."""

TRIED = 10
"""Episodes that are looked at for one that is short enough."""

ALL = "all"
"""The line over every kind of fault: what a live board ranks by unless asked otherwise."""


def score_live(
    episodes: Sequence[Episode], settings: Settings, asked: LiveAsked
) -> tuple[LiveEntry, list[LiveScore]]:
    """The entry of a run's episodes. Raises Refused where they cannot be replayed, or nothing can be
    compared."""
    scores = replay(episodes, asked)
    return entry_of(scores, episodes, settings, asked), scores


def entry_of(
    scores: Sequence[LiveScore], episodes: Sequence[Episode], settings: Settings, asked: LiveAsked
) -> LiveEntry:
    """The figures of replayed episodes. Raises Refused where no clean or no faulted episode has a verdict."""
    clean, found = clean_success(scores), lines(scores)
    if clean is None or not any(line.name == ALL for line in found):
        raise Refused(
            "score", "no faulted episode has a verdict beside a clean one that has: nothing to list"
        )
    return LiveEntry(
        episodes=len(episodes),
        repeats=settings.repeat,
        clean=clean,
        lines=tuple(found),
        counts=tuple(counted(scores)),
        effects=side_effects(scores),
        flags=live_flags.of_run(episodes, settings, asked.by_id, asked.clean),
        drawn=drawn(scores, episodes, asked),
    )


def drawn(scores: Sequence[LiveScore], episodes: Sequence[Episode], asked: LiveAsked) -> tuple[Shown, ...]:
    """The first silent failure with a fault, and the first recovery, call by call; those that there are."""
    found = []
    for wanted in ("silent_failure", "recovered"):
        there = [
            one
            for one, score in zip(episodes, scores, strict=True)
            if score.type_code != "clean" and getattr(score, wanted)
        ]
        for one in there[:TRIED]:
            row = asked.by_id[one.id]
            made = shown(asyncio.run(replayed(row, one, Worlds(), world=asked.worlds[row.world])))
            if len(msgspec.json.encode(made)) <= DRAWN_BYTES:
                found.append(made)
                break
    return tuple(found)


def rescore_live(folder: Path, submission: Submission, asked: LiveAsked) -> LiveEntry:
    """The entry of a stored live run from its journal. Raises UserError where that is damaged."""
    raw = folder / "journal.jsonl"
    try:
        stored.seen(raw)
        if sha256(raw.read_bytes()).hexdigest() != submission.predictions_sha256:
            raise UserError(f"{raw} is not what was submitted: its sha256 is another")
        run = stored.decode(folder / "run.json", LiveRecord)
        return score_live(stored_episodes(folder, run, asked), run.settings, asked)[0]
    except UserError:
        raise
    except Exception as error:  # whatever a file that was changed by hand makes a reader raise
        said = plain(stored.said(error)) or type(error).__name__
        raise UserError(f"{submission.id} cannot be scored: {said}") from None


def encode_record(run: LiveRecord) -> bytes:
    """The bytes of a stored run record."""
    return msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n"
