"""Gold in its own world: the calls of the clean row with their results, and the world after each turn."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from robustbench_tc.schema import Call, Json, LiveRow
from robustbench_tc.worlds.find import find
from robustbench_tc.worlds.handle import Snapshot, Start, WorldType
from robustbench_tc.worlds.host import Worlds
from robustbench_tc.worlds.same_state import equal, id_pattern

Key = tuple[str, str]
"""A call: its tool, and its arguments as text with ids replaced."""


class GoldCall(NamedTuple):
    """One of gold's calls in the clean world."""

    turn: int
    call: Call
    text: str
    writes: bool
    changed: bool
    made_ids: tuple[str, ...]


class Gold(NamedTuple):
    """Gold in the clean world."""

    calls: tuple[GoldCall, ...]
    turns: tuple[Snapshot, ...]
    """The world after each turn."""


async def gold_of(row: LiveRow, worlds: Worlds, world: WorldType | None = None) -> Gold:
    """Gold's results and states."""
    handle = await worlds.open(world or find(row.world), msgspec.convert(row.initial_state, Start))
    writes = {tool.name: tool.writes for tool in row.tools if not tool.distractor}
    try:
        calls: list[GoldCall] = []
        turns = []
        now = await handle.snapshot()
        for turn, golden in enumerate(row.golden_calls):
            for call in golden:
                text = (await handle.call(call.name, call.parameters)).text
                before, now = now, await handle.snapshot()
                fresh = now.generated[len(before.generated) :]
                does = writes.get(call.name, False)
                calls.append(GoldCall(turn, call, text, does, not equal(before.state, now.state), fresh))
            turns.append(now)
    finally:
        await handle.close()
    return Gold(tuple(calls), tuple(turns))


def without_ids(text: str, ids: Sequence[str]) -> str:
    """A text with each id replaced by the order in which it first occurs in the text."""
    if not ids:
        return text
    order: dict[str, int] = {}
    return id_pattern(ids).sub(lambda match: f"\x00{order.setdefault(match[0], len(order))}\x00", text)


def key(name: str, arguments: Json, ids: Sequence[str]) -> Key:
    """Equal for equal calls, whatever ids were generated. `ids`: all of them."""
    return name, without_ids(json.dumps(arguments, sort_keys=True, ensure_ascii=False), ids)
