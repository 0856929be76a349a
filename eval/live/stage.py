"""The world of one episode where it is played: opened with the first call that is carried out in it."""

from collections.abc import Sequence

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import LiveRow, Step
from robustbench_tc.worlds.faults import FaultedWorld
from robustbench_tc.worlds.handle import Answered, Snapshot, Start, WorldType
from robustbench_tc.worlds.host import Worlds

from .carrying_out import CarryingOut, is_refused
from .world_env import encodable


class Stage:
    """The world of one episode: opened with the first call that has to be carried out in it.

    Calls of an earlier session are repeated first, and must be answered as the journal has it.
    """

    def __init__(self, row: LiveRow, worlds: Worlds, world: WorldType) -> None:
        self._row, self._worlds, self._type = row, worlds, world
        self._before: list[Step] = []
        self._world: FaultedWorld | None = None

    def remember(self, steps: Sequence[Step]) -> None:
        """Calls that were carried out by an earlier session."""
        self._before += steps

    async def carry_out(self, doing: CarryingOut) -> tuple[Step, ...]:
        """The calls of one reply, one after the other."""
        world = await self._opened()
        try:
            call = next(doing)
            while True:
                call = doing.send(await answered(world, call))
        except StopIteration as end:
            return tuple(end.value)

    async def snapshot(self) -> Snapshot:
        """The world's state now; that of a fresh world where nothing was called."""
        return await (await self._opened()).handle.snapshot()

    async def close(self) -> None:
        """Gives the world back."""
        if self._world is not None:
            await self._world.close()

    async def _opened(self) -> FaultedWorld:
        if self._world is None:
            start = msgspec.convert(self._row.initial_state, Start)
            world = await self._worlds.open(self._type, start)
            self._world = FaultedWorld(world, self._row.tools, self._row.fault)
            for number, known in enumerate(self._before, 1):
                found = await answered(self._world, known)
                if msgspec.json.encode(found) != msgspec.json.encode(known):
                    raise UserError(
                        f"{self._row.id}: call {number} ({known.name}) is answered otherwise than in the "
                        "journal: the world has changed since; begin again with --fresh"
                    )
            self._before.clear()
        return self._world


async def answered(world: FaultedWorld, step: Step) -> Step:
    """The call of a step carried out, with texts as they are journaled: half surrogate pairs are replaced.

    What the harness itself answered never reaches the world, nor does a journaled call that was cut off, or
    killed the world: it had no effect, and might be answered in time now. Raises UserError for a tool that
    has no such place in the registry.
    """
    if is_refused(step):
        return step
    lost = (
        Answered(step.true_text or step.text, step.problem) if step.problem in ("timeout", "died") else None
    )
    look = step.defence == "look"
    made = await world.call(step.name, step.arguments, place=step.tool, aside=look, lost=lost)
    return msgspec.structs.replace(
        made,
        text=encodable(made.text),
        true_text=None if made.true_text is None else encodable(made.true_text),
        tool=step.tool,
        defence=step.defence,
        told=step.told,
    )
