"""What a world in a process of its own costs: a call, a start, memory, and what is left behind.

    python -m benchmarks.live [--worlds 1000] [--calls 2000] [--full BUILD --world-python PYTHON]

Calls are gold's, of the bundled worlds, in this process (Worlds) and in processes of their own
(Worlds), task by task in turn, so that both meet the same machine; a call's results are written to a
journal as an episode does. With a build of profile full also BFCL's long-context worlds, whose classes are in
another Python: there the whole of an isolated call is what it costs. Bars: at most 2 ms added to a call at
the median, the journal included, 3 MB a world, no process left behind.
"""

import argparse
import asyncio
import json
import os
import statistics
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


def processor_seconds(handle: Handle) -> float:
    """Of this process and the world's: what a call costs however busy the machine is."""
    pid = getattr(handle, "pid", None)
    other = 0.0 if pid is None else int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    return time.process_time() + other


async def played(worlds: Worlds, world: WorldType, task: Task, taken: dict[str, list[float]]) -> None:
    """A task's gold, every call timed."""
    start = Start(dict(task.state), task.seed)
    handle: Handle = await timed(taken["open"], lambda: worlds.open(world, start))
    gold = [one for turn in task.turns for one in turn.gold]
    before = processor_seconds(handle)
    for one in gold:
        await timed(taken["call"], lambda one=one: handle.call(one.name, dict(one.arguments)))
    taken["call_processor"] += [(processor_seconds(handle) - before) / max(len(gold), 1)] * len(gold)
    await timed(taken["snapshot"], handle.snapshot)
    await (await timed(taken["copy"], handle.copy)).close()
    await handle.close()


async def costs(calls: int) -> dict[str, Any]:
    """Both kinds of worlds, task by task in turn, until so many calls were timed."""
    kinds: tuple[Worlds, ...] = (Worlds(), Worlds())
    taken: list[dict[str, list[float]]] = [
        {what: [] for what in ("open", "call", "call_processor", "snapshot", "copy")} for _ in kinds
    ]
    async with kinds[1] as isolated:  # type: ignore[attr-defined]
        worlds = [find.find(name) for name in find.BUNDLED]
        for world in worlds:
            for kind in kinds:  # imports and the parent's start are not an episode's
                await (await kind.open(world, Start(find.tasks(world)[0].state))).close()
        while len(taken[0]["call"]) < calls:
            for world in worlds:
                for task in find.tasks(world):
                    for kind, into in zip(kinds, taken, strict=True):
                        await played(kind, world, task, into)
        isolation = isolated.isolation
    added = {
        what: round(1000 * (statistics.median(taken[1][what]) - statistics.median(taken[0][what])), 3)
        for what in taken[0]
    }
    return {
        "isolation": isolation,
        "calls": len(taken[0]["call"]),
        "added_at_median_ms": added,
        "in_this_process": {what: quantiles(seconds) for what, seconds in taken[0].items()},
        "isolated": {what: quantiles(seconds) for what, seconds in taken[1].items()},
    }


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
    """Isolated calls of BFCL's long-context tasks, and how large their states are."""
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
        "isolated_call": quantiles(taken)
    }


def memory(pid: int) -> dict[str, int]:
    """Of a process, in bytes: PSS shares what it has in common with its parent, private is its own alone."""
    found = {"pss": 0, "private": 0}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "Pss":
            found["pss"] += 1024 * int(rest.split()[0])
        elif name in ("Private_Clean", "Private_Dirty"):
            found["private"] += 1024 * int(rest.split()[0])
    return found


async def crowd(count: int) -> dict[str, Any]:
    """So many episodes at the same time, each with all of its task's gold called."""
    start = time.perf_counter()
    async with Worlds() as worlds:
        tasks = [
            (world, task)
            for name in find.BUNDLED
            for world in [find.find(name)]
            for task in find.tasks(world)
        ]

        async def episode(number: int) -> tuple[int, int]:
            world, task = tasks[number % len(tasks)]
            handle = await worlds.open(world, Start(dict(task.state), task.seed))
            wrong = 0
            for one in [one for turn in task.turns for one in turn.gold]:
                wrong += (await handle.call(one.name, dict(one.arguments))).problem is not None
            assert handle.pid is not None
            return handle.pid, wrong

        done = await asyncio.gather(*(episode(number) for number in range(count)))
        took = time.perf_counter() - start
        used = [memory(pid) for pid, _ in done]
        pids = [*worlds.parents.values(), *(pid for pid, _ in done)]
        ending = time.perf_counter()
    return {
        "worlds": count,
        "lost_calls": sum(wrong for _, wrong in done),
        "opened_and_played_s": round(took, 2),
        "ended_s": round(time.perf_counter() - ending, 2),
        "mean_pss_mb": round(statistics.mean(one["pss"] for one in used) / 1e6, 3),
        "mean_private_mb": round(statistics.mean(one["private"] for one in used) / 1e6, 3),
        "largest_private_mb": round(max(one["private"] for one in used) / 1e6, 3),
        "left_behind": sum(Path(f"/proc/{pid}").exists() for pid in pids),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--full", type=Path, help="a live build of profile full")
    parser.add_argument("--world-python")
    arguments = parser.parse_args()
    found: dict[str, Any] = {
        "cores": len(os.sched_getaffinity(0)),
        "load_before": round(os.getloadavg()[0], 1),
        "one_at_a_time": asyncio.run(costs(arguments.calls)),
        "journal": asyncio.run(journal(arguments.calls)),
        "at_the_same_time": asyncio.run(crowd(arguments.worlds)),
    }
    if arguments.full is not None:
        found["long_context"] = asyncio.run(long_context(arguments.full, arguments.world_python))
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
