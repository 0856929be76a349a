"""Plays scripted agents in process, as the harness does: for tests and the table of docs/live-scores.md."""

import asyncio
import json
from collections.abc import Iterable
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.eval import record, speakers, wire
from robustbench_tc.eval.dialogue import Dialogue, Speaker
from robustbench_tc.eval.live import agents, score, world_env
from robustbench_tc.eval.live.episodes import finished_episode
from robustbench_tc.eval.live.stage import Stage
from robustbench_tc.eval.run import Runner
from robustbench_tc.llm import Store
from robustbench_tc.schema import At, Episode, Fault, Json, Kind, LiveRow
from robustbench_tc.worlds import find, handle, host
from robustbench_tc.worlds.base import Task

from . import purses

PURSE = Path(__file__).parents[2] / "worlds" / "purse.py"


def row_of(world: handle.WorldType, task: Task) -> LiveRow:
    """A task as a clean row, which names its world so that anybody can open it."""
    row = purses.clean_row(task, world)
    return row if world.name in find.BUNDLED else msgspec.structs.replace(row, world=str(world.file))


def faulted(row: LiveRow, kind: Kind, at: At, **fields: Json) -> LiveRow:
    """The row with a fault."""
    return purses.faulted(
        row, msgspec.convert({"at": msgspec.to_builtins(at), "kind": kind, **fields}, Fault)
    )


async def play(
    row: LiveRow, player: agents.Player, worlds: host.Worlds, *, model: str = "scripted"
) -> Episode:
    """One episode."""
    env, settings = world_env.World(row, purses.settings(model=model)), purses.settings(model=model)
    dialogue, stage = Dialogue(env, settings), Stage(row, worlds, find.find(row.world))
    while dialogue.ended is None:
        asked = bool(env.replies) and env.replies[-1].answered
        view = agents.View(env.turn, env.history, asked, env.shown_tools)
        await stage.reply(dialogue, speakers.in_world(dialogue.base(), player.reply(view), env))
    await stage.close()
    return env.episode(0)


def episodes(rows: Iterable[LiveRow], agent: str, tasks: Iterable[LiveRow] = ()) -> list[Episode]:
    """The episodes of a scripted agent. `tasks`: clean rows that are not among these."""
    whole = list(rows)
    clean = {row.clean_id: row for row in (*tasks, *whole) if row.clean}

    async def run() -> list[Episode]:
        worlds = host.Worlds()
        return [
            await play(row, agents.AGENTS[agent](clean[row.clean_id]), worlds, model=agent) for row in whole
        ]

    return asyncio.run(run())


def scores(rows: Iterable[LiveRow], agent: str, tasks: Iterable[LiveRow] = ()) -> list[score.LiveScore]:
    """Their scores."""
    whole = list(rows)
    played = episodes(whole, agent, tasks)
    return asyncio.run(score.score_episodes(played, {row.id: row for row in whole}, host.Worlds()))


async def acted(
    row: LiveRow,
    speaker: Speaker,
    settings: record.Settings,
    journal: Store,
    world: handle.WorldType,
    worlds: host.Worlds | None = None,
    repeat: int = 0,
) -> Episode:
    """One episode with a speaker, journaled as a run does."""
    env, opened = world_env.World(row, settings), worlds or host.Worlds()
    runner = Runner(journal, speaker, workers=1, worlds=opened, kinds={row.world: world})
    await runner.play(Dialogue(env, settings, repeat))
    return env.episode(repeat)


class Says:
    """Answers one after the other, then `last`, or the session dies; keeps the requests."""

    def __init__(self, *answers: Any, last: str | None = None) -> None:
        self.answers = chain(answers, () if last is None else repeat(last))
        self.asked: list[wire.Ask] = []

    async def reply(self, dialogue: Dialogue, ask: wire.Ask, base: record.Answer) -> record.Answer:
        self.asked.append(ask)
        said = next(self.answers)
        return msgspec.structs.replace(base, **(said if isinstance(said, dict) else {"text": said}))


def calls(*given: tuple[str, Any]) -> dict[str, Any]:
    """A reply with native calls; arguments that are a text go as they are."""
    found = [
        {"id": f"c{at}", "name": name, "arguments": one if isinstance(one, str) else json.dumps(one)}
        for at, (name, one) in enumerate(given)
    ]
    return {"text": "", "tool_calls": found}


def played(row: LiveRow, speaker: Speaker, folder: Path, *defences: str, mode: str = "fc") -> Episode:
    """An episode, of which the journal in the folder alone says the same."""
    settings = purses.settings(mode, defend=defences)
    world = purses.PURSE if row.world == "purse" else find.find(row.world)
    with Store(folder / "journal.jsonl") as journal:
        one = asyncio.run(acted(row, speaker, settings, journal, world))
        if one.ended != "request_error":
            assert finished_episode(journal, row, settings, 0) == one
    return one
