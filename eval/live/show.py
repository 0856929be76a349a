"""One episode as a person reads it: what was said, every call with its result, and what it changed.

The worlds are replayed (`replay`): state changes come from them, not from the journal.
"""

from collections.abc import Iterator

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.schema import Episode, Fault, Json, LiveRow

from .replay import Played, Replay
from .score import LiveScore, score_one

MOST_CHANGES = 50
"""Changes of one call that are listed."""


class Changed(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place of a world's state that a call changed: a JSON pointer, and what stood and stands there."""

    path: str
    before: Json = None
    after: Json = None


class ShownCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call, what the agent was shown, and what really happened."""

    name: str
    arguments: Json
    result: str
    executed: int
    met: bool = False
    true_result: str | None = None
    problem: str | None = None
    defence: str | None = None
    """`look` or `repeat`: made by a defence."""
    told: str | None = None
    """What the agent was told in the end in place of the result, by a defence."""
    changes: tuple[Changed, ...] = ()
    more_changes: int = 0


class ShownReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reply with its calls."""

    text: str | None
    calls: tuple[ShownCall, ...] = ()
    answered: bool = False
    """It asked, and the user answered with `PLEASE_DECIDE`."""


class ShownTurn(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the user said and what the agent did about it."""

    says: tuple[str, ...]
    replies: tuple[ShownReply, ...]
    adds: tuple[str, ...] = ()


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A whole episode."""

    id: str
    world: str
    model: str
    mode: str
    repeat: int
    fault: Fault | None
    label: str | None
    ended: str
    error: str | None
    turns: tuple[ShownTurn, ...]
    scores: LiveScore


def shown(replay: Replay) -> Shown:
    """The episode with the worlds beside it."""
    row, episode = replay.row, replay.episode
    steps = iter(replay.steps)
    turns: list[list[ShownReply]] = [[] for _ in row.turns]
    for reply in episode.replies:
        calls = tuple(_call(next(steps)) for _ in reply.steps)
        turns[reply.turn].append(ShownReply(reply.text, calls, reply.answered))
    reached = max((reply.turn for reply in episode.replies), default=-1)
    return Shown(
        id=episode.id,
        world=episode.world,
        model=episode.model,
        mode=episode.mode,
        repeat=episode.repeat,
        fault=row.fault,
        label=row.label,
        ended=episode.ended,
        error=episode.error,
        turns=tuple(
            ShownTurn(tuple(m.content for m in turn.messages), tuple(replies), turn.adds)
            for turn, replies in list(zip(row.turns, turns, strict=True))[: reached + 1]
        ),
        scores=score_one(replay),
    )


def _call(played: Played) -> ShownCall:
    step = played.step
    changes = list(differences(played.before.state, played.after.state))
    return ShownCall(
        name=step.name,
        arguments=step.arguments,
        result=step.text,
        executed=step.executed,
        met=step.met,
        true_result=step.true_text,
        problem=step.problem,
        defence=step.defence,
        told=step.told,
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
        for at in range(max(len(before), len(after))):
            one, other = (here[at] if at < len(here) else None for here in (before, after))
            yield from differences(one, other, f"{path}/{at}")
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield Changed(path or "/", before, after)


def find(episodes: list[Episode], wanted: str, repeat: int = 0) -> Episode:
    """The episode of that row id, or of the only one that begins so. Raises UserError with near misses."""
    here = [one for one in episodes if one.repeat == repeat]
    if episodes and not here:
        last = max(one.repeat for one in episodes)
        raise UserError(f"the run has no repeat {repeat}: its last is {last} (--repeat counts from 0)")
    found = [one for one in here if one.id == wanted] or [one for one in here if one.id.startswith(wanted)]
    if not found:
        raise unknown("episode", wanted, [one.id for one in here])
    if len(found) > 1:
        raise UserError(
            f"{wanted!r} fits {len(found)} episodes, first {found[0].id} and {found[1].id}: say more"
        )
    return found[0]


def find_row(rows: tuple[LiveRow, ...], wanted: str) -> LiveRow:
    """The row of that id; the clean row of that task. Raises UserError with near misses."""
    for row in rows:
        if wanted in (row.id, row.clean_id):  # tasks come first
            return row
    raise unknown("task", wanted, [row.id for row in rows])
