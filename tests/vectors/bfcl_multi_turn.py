"""BFCL's multi-turn vectors: whole trajectories are carried out in BFCL's world and judged by our check."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType

import msgspec

from robustbench_tc.eval.live.bfcl_check import PlayedTurn, upstream_error
from robustbench_tc.schema import Call, Json, LiveRow
from robustbench_tc.worlds import host, same_state
from robustbench_tc.worlds.handle import Start, WorldType

from .rows import AGREED, UNLISTED, Row, calls_of

CRASH = "upstream_crash"
"""The checker itself raises: a trajectory with fewer turns than gold, which its caller would have refused."""


class MultiTurn:
    """The check of such a row; a context, because worlds are processes.

    Holds the verdict, the kind of error, and the hash of the state after all calls against upstream's.
    """

    def __init__(self, tasks: Iterable[LiveRow], world: WorldType) -> None:
        self._tasks = {task.clean_id: task for task in tasks}
        self._world = world
        self._gold: dict[str, list[PlayedTurn]] = {}

    def __enter__(self) -> "MultiTurn":
        self._runner = asyncio.Runner()
        self._worlds = host.Worlds()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._worlds.close()
        finally:
            self._runner.close()

    def __call__(self, row: Row) -> str:
        return self._runner.run(self._check(row))

    async def _check(self, row: Row) -> str:
        task = self._tasks[row["task_id"]]
        if task.clean_id not in self._gold:
            calls = [[turn] if turn else [] for turn in task.golden_calls]
            self._gold[task.clean_id], _ = await self._played(task, calls)
        steps = [[calls_of(step) for step in turn] for turn in row["steps"]]
        model, end = await self._played(task, steps)
        if same_state.state_hash(end) != row["state_sha"]:
            return UNLISTED
        error = upstream_error(model, self._gold[task.clean_id])
        if row.get("crash"):
            return UNLISTED if error is None else CRASH
        found = (error is None, error)
        return AGREED if found == (row["upstream_valid"], row["upstream_error_type"]) else UNLISTED

    async def _played(
        self, task: LiveRow, turns: Sequence[Sequence[Sequence[Call]]]
    ) -> tuple[list[PlayedTurn], Json]:
        """The turns in a fresh world, and the state after them."""
        handle = await self._worlds.open(self._world, msgspec.convert(task.initial_state, Start))
        try:
            played, state = [], _classes((await handle.snapshot()).state)
            for steps in turns:
                results = [[(await handle.call(c.name, c.parameters)).text for c in calls] for calls in steps]
                state = _classes((await handle.snapshot()).state)
                played.append(PlayedTurn(results, state))
            return played, state
        finally:
            await handle.aclose()


def _classes(state: Json) -> Mapping[str, Json]:
    """Without the working directory: the vectors' form."""
    return dict(state["classes"])
