"""Worlds in processes of their own: the same results as here, what is lost comes back, nothing is left."""

import asyncio
import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.errors import UserError
from robustbench_tc.worlds import find
from robustbench_tc.worlds.base import Task
from robustbench_tc.worlds.handle import Answered, LocalWorlds, Snapshot, Start, Worlds, WorldType, load_file
from robustbench_tc.worlds.host import DIED, TIMED_OUT, HostWorlds, WorldLost

HERE = Path(__file__).parent
PURSE = WorldType("purse", HERE / "purse.py")
RECKLESS = WorldType("reckless", HERE / "reckless.py")
WORLDS = [PURSE, *(find.find(name) for name in find.BUNDLED if find.find(name).file.is_file())]


def run(of: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(of())


def gone(pid: int) -> bool:
    """Whether a process ended; one that nobody waited for yet did."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def all_gone(pids: list[int], seconds: float = 10) -> bool:
    until = time.monotonic() + seconds
    while not all(map(gone, pids)):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


async def played(worlds: Worlds, world: WorldType, task: Task) -> tuple[list[str], Snapshot]:
    handle = await worlds.open(world, Start(dict(task.state), task.seed))
    said = [
        (await handle.call(one.name, dict(one.arguments))).text for turn in task.turns for one in turn.gold
    ]
    found = await handle.snapshot()
    await handle.close()
    return said, found


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_gold_has_the_same_results_as_in_this_process_in_any_order(world: WorldType) -> None:
    tasks = list(load_file(world.file).TASKS)

    async def compared() -> None:
        expected = {task.id: await played(LocalWorlds(), world, task) for task in tasks}
        shuffled = random.Random(7).sample(tasks, len(tasks))
        async with HostWorlds() as worlds:
            found = await asyncio.gather(*(played(worlds, world, task) for task in shuffled))
        for task, one in zip(shuffled, found, strict=True):
            assert json.dumps(one) == json.dumps(expected[task.id])

    run(compared)


def test_a_lost_world_is_what_a_replay_of_its_calls_is() -> None:
    async def lost() -> None:
        async with HostWorlds(seconds=1.0) as worlds:
            handle = await worlds.open(RECKLESS, Start({"count": 0}))
            await handle.call("add", {"amount": 3})
            for code, text in (
                ("world.data['count'] = 77\nwhile True: pass", TIMED_OUT),
                ("world.data['count'] = 78\nimport os; os._exit(1)", DIED),
            ):
                assert (await handle.call("run", {"code": code})).text == text
                assert await handle.snapshot() == Snapshot({"count": 3})
            await handle.call("add", {"amount": 1})
            other = await handle.copy()
            await other.call("add", {"amount": 10})
            assert (await other.snapshot()).state == {"count": 14}
            assert (await handle.snapshot()).state == {"count": 4}

    run(lost)


def test_a_cancelled_call_did_not_happen() -> None:
    async def cancelled() -> None:
        async with HostWorlds() as worlds:
            handle = await worlds.open(RECKLESS, Start({"count": 0}))
            code = "world.data['count'] = 5\nimport time; time.sleep(3)"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(handle.call("run", {"code": code}), 0.2)
            assert (await handle.snapshot()).state == {"count": 0}

    run(cancelled)


def test_calls_to_one_world_at_the_same_time_come_one_after_the_other() -> None:
    async def together() -> None:
        async with HostWorlds() as worlds:
            handle = await worlds.open(RECKLESS, Start({"count": 0}))
            said = await asyncio.gather(*(handle.call("add", {"amount": 1}) for _ in range(20)))
            assert sorted(int(one.text) for one in said) == list(range(1, 21))

    run(together)


def test_a_world_that_depends_on_more_than_its_calls_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "moody.py").write_text(
        "import os\n"
        "class WORLD:\n"
        "    def __init__(self, state, seed): pass\n"
        "    def call(self, name, arguments): return str(os.getpid())\n"
        "    def state(self): return {}\n"
        "    def generated(self): return []\n"
    )

    async def moody() -> None:
        async with HostWorlds() as worlds:
            handle = await worlds.open(WorldType("moody", tmp_path / "moody.py"), Start({}))
            await handle.call("mood", {})
            with pytest.raises(WorldLost, match="another result when it is repeated"):
                await handle.copy()

    run(moody)


def test_a_handle_goes_on_in_another_event_loop() -> None:
    worlds = HostWorlds()
    handle = asyncio.run(worlds.open(RECKLESS, Start({"count": 0})))
    for number in range(1, 4):
        assert asyncio.run(handle.call("add", {"amount": 1})).text == str(number)
    parents = list(worlds.parents.values())
    asyncio.run(worlds.close())
    assert all_gone(parents)


def test_a_dead_parent_is_started_again_and_its_episodes_go_on() -> None:
    async def orphaned() -> list[int]:
        async with HostWorlds(seconds=1.0) as worlds:
            first, second = [await worlds.open(RECKLESS, Start({"count": 0})) for _ in range(2)]
            parent, pid = worlds.parents["reckless"], first.pid
            os.kill(parent, signal.SIGKILL)
            assert (await first.call("add", {"amount": 1})).text == "1" and first.pid == pid
            third = await worlds.open(RECKLESS, Start({"count": 5}))
            assert (await third.call("add", {"amount": 1})).text == "6"
            assert worlds.parents["reckless"] != parent
            hangs = await second.call("run", {"code": "while True: pass"})
            assert hangs.problem == "timeout"
            assert (await second.call("add", {"amount": 2})).text == "2"
            assert pid is not None and first.pid == pid
            return [parent, pid, *worlds.parents.values()]

    assert all_gone(asyncio.run(orphaned()))


def test_a_hundred_and_fifty_worlds_at_once_and_none_stays() -> None:
    async def many() -> list[int]:
        async with HostWorlds() as worlds:
            opened = await asyncio.gather(*(worlds.open(PURSE, Start({"coins": n})) for n in range(150)))
            said = await asyncio.gather(*(handle.call("count_coins", {}) for handle in opened))
            assert [json.loads(one.text)["coins"] for one in said] == list(range(150))
            for handle in opened[::2]:
                await handle.close()
            assert all_gone([handle.pid for handle in opened[::2] if handle.pid])
            return [handle.pid for handle in opened if handle.pid] + list(worlds.parents.values())

    assert all_gone(asyncio.run(many()), 0)


def test_a_child_has_its_two_pipes_and_nothing_else() -> None:
    async def looked_at() -> None:
        async with HostWorlds() as worlds:
            handle = await worlds.open(RECKLESS, Start({"count": 0}))
            child = Path(f"/proc/{handle.pid}")
            assert [str(one.readlink())[:5] for one in (child / "fd").iterdir()] == ["pipe:", "pipe:"]
            assert (child / "environ").read_bytes() == b""
            status = dict(line.split(":\t", 1) for line in (child / "status").read_text().splitlines())
            assert status["NoNewPrivs"] == "1" and status["Threads"] == "1"
            assert status["Seccomp"] == ("2" if worlds.isolation == "seccomp" else "0")
            limits = (child / "limits").read_text()
            for name, most in (
                ("address space", 2**29),
                ("file size", 0),
                ("open files", 16),
                ("core file", 0),
            ):
                found = next(line for line in limits.splitlines() if f"ax {name}" in line)
                assert found.split()[-3:-1] == [str(most)] * 2

    if not Path("/proc/self/limits").exists():
        pytest.skip("there is no /proc")
    run(looked_at)


def test_closing_ends_calls_that_run_and_those_that_come() -> None:
    async def closing() -> list[int]:
        worlds = HostWorlds()
        opened = [await worlds.open(RECKLESS, Start({"count": 0})) for _ in range(20)]
        pids = [handle.pid for handle in opened if handle.pid] + list(worlds.parents.values())
        calls = [asyncio.create_task(one.call("run", {"code": "while True: pass"})) for one in opened]
        await asyncio.sleep(0.2)
        start = time.monotonic()
        await worlds.close()
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert time.monotonic() - start < 30  # the calls would run for ever
        assert all(isinstance(one, RuntimeError) or one == Answered(DIED, "died") for one in ended)
        with pytest.raises(RuntimeError, match="closed"):
            await worlds.open(RECKLESS, Start({"count": 0}))
        await opened[0].close()
        with pytest.raises(RuntimeError, match="closed"):
            await opened[0].snapshot()
        with pytest.raises(RuntimeError, match="closed"):
            await opened[0].copy()
        return pids

    assert all_gone(asyncio.run(closing()), 0)


HOST = """
import asyncio, os, sys, time
from pathlib import Path
from robustbench_tc.worlds.handle import Start, WorldType
from robustbench_tc.worlds.host import HostWorlds

async def main():
    async with HostWorlds() as worlds:
        world = WorldType("reckless", Path(sys.argv[1]))
        opened = [await worlds.open(world, Start({"count": 0})) for _ in range(3)]
        print(*worlds.parents.values(), *(one.pid for one in opened), flush=True)
        if sys.argv[2] == "SIGKILL, forked" and os.fork() == 0:
            os.close(1)
            time.sleep(3)  # holds every descriptor open
            os._exit(0)
        if sys.argv[2] == "raises":
            raise ValueError("the host's own")
        await opened[0].call("run", {"code": "while True: pass"})

asyncio.run(main())
"""


@pytest.mark.parametrize("end", ["raises", "SIGINT", "SIGKILL", "SIGTERM", "SIGKILL, forked"])
def test_no_process_outlives_the_host(end: str) -> None:
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(RECKLESS.file), end],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert host.stdout is not None
    with host.stdout as stdout:
        pids = [int(pid) for pid in stdout.readline().split()]
    assert len(pids) == 4
    if end != "raises":
        time.sleep(0.1)
        assert not any(map(gone, pids))
        host.send_signal(signal.Signals[end.partition(",")[0]])
    host.wait()
    assert all_gone(pids, 4)


def test_worlds_that_are_closed_while_they_start_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import os, pathlib, time\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
        "time.sleep(0.5)\nWORLD = dict\n"
    )

    async def closed_early() -> None:
        worlds = HostWorlds()
        opening = asyncio.create_task(worlds.open(WorldType("slow", tmp_path / "slow.py"), Start({})))
        while not (tmp_path / "pid").exists():
            await asyncio.sleep(0.01)
        await worlds.close()
        with pytest.raises(RuntimeError, match="closed"):
            await opening

    run(closed_early)
    assert all_gone([int((tmp_path / "pid").read_text())], 0)


def failing(tmp_path: Path, text: str) -> WorldType:
    (tmp_path / "failing.py").write_text(text)
    return WorldType("failing", tmp_path / "failing.py")


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_start_that_fails_says_why_in_one_line(tmp_path: Path) -> None:
    fine = "class WORLD:\n    def __init__(self, state, seed): self.x = state['x']\n"
    other = script(tmp_path / "other", "echo 'no such module: encodings' >&2; echo more >&2; exit 3")
    silent = script(tmp_path / "silent", "exit 3")
    cases = [
        (failing(tmp_path, fine)._replace(python="/no/python"), "/no/python does not start: No such file"),
        (failing(tmp_path, fine)._replace(python=other), "no such module: encodings"),
        (failing(tmp_path, fine)._replace(python=silent), "it ended with code 3"),
        (failing(tmp_path, fine), "cannot start from this state: KeyError: 'x'"),
        (WorldType("nothing", tmp_path / "nothing.py"), "No such file or directory"),
    ]
    for number, (text, why) in enumerate(
        [
            ("def (:\n", "SyntaxError"),
            ("import nonsense_of_nobody\n", "No module named 'nonsense_of_nobody'"),
            ("x = 1\n", "it has no WORLD"),
            ("import sys; sys.exit('on purpose')\n", "SystemExit: on purpose"),
            ("import os; os._exit(4)\n", "it ended with code 4"),
        ]
    ):
        (tmp_path / f"w{number}.py").write_text(text)
        cases.append((WorldType(f"w{number}", tmp_path / f"w{number}.py"), why))

    async def starts() -> None:
        async with HostWorlds() as worlds:
            for world, why in cases:
                with pytest.raises(UserError) as failed:
                    await worlds.open(world, Start({}))
                assert why in str(failed.value) and "\n" not in str(failed.value)
                assert world.name in str(failed.value)

    run(starts)


def test_a_state_that_is_not_json_is_one_line(tmp_path: Path) -> None:
    world = failing(
        tmp_path,
        "class WORLD:\n"
        "    def __init__(self, state, seed): pass\n"
        "    def state(self): return {1, 2}\n"
        "    def generated(self): return []\n",
    )

    async def says() -> None:
        async with HostWorlds() as worlds:
            handle = await worlds.open(world, Start({}))
            with pytest.raises(UserError, match="its state is not JSON: TypeError"):
                await handle.snapshot()
            with pytest.raises(UserError, match="cannot start from this state"):
                await worlds.open(world, Start({1, 2}))

    run(says)


def test_too_many_worlds_for_the_open_files_is_one_line(tmp_path: Path) -> None:
    code = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\n" + HOST.replace(
        "range(3)", "range(40)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(RECKLESS.file), "raises"], capture_output=True, text=True
    )
    last = done.stderr.strip().splitlines()[-1]
    assert "UserError: too many open files for another world" in last and "lower the concurrency" in last


def test_without_seccomp_limits_are_left_and_said(tmp_path: Path) -> None:
    pretend = tmp_path / "pretend.py"
    pretend.write_text(
        "import platform, runpy, sys\n"
        "platform.machine = lambda: 'riscv64'\n"
        "sys.argv = sys.argv[3:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    python = script(tmp_path / "python", f'exec {sys.executable} {pretend} "$@"')

    async def limited() -> None:
        async with HostWorlds(seconds=1.0) as worlds:
            handle = await worlds.open(RECKLESS._replace(python=python), Start({"count": 1}))
            assert worlds.isolation == "limits only"
            for code, text in (
                ("found = bytearray(10**10)", "MemoryError"),
                (f"open({str(tmp_path / 'big')!r}, 'wb').write(b'x' * 10_000_000)", "Error"),
                ("while True: pass", TIMED_OUT),
            ):
                assert text in (await handle.call("run", {"code": code})).text
            assert not (tmp_path / "big").exists() or not (tmp_path / "big").stat().st_size
            assert (await handle.call("add", {"amount": 1})).text == "2"
            await worlds.open(RECKLESS, Start({"count": 1}))
            assert worlds.isolation == "limits only"

    run(limited)
