"""An episode again, without the model: the worlds after every step, and gold's beside them.

    replay = await replayed(row, episode, worlds)
    replay.steps[3].after.state        # the world after the fourth call
    replay.gold.turns[-1].state        # what it should be in the end

Journaled results are not trusted: every call is made again, with the same fault in front of the world.
"""

import asyncio
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from functools import partial
from itertools import chain, combinations
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Episode, Json, LiveRow, row_hash
from robustbench_tc.worlds.base import ToolClass
from robustbench_tc.worlds.find import classes, find
from robustbench_tc.worlds.fit import failed
from robustbench_tc.worlds.handle import Snapshot, WorldType
from robustbench_tc.worlds.host import Handle, Worlds
from robustbench_tc.worlds.same_state import same

from ..score.golden import replaced
from .carrying_out import leaves, parsed
from .stage import Course, Gold, Key, Played, course_in, gold_of, key, without_ids

Open: TypeAlias = Callable[[], AbstractAsyncContextManager[Course]]
"""Opens a fresh world of the row."""

AT_ONCE = 16
"""So many episodes are replayed at a time."""

MOST = 6
"""Of so many writes every part is tried; of more, the whole and what the agent's own calls name."""


Made = TypeVar("Made")


class Unmended(NamedTuple):
    """The calls of gold, by number, that cannot be right in a row."""

    faulted: frozenset[int]
    """They meet the fault."""
    dependent: frozenset[int] = frozenset()
    """They need a value that only the results of these have."""

    @property
    def calls(self) -> frozenset[int]:
        """All of them."""
        return self.faulted | self.dependent


class Replay(NamedTuple):
    """An episode with the states of its world."""

    row: LiveRow
    episode: Episode
    start: Snapshot
    steps: tuple[Played, ...]
    turns: tuple[Snapshot, ...]
    """The world at the end of each turn that was begun."""
    gold: Gold
    downstream: int | None
    """Gold's calls of the turns after the one that met the fault whose result differs in the world as the
    agent left it; null where no turn met it."""
    undone: tuple[tuple[int, int], ...]
    """Calls that were taken back, each with the call that did."""
    repaired: tuple[Snapshot, ...]
    """What gold's world is if the calls that the agent undid are made and undone in it too."""
    classes: tuple[ToolClass, ...] = ()
    """What people call the work of the world's tools."""
    lost: Unmended = Unmended(frozenset())
    """Gold's calls that cannot be right; empty but on rows whose label is `report`."""
    allowed: bool = False
    """Whether the world in the end is right without them."""

    @property
    def end(self) -> Snapshot:
        """The world in the end; that of the start where the model never answered."""
        return self.turns[-1] if self.turns else self.start

    @property
    def ids(self) -> tuple[str, ...]:
        """All that were generated in this world and in gold's."""
        return *self.end.generated, *self.gold.turns[-1].generated

    @property
    def writes(self) -> frozenset[str]:
        """The world's tools that write."""
        return frozenset(tool.name for tool in self.row.tools if tool.writes and not tool.distractor)

    @property
    def reads(self) -> frozenset[str]:
        """The others."""
        return frozenset(tool.name for tool in self.row.tools if not tool.writes and not tool.distractor)

    def key(self, played: Played) -> Key:
        """Equal for equal calls, of the agent's and of gold's."""
        return key(played.step.name, played.step.arguments, self.ids)


async def replayed(
    row: LiveRow,
    episode: Episode,
    worlds: Worlds,
    *,
    world: WorldType | None = None,
    gold: Gold | None = None,
) -> Replay:
    """The episode in a fresh world. `world`: what `row.world` names; `gold`: of a row with the same start.

    Raises UserError where the row is not the one that was played, or the world answers differently now.
    """
    if episode.row_hash != row_hash(row):
        raise UserError(f"{episode.id}: the episode was played with another row: give the dataset of the run")
    world = world or find(row.world)
    gold = gold or await gold_of(row, worlds, world)
    turns: list[Snapshot] = []
    downstream: int | None = None
    async with course_in(row, worlds, world, row.fault) as course:
        for turn in range(max((reply.turn for reply in episode.replies), default=-1) + 1):
            for step in (one for reply in episode.replies if reply.turn == turn for one in reply.steps):
                made = await course.make(turn, step)
                # A lost call is not made again: that its world answered an error is all that can be seen.
                cut_off = step.problem in ("timeout", "died")
                if made.step != step or (cut_off and not failed(step.true_text or step.text)):
                    raise UserError(
                        f"{episode.id}: call {len(course.calls)} ({step.name[:80]}) is answered differently "
                        "now than in the run: score it with the version of robustbench-tc and the worlds "
                        "that it was played with"
                    )
            turns.append(course.now)
            if downstream is None and any(one.step.met for one in course.calls):
                downstream = await _downstream(course.handle, gold, turn, course.now)
    pairs = undone_pairs(row, course.calls, gold)
    replay = Replay(
        row,
        episode,
        course.start,
        tuple(course.calls),
        tuple(turns),
        gold,
        downstream,
        tuple(pairs),
        await _repaired(course.calls, pairs, gold, partial(course_in, row, worlds, world)),
        classes(world),
    )
    if row.label != "report":
        return replay
    with_fault = partial(course_in, row, worlds, world, row.fault)
    golden = await _made(gold, range(len(gold.calls)), with_fault)
    met = [at for at, one in enumerate(golden.calls) if one.step.met]
    lost = Unmended(frozenset(met), frozenset(_dependent(row, gold, met)))
    mine = {replay.key(one) for one in replay.steps if one.changed}
    too = [at for at, one in enumerate(gold.calls) if replay.key(one) in mine]
    return replay._replace(lost=lost, allowed=await _is_allowed(replay.end, too, gold, lost, with_fault))


async def replay_each(
    episodes: Iterable[Episode],
    rows: Mapping[str, LiveRow],
    worlds: Worlds,
    make: Callable[[Replay], Made],
    *,
    world_of: Callable[[str], WorldType] | None = None,
) -> list[Made]:
    """What `make` makes of each episode replayed, in their order; gold is played once a task. `rows` by id;
    `world_of`: what `row.world` names."""
    golds: dict[tuple[str, str], asyncio.Task[Gold]] = {}
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(episode: Episode) -> Made:
        row = rows[episode.id]
        world = world_of(row.world) if world_of is not None else None
        async with gate:
            key = (row.world, row.clean_id)
            if key not in golds:
                golds[key] = asyncio.create_task(gold_of(row, worlds, world))
            return make(await replayed(row, episode, worlds, world=world, gold=await golds[key]))

    return await asyncio.gather(*map(one, episodes))


async def _downstream(handle: Handle, gold: Gold, turn: int, now: Snapshot) -> int:
    """Ids in gold's later calls are replaced by the agent's, in the order in which they were made."""
    later = [one for one in gold.calls if one.turn > turn]
    if not later:
        return 0
    mine, errors = list(now.generated), 0
    theirs = list(gold.turns[turn].generated)
    async with aclosing(await handle.copy()) as world:
        for one in later:
            call = replaced(one.step.arguments, dict(zip(theirs, mine, strict=False)))
            text = (await world.call(one.step.name, call)).text
            mine += (await world.snapshot()).generated[len(mine) :]
            theirs += one.made_ids
            errors += without_ids(text, mine) != without_ids(one.step.text, theirs)
    return errors


def undone_pairs(row: LiveRow, steps: Sequence[Played], gold: Gold) -> list[tuple[int, int]]:
    """Which calls were taken back by which: a write with an effect, and the later call of its undo that
    changed the world and is none of gold's. A call that was carried out twice can be undone twice."""
    undo = {tool.name: tool.undo for tool in row.tools if tool.writes and tool.undo is not None}
    golden = [(call.name, call.parameters) for calls in row.golden_calls for call in calls]
    made: list[tuple[str, Json]] = []
    effects: list[int] = []
    pairs = []
    for number, played in enumerate(steps):
        if not played.step.executed or not played.changed:
            continue
        call = (played.step.name, played.step.arguments)
        wanted = golden.count(call) > made.count(call)
        made.append(call)
        taken_back = None if wanted else _undone_by(played, effects, undo, steps)
        if taken_back is not None:
            effects.remove(taken_back)
            pairs.append((taken_back, number))
        elif played.step.name in undo:
            effects += [number] * played.step.executed
    return pairs


def _undone_by(
    played: Played, effects: Sequence[int], undo: Mapping[str, str | None], steps: Sequence[Played]
) -> int | None:
    """The call whose effect a call takes back: the latest whose ids it names, else, where it names none, the
    latest with the same arguments or without ids."""
    text = msgspec.json.encode(played.step.arguments).decode()
    by_id = any(one in text for step in steps for one in step.made_ids)
    for number in reversed(effects):
        step, ids = steps[number].step, steps[number].made_ids
        named = any(one in text for one in ids)
        alike = not by_id and (step.arguments == played.step.arguments or not ids)
        if undo[step.name] == played.step.name and (named or alike):
            return number
    return None


async def _repaired(
    steps: Sequence[Played], pairs: Sequence[tuple[int, int]], gold: Gold, open_world: Open
) -> tuple[Snapshot, ...]:
    """Gold's world in the end with every undone call made and undone in it too: right behind gold's equal
    call, and at the end."""
    if not pairs:
        return ()
    found = []
    for at_once in (True, False):
        left = list(pairs)
        async with open_world() as course:
            for one in gold.calls:
                await course.again(one)
                for pair in list(left) if at_once else ():
                    done = steps[pair[0]].step
                    if (done.name, done.arguments) == (one.step.name, one.step.arguments):
                        left.remove(pair)
                        await _make_and_undo(course, steps, pair)
            for pair in left:
                await _make_and_undo(course, steps, pair)
        found.append(course.now)
    return tuple(found)


async def _make_and_undo(course: Course, steps: Sequence[Played], pair: tuple[int, int]) -> None:
    made, undone = (steps[at] for at in pair)
    fresh = (await course.again(made)).made_ids
    ids = {mine: fresh[at % len(fresh)] for at, mine in enumerate(made.made_ids)} if fresh else {}
    await course.again(undone, ids)


# --- What is right where the call that meets the fault cannot be made good (the label `report`): what gold's
# writes make of the world without that call and those that need its result, or with any part of the others.
# The fault itself stays in front of the world, so that an effect that it doubles is there twice.


async def _is_allowed(
    end: Snapshot, made: Container[int], gold: Gold, lost: Unmended, open_world: Open
) -> bool:
    """Whether a world is right without the calls that cannot be. `made`: the writes of gold, by number,
    that the agent made too."""
    writes = [at for at, one in enumerate(gold.calls) if one.changed and at not in lost.dependent]
    likely = tuple(at for at in writes if at in made)
    sizes = range(len(writes), -1, -1) if len(writes) <= MOST else [len(writes)]
    parts = (part for size in sizes for part in combinations(writes, size) if part != likely)
    for chosen in chain([likely], parts):
        if same(end, (await _made(gold, chosen, open_world)).now):
            return True
    return False


async def _made(gold: Gold, numbers: Iterable[int], open_world: Open) -> Course:
    """Some of gold's calls with the fault in front of the world. Ids that gold generates are replaced by
    those that are generated here."""
    ids: dict[str, str] = {}
    async with open_world() as course:
        for one in (gold.calls[at] for at in numbers):
            ids |= zip(one.made_ids, (await course.again(one, ids)).made_ids, strict=False)
    return course


def _dependent(row: LiveRow, gold: Gold, met: Sequence[int]) -> Iterator[int]:
    """Calls with a value that stands in the result of one that is lost, and in no words of the user's and
    no result that is not."""
    lost = set(met)
    for number, one in enumerate(gold.calls):
        said = " ".join(message.content for turn in row.turns[: one.turn + 1] for message in turn.messages)
        gone, seen = (
            {
                value
                for at, before in enumerate(gold.calls[:number])
                if (at in lost) is is_lost
                for value in _values(parsed(before.step.text))
            }
            for is_lost in (True, False)
        )
        needed = {value for value in _values(one.step.arguments) if str(value) not in said}
        if number not in lost and needed & gone - seen:
            lost.add(number)
            yield number


def _values(value: object) -> set[object]:
    return {one for _, one in leaves(value) if one is not None and not isinstance(one, bool)}
