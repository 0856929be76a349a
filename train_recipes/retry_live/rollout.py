"""One trajectory in a world: the model's texts in, the tools' results and the user's next turn out.

    user:  (the first turn of the task)
    model: <think> … </think> <tool_call> … </tool_call>
    tool:  <obs> [{"name": …, "results": …}] </obs>     from the world, or what the row's fault makes of it
    model: <think> … </think> <response> … </response>  no call: the turn is over, the next one begins

Nothing here needs verl: the agent loop hands texts over, and the reward reads the outcome.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from robustbench_tc.schema import LiveRow
from robustbench_tc.worlds.faults import FaultedWorld
from robustbench_tc.worlds.find import find
from robustbench_tc.worlds.handle import Snapshot, Start
from robustbench_tc.worlds.host import Handle, Worlds
from robustbench_tc.worlds.same_state import same

MAX_CALLS = 8
"""Calls of one answer that are carried out; the rest of them are answered with an error."""

TOO_MANY = json.dumps({"error": f"only {MAX_CALLS} calls are carried out at a time"})


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


class PlainCall(NamedTuple):
    """A call as verl's parsers give it: `arguments` is JSON text."""

    name: str
    arguments: str


class Rollout:
    """One episode of training. `answer` and `outcome` as the agent loop's `Environment` says."""

    def __init__(self, row: LiveRow, handle: Handle) -> None:
        self._row, self._handle = row, handle
        self._world = FaultedWorld(handle, row.tools, row.fault)
        self._turn, self._answers, self._calls = 0, 0, 0
        self.met = -1
        """Index of the model's answer whose call met the fault."""
        self._done: dict[str, int] = {}
        self._unsafe = 0
        self._finished = False

    @classmethod
    async def begin(cls, row: LiveRow, worlds: Worlds) -> "Rollout":
        """A rollout in a fresh world."""
        return cls(row, await worlds.open(find(row.world), Start(**row.initial_state)))

    async def answer(self, text: str, calls: Sequence[Any]) -> str | None:
        """The results of the calls; the user's next turn where there are none; None after the last."""
        self._answers += 1
        if not calls:
            self._turn += 1
            if self._turn >= len(self._row.turns):
                self._finished = True
                return None
            return "\n".join(message.content for message in self._row.turns[self._turn].messages)
        results = []
        for number, call in enumerate(calls):
            said = TOO_MANY if number >= MAX_CALLS else _as_json(await self._carried_out(call))
            results.append(f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "results": {said}}}')
        return f"<obs> [{', '.join(results)}] </obs>"

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """What one call is answered, as the world writes it: for a loop that hands calls over one by one."""
        self._answers += 1
        return await self._carried_out(PlainCall(name, json.dumps(arguments)))

    def was_seen(self) -> None:
        """The last answer went to the model."""

    async def outcome(self) -> Outcome:
        """Compares the world with gold's; the world is given back."""
        end = await self._handle.snapshot()
        await self._handle.close()
        start, gold = await gold_states(self._row)
        return Outcome(
            reached=same(end, gold) is True,
            share=share_reached(start, gold, end),
            met=self.met,
            unsafe_repeats=self._unsafe,
            calls=self._calls,
            gold_calls=sum(map(len, self._row.golden_calls)),
            label=self._row.label,
            finished=self._finished,
        )

    async def _carried_out(self, call: Any) -> str:
        arguments = json.loads(call.arguments)
        step = await self._world.call(call.name, arguments)
        self._calls += 1
        if step.met and self.met < 0:
            self.met = self._answers - 1
        tool = next((one for one in self._row.tools if one.name == call.name), None)
        if step.executed and tool is not None and tool.writes and not tool.idempotent:
            key = json.dumps([call.name, arguments], sort_keys=True)
            self._unsafe += int(self._done.get(key, 0) > 0)
            self._done[key] = self._done.get(key, 0) + step.executed
        return step.text


def _as_json(text: str) -> str:
    try:
        json.loads(text)
    except ValueError:
        return json.dumps(text, ensure_ascii=False)
    return text


async def play_gold(row: LiveRow) -> tuple[list[str], Outcome]:
    """The texts of a model that makes gold's calls, and what they come to; the row's fault is left out."""
    plain = msgspec.structs.replace(row, fault=None, label=None)
    rollout = await Rollout.begin(plain, Worlds())
    texts = []
    for turn in row.golden_calls:
        for call in turn:
            line = json.dumps({"name": call.name, "parameters": call.parameters}, ensure_ascii=False)
            texts.append(f"<think> This comes next. </think>\n<tool_call>\n{line}\n</tool_call>")
            await rollout.answer(texts[-1], [PlainCall(call.name, json.dumps(call.parameters))])
        texts.append("<think> All is done. </think>\n<response> It is done. </response>")
        await rollout.answer(texts[-1], [])
    return texts, await rollout.outcome()


async def gold_states(row: LiveRow) -> tuple[Snapshot, Snapshot]:
    """The world before anything happened, and after gold's calls."""
    handle = await Worlds().open(find(row.world), Start(**row.initial_state))
    start = await handle.snapshot()
    for turn in row.golden_calls:
        for call in turn:
            await handle.call(call.name, call.parameters)
    return start, await handle.snapshot()


def share_reached(start: Snapshot, gold: Snapshot, end: Snapshot) -> float:
    """Of the leaves that gold changes, and of those that only the trajectory changed, how many are as gold
    leaves them; ids that were made in order stand for each other. 1 where gold changes nothing, and nothing
    was."""
    before, wanted, found = (_leaves(one) for one in (start, gold, end))
    touched = {path for path in {*before, *wanted, *found} if not _same(before, wanted, path)}
    touched |= {path for path in {*before, *found} if not _same(before, found, path)}
    right = sum(_same(wanted, found, path) for path in touched)
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


def _same(one: dict[tuple[str, ...], str], other: dict[tuple[str, ...], str], path: tuple[str, ...]) -> bool:
    return one.get(path) == other.get(path)
