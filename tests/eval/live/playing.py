"""Plays scripted agents in process, as the harness does: for tests and the table of docs/live-scores.md."""

from pathlib import Path

import msgspec

from robustbench_tc.eval.dialogue import Dialogue, Speaker
from robustbench_tc.eval.live.agents import Player, View
from robustbench_tc.eval.live.stage import Stage
from robustbench_tc.eval.live.world_env import World
from robustbench_tc.eval.record import Settings
from robustbench_tc.eval.run import Runner
from robustbench_tc.eval.speakers import in_world
from robustbench_tc.llm import Store
from robustbench_tc.schema import At, Episode, Fault, Json, Kind, LiveRow
from robustbench_tc.worlds import find
from robustbench_tc.worlds.base import Task
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from . import purses

PURSE = Path(__file__).parents[2] / "worlds" / "purse.py"


def row_of(world: WorldType, task: Task) -> LiveRow:
    """A task as a clean row, which names its world so that anybody can open it."""
    row = purses.clean_row(task, world)
    return row if world.name in find.BUNDLED else msgspec.structs.replace(row, world=str(world.file))


def faulted(row: LiveRow, kind: Kind, at: At, **fields: Json) -> LiveRow:
    """The row with a fault."""
    return purses.faulted(
        row, msgspec.convert({"at": msgspec.to_builtins(at), "kind": kind, **fields}, Fault)
    )


async def play(
    row: LiveRow, player: Player, worlds: Worlds, *, model: str = "scripted", world: WorldType | None = None
) -> Episode:
    """One episode."""
    env, settings = World(row, purses.settings(model=model)), purses.settings(model=model)
    dialogue, stage = Dialogue(env, settings), Stage(row, worlds, world or find.find(row.world))
    while dialogue.ended is None:
        asked = bool(env.replies) and env.replies[-1].answered
        view = View(env.turn, env.history, asked, env.shown_tools)
        dialogue.reply(dialogue.noted(in_world(dialogue.base(), player.reply(view), env)))
        if dialogue.doing is not None:
            dialogue.done(await stage.carry_out(dialogue.doing))
    await stage.close()
    return env.episode(0)


async def acted(
    row: LiveRow,
    speaker: Speaker,
    settings: Settings,
    journal: Store,
    world: WorldType,
    worlds: Worlds | None = None,
    repeat: int = 0,
) -> Episode:
    """One episode with a speaker, journaled as a run does."""
    env, opened = World(row, settings), worlds or Worlds()
    runner = Runner(journal, speaker, workers=1, worlds=opened, kinds={row.world: world})
    await runner.play(Dialogue(env, settings, repeat))
    return env.episode(repeat)
