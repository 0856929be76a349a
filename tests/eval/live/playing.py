"""Plays scripted agents in process, as the harness does: for tests and the table of docs/live-scores.md."""

from pathlib import Path

import msgspec

from robustbench_tc.eval.adapters.live_rows import LiveDialogue
from robustbench_tc.eval.live.agents import Scripted, View
from robustbench_tc.eval.live.episode import Place
from robustbench_tc.eval.live.speakers import answered
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
    row: LiveRow, player: Scripted, worlds: Worlds, *, model: str = "scripted", world: WorldType | None = None
) -> Episode:
    """One episode."""
    place = Place.of(row, purses.settings(model=model), 0)
    dialogue = LiveDialogue(place, worlds, world or find.find(row.world))
    so_far = dialogue.so_far
    while dialogue.ask() is not None:
        asked = bool(so_far.replies) and so_far.replies[-1].answered
        view = View(so_far.turn, so_far.history, asked, so_far.shown_tools)
        await dialogue.reply(answered(dialogue.base(), player.reply(view), so_far))
    await dialogue.close()
    return dialogue.episode()
