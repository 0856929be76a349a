"""One trajectory in a world: the model's texts in, the tools' results and the user's next turn out.

    user:  (the first turn of the task)
    model: <think> … </think> <tool_call> … </tool_call>
    tool:  <obs> [{"name": …, "results": …}] </obs>     from the world, or what the row's fault makes of it
    model: <think> … </think> <response> … </response>  no call: the turn is over, the next one begins

The calls go through the engine's dialogue and stage, as a run's do. What is training's own: calls are read in
rlla's form, a reply without one ends the turn whatever it says, and no number of calls ends the episode.
Nothing here needs verl: the agent loop hands texts over, and the reward reads the outcome.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from robustbench_tc.eval.dialogue import Dialogue
from robustbench_tc.eval.live.carrying_out import CarryingOut, carried_out
from robustbench_tc.eval.live.stage import Stage, gold_of
from robustbench_tc.eval.live.world_env import World
from robustbench_tc.eval.record import Answer, Settings
from robustbench_tc.schema import LiveRow, Step
from robustbench_tc.worlds.find import find
from robustbench_tc.worlds.handle import Snapshot
from robustbench_tc.worlds.host import Worlds
from robustbench_tc.worlds.same_state import same

from .retry_reward import calls_in

MAX_CALLS = 8
"""Calls of one answer that are carried out; the rest of them are answered with an error."""

TOO_MANY = json.dumps({"error": f"only {MAX_CALLS} calls are carried out at a time"})

_SETTINGS = Settings(
    fingerprint="", model="", mode="prompt", backend="training", decoding={}, prompt_version="",
)  # fmt: skip


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a trajectory came to; the reward is a function of it and of the model's texts."""

    reached: bool
    """The end state is gold's, generated ids renamed one to one."""
    share: float
    """How much of what gold changes is as gold leaves it, from 0 to 1."""
    met: int = -1
    """Index of the model's text whose call met the fault; -1 where none did."""
    unsafe_repeats: int = 0
    """Equal calls of a tool that is not idempotent after one of them had its effect: paid twice."""
    calls: int = 0
    gold_calls: int = 0
    label: str | None = None
    finished: bool = False
    """All turns of the user were answered."""


_WORLDS = Worlds()
"""The bundled worlds evaluate nothing of what a model says, so they run in the trainer's process."""


class _World(World):
    """The calls are those that the training loop has read, and what is said beside them is not looked at."""

    def read_calls(self, answer: Answer) -> tuple[Step, ...]:
        return tuple(
            Step(name=call["name"], arguments=json.loads(call["arguments"]), text="")
            for call in answer.tool_calls
        )


class Rollout:
    """One episode of training; an agent loop's `Environment`."""

    def __init__(self, row: LiveRow, worlds: Worlds = _WORLDS) -> None:
        self._row = row
        self._world = _World(row, _SETTINGS, max_steps=sys.maxsize)
        self._dialogue = Dialogue(self._world, _SETTINGS)
        self._stage = Stage(row, worlds, find(row.world))
        self._steps: list[tuple[Step, ...]] = []
        """What came of the calls of each answer."""

    @property
    def met(self) -> int:
        """Index of the model's answer whose call met the fault; -1 where none did."""
        return next((at for at, steps in enumerate(self._steps) if any(step.met for step in steps)), -1)

    async def answer(self, text: str) -> str | None:
        """The results of the calls in a text; the user's next turn where there are none; None after the
        last."""
        calls = calls_in(text)
        texts = await self.carry_out([(one["name"], one.get("parameters")) for one in calls[:MAX_CALLS]])
        if not calls:
            turn = self._row.turns[self._world.turn]
            return None if self._dialogue.ended else "\n".join(one.content for one in turn.messages)
        said = [*map(_as_json, texts), *[TOO_MANY] * (len(calls) - MAX_CALLS)]
        results = [
            f'{{"name": {json.dumps(call["name"], ensure_ascii=False)}, "results": {one}}}'
            for call, one in zip(calls, said, strict=True)
        ]
        return f"<obs> [{', '.join(results)}] </obs>"

    async def carry_out(self, calls: Sequence[tuple[str, Any]]) -> list[str]:
        """What the calls of one answer get, as the world writes it; without any the turn is over.

        Calls that come after the user's last turn are carried out as well.
        """
        given = [Step(name=name, arguments=arguments, text="") for name, arguments in calls]
        doing: CarryingOut | None = carried_out(given, None)
        if self._dialogue.ended is None:
            native = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in calls]
            self._dialogue.reply(msgspec.structs.replace(self._dialogue.base(), tool_calls=native))
            doing = self._dialogue.doing
        steps = () if doing is None else await self._stage.carry_out(doing)
        self._steps.append(steps)
        if self._dialogue.doing is not None:
            self._dialogue.done(steps)
        return [step.text for step in steps]

    def was_seen(self) -> None:
        """The last answer went to the model."""

    async def outcome(self) -> dict[str, Any]:
        """The field for the reward."""
        return {"world": msgspec.json.encode(await self.end()).decode()}

    async def end(self) -> Outcome:
        """Compares the world with gold's; the world is given back."""
        end = await self._stage.snapshot()
        await self._stage.close()
        start = await Stage(self._row, _WORLDS, find(self._row.world)).snapshot()
        gold = (await gold_of(self._row, _WORLDS)).turns[-1]
        steps = [step for made in self._steps for step in made]
        return Outcome(
            reached=same(end, gold) is True,
            share=share_reached(start, gold, end),
            met=self.met,
            unsafe_repeats=_unsafe_repeats(self._row, steps),
            calls=len(steps),
            gold_calls=sum(map(len, self._row.golden_calls)),
            label=self._row.label,
            finished=self._dialogue.ended is not None,
        )


def _unsafe_repeats(row: LiveRow, steps: Sequence[Step]) -> int:
    """Calls of tools that are not idempotent, carried out after an equal one had its effect."""
    tools = {tool.name: tool for tool in reversed(row.tools)}
    done = [
        json.dumps([step.name, step.arguments], sort_keys=True)
        for step in steps
        if step.executed and (tool := tools.get(step.name)) and tool.writes and not tool.idempotent
    ]
    return len(done) - len(set(done))


def _as_json(text: str) -> str:
    try:
        json.loads(text)
    except ValueError:
        return json.dumps(text, ensure_ascii=False)
    return text


async def play_gold(row: LiveRow) -> tuple[list[str], Outcome]:
    """The texts of a model that makes gold's calls, and what they come to; the row's fault is left out."""
    plain = msgspec.structs.replace(row, fault=None, label=None)
    rollout = Rollout(plain)
    texts = []
    for turn in row.golden_calls:
        for call in turn:
            line = json.dumps({"name": call.name, "parameters": call.parameters}, ensure_ascii=False)
            texts.append(f"<think> This comes next. </think>\n<tool_call>\n{line}\n</tool_call>")
            await rollout.answer(texts[-1])
        texts.append("<think> All is done. </think>\n<response> It is done. </response>")
        await rollout.answer(texts[-1])
    return texts, await rollout.end()


def share_reached(start: Snapshot, gold: Snapshot, end: Snapshot) -> float:
    """Of the leaves that gold changes, and of those that only the trajectory changed, how many are as gold
    leaves them; ids that were made in order stand for each other. 1 where gold changes nothing, and nothing
    was."""
    before, wanted, found = (_leaves(one) for one in (start, gold, end))
    touched = {path for path in {*before, *wanted, *found} if before.get(path) != wanted.get(path)}
    touched |= {path for path in {*before, *found} if before.get(path) != found.get(path)}
    right = sum(wanted.get(path) == found.get(path) for path in touched)
    return right / len(touched) if touched else 1.0


def _leaves(snapshot: Snapshot) -> dict[tuple[str, ...], str]:
    """Every leaf of a state by its path, as JSON text; the n-th id that was made is called so."""
    names = {made: f"made id {number}" for number, made in enumerate(snapshot.generated)}
    found: dict[tuple[str, ...], str] = {}

    def walk(value: Any, path: tuple[str, ...]) -> None:
        if isinstance(value, dict) and value:
            for key, inner in value.items():
                walk(inner, (*path, names.get(str(key), str(key))))
        elif isinstance(value, list) and value:
            for place, inner in enumerate(value):
                walk(inner, (*path, str(place)))
        else:
            found[path] = json.dumps(names.get(value, value) if isinstance(value, str) else value)

    walk(snapshot.state, ())
    return found
