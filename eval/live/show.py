"""One episode as a person reads it: what was said, every call with its result, and what it changed.

The worlds are replayed (`replay`): state changes come from them, not from the journal.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path

import msgspec

from robustbench_tc.compute import loop
from robustbench_tc.errors import UserError
from robustbench_tc.schema import PLEASE_DECIDE, Episode, Fault, Json, LiveRow, Reply, Step, Turn, dumps
from robustbench_tc.shown import Line, Part
from robustbench_tc.worlds.host import Worlds

from ..record import open_run
from ..row_view import one_of
from ..verdicts import live_data_of
from . import episodes
from .inputs import LiveData, world_types
from .replay import Replay, replay_each
from .score import LiveScore, score_one
from .stage import Played

MOST_CHANGES = 50
"""Changes of one call that are listed."""

LONGEST = 600
"""Characters of a text or a value that are printed."""


PROBLEMS = {
    "timeout": "cut off: it took too long",
    "died": "its world ended in this call and was started again without it",
    "not_offered": "no such tool",
    "arguments": "the arguments are no object",
}
"""Why a call was not carried out, or not to its end."""


class Changed(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place of a world's state that a call changed: a JSON pointer, and what stood and stands there."""

    path: str
    before: Json = None
    after: Json = None


class ShownCall(Step, frozen=True, omit_defaults=True):
    """A call, what came of it, and what it changed in the world."""

    changes: tuple[Changed, ...] = ()
    more_changes: int = 0

    @property
    def happened(self) -> str:
        """What really happened where the agent could not see it; "" for an ordinary call."""
        if self.problem:
            return PROBLEMS[self.problem]
        if not self.met and self.executed == 1:
            return ""
        times = {0: "not carried out", 1: "carried out"}.get(self.executed, "carried out twice")
        return f"met the fault: {times}" if self.met else times

    def lines(self) -> Iterator[Line]:
        """Who called, what the agent was shown and what was true, and the changes."""
        who, gets = ("a defence calls", "gets") if self.defence else ("calls", "is shown")
        yield Line(f"  {who} {self.name} {short(self.arguments)}", "green")
        lines = [
            ("    ", self.happened or None, "yellow"),
            (f"    {gets} ", self.text, ""),
            ("    in the end ", self.told, ""),
            ("    was in truth ", self.true_text, "yellow"),
        ]
        yield from (Line(f"{begin}{short(said)}", style) for begin, said, style in lines if said is not None)
        for one in self.changes:
            yield Line(f"    changes {one.path}: {short(one.before)} → {short(one.after)}", "magenta")
        if self.more_changes:
            yield Line(f"    and {self.more_changes} more changes", "magenta")


class ShownReply(Reply, frozen=True, omit_defaults=True):
    """A reply with its calls."""

    steps: tuple[ShownCall, ...] = ()


class Shown(Episode, frozen=True, kw_only=True):
    """A whole episode."""

    replies: tuple[ShownReply, ...]
    turns: tuple[Turn, ...]
    """What the user said, as far as it went."""
    fault: Fault | None
    label: str | None
    scores: LiveScore

    def shown(self) -> Iterator[Part]:
        """The verdict, then the episode step by step."""
        yield Line(self.id, "bold")
        yield f"world {self.world}, {self.model}, mode {self.mode}"
        yield from self.verdict()
        for fault in (self.fault, *self.fault.then) if self.fault is not None else ():
            where = next(
                f"{name} {value}"
                for name in ("call", "write", "read", "tool")
                if (value := getattr(fault.at, name))
            )
            nth = f", call {fault.at.nth} of it" if fault.at.nth > 1 else ""
            right = f"; the right end is to {self.label}" if self.label else ""
            yield Line(f"fault: {fault.kind} at {where}{nth}{right}", "yellow")
        for number, turn in enumerate(self.turns):
            yield Line(f"\nturn {number + 1}", "bold")
            yield from (Line(f"user: {message.content}", "cyan") for message in turn.messages)
            if turn.adds:
                yield Line(f"new tools: {', '.join(turn.adds)}", "cyan")
            for reply in self.replies_in(number):
                if reply.text:
                    yield Line(f"agent: {short(reply.text)}")
                for call in reply.steps:
                    yield from call.lines()
                if reply.answered:
                    yield Line(f"user: {PLEASE_DECIDE}", "cyan")

    def replies_in(self, turn: int) -> list[ShownReply]:
        """The replies of a turn, which is counted from 0."""
        return [reply for reply in self.replies if reply.turn == turn]

    def verdict(self) -> Iterator[Line]:
        """How the episode ended, and whether the world is as it should be."""
        word, style = {
            True: ("right", "green"), False: ("not right", "red"), None: ("no verdict", "yellow")
        }[self.scores.success]  # fmt: skip
        yield Line("; ".join((f"{word}; ended: {self.ended}", *outcome(self.scores))), style)
        if self.error:
            yield Line(f"no answer: {self.error}", "red")


def outcome(scores: LiveScore) -> list[str]:
    """What became of the world in an episode, and what the user was told."""
    world = {True: "is as it should be", False: "is wrong", None: "cannot be judged"}[scores.state]
    parts = [f"the world {world}", f"the user was told: {scores.told or 'nothing'}"]
    parts += ["what the user asked was not answered"] * (scores.answered is False)
    parts += ["what is right was said to have failed"] * bool(scores.false_failure)
    parts += ["what no call did was said to be done"] * bool(scores.false_claim)
    if scores.met:
        parts.append("recovered" if scores.recovered else "not recovered")
    return parts


def shown(replayed: Replay) -> Shown:
    """The episode with the worlds beside it."""
    row, episode = replayed.row, replayed.episode
    calls = map(_call, replayed.steps)
    replies = tuple(
        ShownReply(**{**msgspec.structs.asdict(reply), "steps": tuple(islice(calls, len(reply.steps)))})
        for reply in episode.replies
    )
    reached = max((reply.turn + 1 for reply in replies), default=0)
    return Shown(
        **{**msgspec.structs.asdict(episode), "replies": replies},
        turns=row.turns[:reached],
        fault=row.fault,
        label=row.label,
        scores=score_one(replayed),
    )


def _call(played: Played) -> ShownCall:
    changes = list(differences(played.before.state, played.after.state))
    return ShownCall(
        **msgspec.structs.asdict(played.step),
        changes=tuple(changes[:MOST_CHANGES]),
        more_changes=max(0, len(changes) - MOST_CHANGES),
    )


def differences(before: Json, after: Json, path: str = "") -> Iterator[Changed]:
    """Where two states differ, as deep inside as they still have the same shape."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            inner = f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
            yield from differences(before.get(key), after.get(key), inner)
    elif isinstance(before, list) and isinstance(after, list):
        for at, (one, other) in enumerate(zip_longest(before, after)):
            yield from differences(one, other, f"{path}/{at}")
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield Changed(path or "/", before, after)


def show_episode(
    run: str | Path,
    episode: str,
    *,
    repeat: int = 0,
    dataset: str | None = None,
    worlds: Sequence[str] = (),
    world_python: str | None = None,
) -> Shown:
    """One episode of a live run with its world's changes. `episode`: a row id, or a unique beginning."""
    folder = open_run(Path(run))
    data = live_data_of(folder, dataset)
    here = {one.id: one for one in episodes.read_episodes(folder.path) if one.repeat == repeat}
    if not here:
        raise UserError(f"{run} has no episode of repeat {repeat}: they are counted from 0")
    played = here[one_of(episode, here, run)]
    episodes.check(folder, data.by_id, [played])
    (found,) = replay([played], data, worlds, world_python)
    return found


def replay(
    played: Sequence[Episode], data: LiveData, worlds: Sequence[str], world_python: str | None
) -> list[Shown]:
    """Episodes replayed without the model. Raises UserError for a world that is not at hand."""
    types = world_types([data.by_id[one.id] for one in played], worlds, world_python)

    async def replayed() -> list[Shown]:
        async with Worlds() as hosted:
            return await replay_each(played, data.by_id, hosted, shown, world_of=types.__getitem__)

    return loop.run(replayed())


def find_row(rows: Iterable[LiveRow], wanted: str, place: object) -> LiveRow:
    """The row of that id; the clean row of that task. Raises UserError with near misses."""
    known = {name: row for row in rows for name in ((row.clean_id, row.id) if row.clean else (row.id,))}
    return known[one_of(wanted, known, place)]


def short(value: Json, most: int = LONGEST) -> str:
    """A text, or a value as JSON, cut."""
    try:
        text = value if isinstance(value, str) else dumps(value)
    except ValueError:
        text = repr(value)
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"
