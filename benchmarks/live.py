"""What a world costs, in this process and in a fork of another: a start, a call, a copy.

    python -m benchmarks.live [--calls 2000] [--full BUILD --world-python PYTHON]

Calls are gold's, of the bundled worlds, task by task in turn in both places, so that both meet the same
machine; a call's results are written to a journal as an episode does. With a build of profile full also
BFCL's long-context worlds. Bar: at most 2 ms added to a call at the median, the journal included.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.eval.live.inputs import load
from robustbench_tc.io.store import Store
from robustbench_tc.schema import dumps
from robustbench_tc.worlds import find
from robustbench_tc.worlds.base import Task
from robustbench_tc.worlds.handle import Handle, Start, WorldType
from robustbench_tc.worlds.host import Worlds


def quantiles(seconds: list[float]) -> dict[str, float]:
    """Milliseconds: the median, and what 1 in 100 exceeds."""
    return {
        "median_ms": round(1000 * statistics.median(seconds), 3),
        "p99_ms": round(1000 * statistics.quantiles(seconds, n=100)[98], 3),
    }


async def timed(taken: list[float], what: Callable[[], Awaitable[Any]]) -> Any:
    start = time.perf_counter()
    found = await what()
    taken.append(time.perf_counter() - start)
    return found


async def played(worlds: Worlds, world: WorldType, task: Task, taken: dict[str, list[float]]) -> None:
    """A task's gold, every call timed."""
    start = Start(dict(task.state), task.seed)
    handle: Handle = await timed(taken["open"], lambda: worlds.open(world, start))
    gold = [one for turn in task.turns for one in turn.gold]
    for one in gold:
        await timed(taken["call"], lambda one=one: handle.call(one.name, dict(one.arguments)))
    await timed(taken["snapshot"], handle.snapshot)
    await (await timed(taken["copy"], handle.copy)).close()
    await handle.close()


async def costs(calls: int) -> dict[str, Any]:
    """Both places, task by task in turn, until so many calls were timed."""
    taken: list[dict[str, list[float]]] = [
        {what: [] for what in ("open", "call", "snapshot", "copy")} for _ in range(2)
    ]
    here = [find.find(name) for name in find.BUNDLED]
    places = [(world, world._replace(python=sys.executable)) for world in here]
    async with Worlds() as worlds:
        for world in (one for both in places for one in both):
            # Imports and the server's start are not an episode's.
            await (await worlds.open(world, Start(find.tasks(world)[0].state))).close()
        while len(taken[0]["call"]) < calls:
            for both in places:
                for task in find.tasks(both[0]):
                    for world, into in zip(both, taken, strict=True):
                        await played(worlds, world, task, into)
    in_this_process, forked = [{what: quantiles(seconds) for what, seconds in one.items()} for one in taken]
    return {"calls": len(taken[0]["call"]), "in_this_process": in_this_process, "forked": forked}


async def journal(calls: int) -> dict[str, float]:
    """A call's results on disk."""
    taken: list[float] = []
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "journal.jsonl") as kept:
        for number in range(calls):
            results = [{"name": "place_order", "text": "x" * 200, "problem": None}]
            record: dict[str, Any] = {"id": "orders_6", "results": results}
            await timed(taken, lambda key=str(number), record=record: kept.put(key, record))
    return quantiles(taken)


async def long_context(build: Path, python: str, tasks: int = 40) -> dict[str, Any]:
    """Calls of BFCL's long-context tasks, and how large their states are."""
    names = ("multi_turn_long_context",)
    rows = [row for row in load(str(build)).rows if row.type_code == "clean" and row.id.startswith(names)]
    world, taken, sizes = find.find(find.BFCL, python=python), list[float](), list[int]()
    async with Worlds() as worlds:
        for row in rows[:tasks]:
            handle = await worlds.open(world, msgspec.convert(row.initial_state, Start))
            for one in [one for turn in row.golden_calls for one in turn]:
                await timed(taken, lambda one=one, handle=handle: handle.call(one.name, one.parameters))
            sizes.append(len(dumps((await handle.snapshot()).state)))
            await handle.close()
    return {"tasks": len(sizes), "calls": len(taken), "state_bytes_median": statistics.median(sizes)} | {
        "call": quantiles(taken)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--full", type=Path, help="a live build of profile full")
    parser.add_argument("--world-python")
    arguments = parser.parse_args()
    found: dict[str, Any] = {
        "cores": len(os.sched_getaffinity(0)),
        "load_before": round(os.getloadavg()[0], 1),
        "one_at_a_time": asyncio.run(costs(arguments.calls)),
        "journal": asyncio.run(journal(arguments.calls)),
    }
    if arguments.full is not None:
        found["long_context"] = asyncio.run(long_context(arguments.full, arguments.world_python))
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
