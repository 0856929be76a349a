"""Gold's calls of a task, carried out: what each says, and what the end is without it or with it twice.

The tasks of a world's file as clean rows: gold is carried out, and what the world is then is its hash.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import NamedTuple

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Call, Json, LiveRow, LiveTool, Message, Turn
from robustbench_tc.worlds import base, find
from robustbench_tc.worlds.check import check
from robustbench_tc.worlds.fit import failed
from robustbench_tc.worlds.handle import Start, WorldType, load_file
from robustbench_tc.worlds.host import Handle, Worlds
from robustbench_tc.worlds.same_state import state_hash


class Traced(NamedTuple):
    """One gold call."""

    number: int
    """Over all turns, from 0."""
    turn: int
    call: Call
    tool: LiveTool
    nth: int
    """Which call of its tool it is, from 1."""
    text: str
    state: Json
    """The world before it."""
    decisive: bool
    """The end differs where it is left out."""
    repeated: bool
    """The end differs where it is carried out twice in a row."""

    @property
    def failed(self) -> bool:
        """Whether its result is an error."""
        return failed(self.text)


class Trace(NamedTuple):
    """A task's gold in its world."""

    row: LiveRow
    calls: tuple[Traced, ...]
    end: Json
    """The state after all of them."""


@asynccontextmanager
async def opened(worlds: Worlds, world: WorldType, row: LiveRow, upto: int = 0) -> AsyncIterator[Handle]:
    """A row's world after its first `upto` gold calls; closed at the end of the block."""
    async with aclosing(await worlds.open(world, msgspec.convert(row.initial_state, Start))) as handle:
        for call in gold(row)[:upto]:
            await handle.call(call.name, call.parameters)
        yield handle


def gold(row: LiveRow) -> list[Call]:
    """Gold's calls of all turns, in order."""
    return [call for turn in row.golden_calls for call in turn]


async def with_gold(worlds: Worlds, world: WorldType, row: LiveRow) -> LiveRow:
    """The row with the hash of the state after gold's calls. Raises UserError where one cannot be made."""
    async with opened(worlds, world, row) as handle:
        for call in gold(row):
            answered = await handle.call(call.name, call.parameters)
            if answered.problem is not None or answered.text.startswith("Error during execution"):
                raise UserError(f"{row.clean_id}: gold's {call.name} fails: {answered.text[:200]}")
        state = (await handle.snapshot()).state
    return msgspec.structs.replace(row, gold_state_sha256=state_hash(state))


async def traced(worlds: Worlds, world: WorldType, row: LiveRow) -> Trace:
    """The trace of a row's gold. `decisive` and `repeated` are found for calls of tools that write."""
    calls = [(turn, call) for turn, calls in enumerate(row.golden_calls) for call in calls]
    tools = {tool.name: tool for tool in reversed(row.tools) if not tool.distractor}
    found, seen = [], dict.fromkeys(tools, 0)
    async with opened(worlds, world, row) as handle:
        end = await end_in_copy(handle, gold(row))
        for index, (turn, call) in enumerate(calls):
            tool = tools[call.name]
            seen[tool.name] += 1
            state = (await handle.snapshot()).state
            rest = [one for _, one in calls[index + 1 :]]
            decisive = tool.writes and await end_in_copy(handle, rest) != end
            repeated = tool.writes and await end_in_copy(handle, [call, call, *rest]) != end
            text = (await handle.call(call.name, call.parameters)).text
            found.append(Traced(index, turn, call, tool, seen[tool.name], text, state, decisive, repeated))
    return Trace(row, tuple(found), end)


async def end_in_copy(handle: Handle, calls: Iterable[Call]) -> Json:
    """The state of a copy of a world after some calls."""
    async with aclosing(await handle.copy()) as world:
        return await end_of(world, calls)


async def end_of(handle: Handle, calls: Iterable[Call]) -> Json:
    """The state of a world after some calls; what they answer does not matter."""
    for call in calls:
        await handle.call(call.name, call.parameters)
    return (await handle.snapshot()).state


async def clean_rows(world: WorldType, worlds: Worlds) -> list[LiveRow]:
    """One row a task. Raises UserError for a world that its author has to correct first (`worlds.check`)."""
    module = load_file(world.file)
    mistakes = check(module)
    if mistakes:
        more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
        raise UserError(mistakes[0] + more)
    tools = tuple(LiveTool(**tool) for tool in module.WORLD.tools())
    return [await with_gold(worlds, world, _row(task, world, tools)) for task in find.tasks(world)]


def _row(task: base.Task, world: WorldType, tools: tuple[LiveTool, ...]) -> LiveRow:
    return LiveRow(
        id=f"{task.id}::clean",
        clean_id=task.id,
        type_code="clean",
        world=world.name,
        category=world.name,
        turns=tuple(
            Turn(
                (Message("user", turn.says),),
                answers=tuple({f: tuple(values) for f, values in one.items()} for one in turn.answers),
            )
            for turn in task.turns
        ),
        tools=tools,
        initial_state=msgspec.to_builtins(Start(dict(task.state), task.seed)),
        golden_calls=tuple(tuple(Call(c.name, dict(c.arguments)) for c in turn.gold) for turn in task.turns),
        gold_state_sha256="",
        flags=tuple(task.flags),
    )
