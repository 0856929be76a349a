"""What is right where the call that meets the fault cannot be made good (rows with the label `report`).

The world may be what gold's writes make of it without that call and those that need its result, or with any
part of the others; the fault itself stays in front of the world, so that an effect that it doubles is there
twice. Nothing else may have changed.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from typing import NamedTuple

import msgspec

from robustbench_tc.schema import LiveRow
from robustbench_tc.worlds.faults import FaultedWorld
from robustbench_tc.worlds.handle import Snapshot, Start, WorldType
from robustbench_tc.worlds.host import Worlds
from robustbench_tc.worlds.same_state import same

from ..score.golden import replaced
from .gold import Gold
from .shown import leaves, parsed

MOST = 6
"""Of so many writes every part is tried; of more, the whole and what the agent's own calls name."""


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


async def unmended(row: LiveRow, gold: Gold, worlds: Worlds, world: WorldType) -> Unmended:
    """Which of gold's calls meet the fault, made in order, and which depend on these."""
    _, met = await _made(row, gold, range(len(gold.calls)), worlds, world)
    return Unmended(frozenset(met), frozenset(_dependent(row, gold, met)))


async def is_allowed(
    end: Snapshot,
    made: Sequence[int],
    row: LiveRow,
    gold: Gold,
    lost: Unmended,
    worlds: Worlds,
    world: WorldType,
) -> bool:
    """Whether a world is right without the calls that cannot be. `made`: the writes of gold, by number,
    that the agent made too."""
    writes = [at for at, one in enumerate(gold.calls) if one.changed and at not in lost.dependent]
    likely = tuple(at for at in writes if at in made)
    sizes = range(len(writes), -1, -1) if len(writes) <= MOST else [len(writes)]
    parts = (part for size in sizes for part in combinations(writes, size) if part != likely)
    for chosen in chain([likely], parts):
        reached, _ = await _made(row, gold, chosen, worlds, world)
        if same(end, reached):
            return True
    return False


async def _made(
    row: LiveRow, gold: Gold, numbers: Sequence[int], worlds: Worlds, world: WorldType
) -> tuple[Snapshot, list[int]]:
    """The world after some of gold's calls with the fault in front of it, and those that met it. Ids that
    gold generates are replaced by those that are generated here."""
    handle = await worlds.open(world, msgspec.convert(row.initial_state, Start))
    faulted = FaultedWorld(handle, row.tools, row.fault)
    try:
        met, ids = [], dict[str, str]()
        now = await handle.snapshot()
        for at in numbers:
            one = gold.calls[at]
            step = await faulted.call(one.call.name, replaced(one.call.parameters, ids))
            met += [at] * step.met
            before, now = now, await handle.snapshot()
            ids |= dict(zip(one.made_ids, now.generated[len(before.generated) :], strict=False))
    finally:
        await faulted.close()
    return now, met


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
                for value in _values(parsed(before.text))
            }
            for is_lost in (True, False)
        )
        needed = {value for value in _values(one.call.parameters) if str(value) not in said}
        if number not in lost and needed & gone - seen:
            lost.add(number)
            yield number


def _values(value: object) -> set[object]:
    return {one for _, one in leaves(value) if one is not None and not isinstance(one, bool)}
