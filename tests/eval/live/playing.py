"""Plays scripted agents in process, as the harness does: for tests and the table of docs/live-scores.md."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from robustbench_tc.eval.live.agents import Player, View
from robustbench_tc.live import (
    MAX_STEPS,
    At,
    Ended,
    Episode,
    Fault,
    Kind,
    LiveRow,
    LiveTool,
    Reply,
    Turn,
    row_hash,
    state_hash,
    type_code,
)
from robustbench_tc.schema import Call, Json, Message
from robustbench_tc.worlds import find
from robustbench_tc.worlds.base import Task
from robustbench_tc.worlds.claims import asks, claim
from robustbench_tc.worlds.faults import FaultedWorld
from robustbench_tc.worlds.handle import Start, WorldType, load_file
from robustbench_tc.worlds.host import Worlds

PURSE = Path(__file__).parents[2] / "worlds" / "purse.py"


def row_of(world: WorldType, task: Task) -> LiveRow:
    """A task as a clean row."""
    module = load_file(world.file)
    start = Start(dict(task.state), task.seed)
    played = module.WORLD(start.state, start.seed)
    golden = tuple(tuple(Call(c.name, dict(c.arguments)) for c in turn.gold) for turn in task.turns)
    for calls in golden:
        for call in calls:
            played.call(call.name, call.parameters)
    return LiveRow(
        id=f"{task.id}::clean",
        clean_id=task.id,
        type_code="clean",
        world=world.name if world.name in find.BUNDLED else str(world.file),
        category=world.name,
        turns=tuple(Turn((Message("user", turn.says),)) for turn in task.turns),
        tools=tuple(LiveTool(**tool) for tool in module.WORLD.tools()),
        initial_state=msgspec.to_builtins(start),
        golden_calls=golden,
        gold_state_sha256=state_hash(played.state()),
    )


def faulted(row: LiveRow, kind: Kind, at: At, **fields: Json) -> LiveRow:
    """The row with a fault."""
    code = type_code(kind)
    return msgspec.structs.replace(
        row,
        id=f"{row.clean_id}::{code}",
        type_code=code,
        fault=msgspec.convert({"at": msgspec.to_builtins(at), "kind": kind, **fields}, Fault),
    )


async def play(
    row: LiveRow, player: Player, worlds: Worlds, *, model: str = "scripted", world: WorldType | None = None
) -> Episode:
    """One episode."""
    handle = await worlds.open(world or find.find(row.world), msgspec.convert(row.initial_state, Start))
    faulted_world = FaultedWorld(handle, row.tools, row.fault)
    replies: list[Reply] = []
    history: list[tuple[Call, str]] = []
    ended: Ended = "done"
    for turn in range(len(row.turns)):
        ended = await _turn(row, turn, player, faulted_world, replies, history)
        if ended != "done":
            break
    await faulted_world.close()
    return Episode(
        id=row.id,
        clean_id=row.clean_id,
        type_code=row.type_code,
        world=row.world,
        model=model,
        mode="fc",
        row_hash=row_hash(row),
        ended=ended,
        replies=tuple(replies),
    )


async def _turn(
    row: LiveRow,
    turn: int,
    player: Player,
    world: FaultedWorld,
    replies: list[Reply],
    history: list[tuple[Call, str]],
) -> Ended:
    answered = asked = met = False
    for _ in range(MAX_STEPS + 3):
        view = View(turn, tuple(history), asked, tuple(tool.plain for tool in row.offered(turn)))
        reply = player.reply(view)
        asked = False
        if isinstance(reply, str):
            asked = not answered and asks(reply)
            answered = answered or asked
            replies.append(Reply(turn=turn, text=reply, answered=asked))
            if not asked:
                return "honest_failure" if met and claim(reply) == "admits" else "done"
            continue
        steps = [await world.call(call.name, call.parameters) for call in reply]
        met = met or any(step.met for step in steps)
        history += [(call, step.text) for call, step in zip(reply, steps, strict=True)]
        replies.append(Reply(turn=turn, steps=tuple(steps)))
        if sum(bool(one.steps) for one in replies if one.turn == turn) > MAX_STEPS:
            return "too_many_steps"
    raise AssertionError("the turn did not end")


def calls_of(episode: Episode) -> Sequence[str]:
    """The tools that were called, in order."""
    return [step.name for reply in episode.replies for step in reply.steps]
