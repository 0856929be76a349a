"""Worlds in processes of their own: the same results as here, what is lost comes back, nothing is left."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.errors import UserError
from robustbench_tc.worlds import base, find
from robustbench_tc.worlds.handle import Answered, Snapshot, Start, WorldType
from robustbench_tc.worlds.host import DIED, NOT_JSON, TIMED_OUT, TOO_LARGE, Handle, Worlds

from . import purse

HERE = Path(__file__).parent
PURSE = WorldType("purse", HERE / "purse.py")
RECKLESS = WorldType("reckless", HERE / "reckless.py", sys.executable)


def run(of: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(of())


def group(pid: int) -> set[int]:
    """The living processes of a group; one that ended and that nobody waited for yet is none."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of = place.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(of) == pid and state != "Z":
            found.add(int(place.parent.name))
    return found


def ends(pid: int, seconds: float = 10) -> bool:
    """Whether all processes of a group end."""
    until = time.monotonic() + seconds
    while group(pid):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def parent(worlds: Worlds) -> int:
    """The process that forks; its group is that of all its children."""
    [server] = worlds.servers.values()
    return server.process.pid


async def played(worlds: Worlds, world: WorldType, task: base.Task) -> tuple[list[str], Snapshot]:
    handle = await worlds.open(world, Start(dict(task.state), task.seed))
    said = [
        (await handle.call(one.name, dict(one.arguments))).text for turn in task.turns for one in turn.gold
    ]
    found = await handle.snapshot()
    await handle.aclose()
    return said, found


@pytest.mark.parametrize("world", [PURSE, *map(find.find, find.BUNDLED)], ids=lambda world: world.name)
def test_gold_has_the_same_results_in_another_process_in_any_order(world: WorldType) -> None:
    tasks = list(find.tasks(world))

    async def compared() -> None:
        async with Worlds() as worlds:
            expected = {task.id: await played(worlds, world, task) for task in tasks}
            forked = world._replace(python=sys.executable)
            shuffled = random.Random(7).sample(tasks, len(tasks))
            found = await asyncio.gather(*(played(worlds, forked, task) for task in shuffled))
        for task, one in zip(shuffled, found, strict=True):
            assert json.dumps(one) == json.dumps(expected[task.id])

    run(compared)


CALLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a dunder": ("__init__", {"state": {}}, "there is no tool"),
    "a method that is not a tool": ("call", {"name": "add_coins"}, "there is no tool"),
    "a name with a null byte": ("add_coins\0", {"amount": 1}, "there is no tool"),
    "globals as a parameter": ("add_coins", {"__globals__": {}, "amount": 1}, "unknown parameter"),
    "a name of two megabytes": ("x" * 2_000_000, {}, "there is no tool"),
    "an argument of two megabytes": ("add_coins", {"amount": "9" * 2_000_000}, "is longer than"),
    "a number that is not finite": ("add_coins", {"amount": float("inf")}, "not finite"),
    "a number of 5,000 digits": ("take_coins", {"amount": 10**5000}, "beyond 64 bits"),
    "60,000 parameters": ("add_coins", {f"p{n}": n for n in range(60_000)}, "unknown parameter"),
    "half a surrogate pair": ("whisper", {"text": "\ud800"}, "not valid Unicode"),
    "bytes": ("add_coins", {"amount": b"2"}, "is not JSON"),
}
"""What a model can say, and how a world of ours refuses it."""


def nested() -> list[dict[str, Any]]:
    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"amount": deep}
    cyclic: dict[str, Any] = {}
    cyclic["amount"] = [cyclic]
    return [deep, cyclic]


def test_what_a_model_says_reaches_tools_only() -> None:
    calls = list(CALLS.values())
    calls += [("add_coins", arguments, "is nested deeper than") for arguments in nested()]
    border = (TOO_LARGE, NOT_JSON)

    async def refused(handle: Handle, name: str, arguments: dict[str, Any], said: tuple[str, ...]) -> None:
        answered = await handle.call(name, arguments)
        assert answered.problem is None and any(one in answered.text for one in said), (name, answered)
        assert json.loads(answered.text).keys() == {"error"} and len(answered.text) < 2_000

    async def both() -> None:
        start = Start(purse.TASKS[0].state)
        async with Worlds() as worlds:
            here = await worlds.open(PURSE, start)
            apart = await worlds.open(PURSE._replace(python=sys.executable), start)
            for name, arguments, said in calls:
                await refused(here, name, arguments, (said,))
                await refused(apart, name, arguments, (said, *border))
            assert (await here.snapshot()).state == (await apart.snapshot()).state == start.state

    run(both)


def to_every_descriptor(data: str) -> str:
    """Code that writes past the world to the host."""
    return f"import os\nfor n in range(20):\n  try: os.write(n, {data})\n  except OSError: pass\n"


LOST: dict[str, tuple[str, str]] = {
    "an endless loop": ("while True: pass", TIMED_OUT),
    "a number that takes minutes": ("found = 7 ** 10**9", TIMED_OUT),
    "a long sleep": ("import time; time.sleep(1000)", TIMED_OUT),
    "a state that is half changed": ("world.data['count'] = 77\nwhile True: pass", TIMED_OUT),
    "exit": ("import sys; sys.exit(0)", DIED),
    "a hard exit": ("import os; os._exit(0)", DIED),
    "a null pointer": ("import ctypes; ctypes.string_at(0)", DIED),
    "its sockets closed": ("import os; os.closerange(0, 100)", DIED),
    "garbage on its socket": (to_every_descriptor("b'garbage\\n' * 100"), DIED),
    "20 MB of answer": ("found = 'x' * 20_000_000", DIED),
}
"""The world is lost with the call, and comes back without it."""

HARMLESS: dict[str, tuple[str, str]] = {
    "ten gigabytes": ("found = bytearray(10**10)", "MemoryError"),
    "recursion": ("def f(): return f()\nf()", "RecursionError"),
    "printing": ("import os; print('x'); os.write(1, b'x'); os.write(2, b'x'); found = 'printed'", "printed"),
    "an empty environment": ("import os; found = sorted(os.environ)", ""),
}
"""Answered by the world itself."""


def test_a_lost_world_costs_a_tool_error_and_comes_back_and_others_go_on() -> None:
    async def told(worlds: Worlds, code: str) -> Answered:
        """What a world answers to code, between two counts."""
        handle = await worlds.open(RECKLESS, Start({"count": 0}))
        await handle.call("add", {"amount": 5})
        answered = await handle.call("run", {"code": code})
        copied = await handle.copy()
        for one in (handle, copied):
            assert await one.snapshot() == Snapshot({"count": 5})
            assert (await one.call("add", {"amount": 1})).text == "6"
            await one.aclose()
        return answered

    async def all_at_once() -> tuple[int, int]:
        cases = {**LOST, **HARMLESS}
        async with Worlds() as worlds, Worlds(seconds=0.5) as hurried:
            other = await worlds.open(RECKLESS, Start({"count": 100}))
            making = [
                asyncio.create_task(told(hurried if text == TIMED_OUT else worlds, code))
                for code, text in cases.values()
            ]
            for number in range(101, 200):
                assert (await other.call("add", {"amount": 1})).text == str(number)
            found = dict(zip(cases, await asyncio.gather(*making), strict=True))
            for name, (_, text) in LOST.items():
                assert found[name] == (text, "timeout" if text == TIMED_OUT else "died"), name
            for name, (_, text) in HARMLESS.items():
                assert found[name].problem is None and text in found[name].text, (name, found[name])
            return parent(worlds), parent(hurried)

    begun = time.monotonic()
    assert all(ends(pid) for pid in run(all_at_once))
    assert time.monotonic() - begun < 60  # the loops would run for ever


def test_a_cancelled_call_did_not_happen() -> None:
    async def cancelled() -> None:
        async with Worlds() as worlds:
            handle = await worlds.open(RECKLESS, Start({"count": 0}))
            code = "world.data['count'] = 5\nimport time; time.sleep(3)"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(handle.call("run", {"code": code}), 0.2)
            assert (await handle.snapshot()).state == {"count": 0}

    run(cancelled)


def test_a_world_that_depends_on_more_than_its_calls_is_found_out() -> None:
    async def moody() -> None:
        async with Worlds() as worlds:
            handle = await worlds.open(RECKLESS, Start({}))
            await handle.call("run", {"code": "import os; found = os.getpid()"})
            with pytest.raises(UserError, match="another result when it is repeated"):
                await handle.copy()

    run(moody)


def test_a_hundred_and_fifty_worlds_at_once_and_none_stays() -> None:
    async def many() -> int:
        async with Worlds() as worlds:
            opened = await asyncio.gather(*(worlds.open(RECKLESS, Start({"count": n})) for n in range(150)))
            said = await asyncio.gather(*(handle.call("add", {"amount": 0}) for handle in opened))
            assert [int(one.text) for one in said] == list(range(150))
            assert len(group(parent(worlds))) == 151
            for handle in opened[::2]:
                await handle.aclose()
            until = time.monotonic() + 10
            while len(group(parent(worlds))) > 76 and time.monotonic() < until:
                await asyncio.sleep(0.01)
            assert len(group(parent(worlds))) == 76
            return parent(worlds)

    assert ends(run(many))


HOST = """
import asyncio, sys
from pathlib import Path
from robustbench_tc.worlds.handle import Start, WorldType
from robustbench_tc.worlds.host import Worlds

async def main():
    async with Worlds() as worlds:
        world = WorldType("reckless", Path(sys.argv[1]), sys.executable)
        opened = [await worlds.open(world, Start({"count": 0})) for _ in range(3)]
        print(worlds.servers[world].process.pid, flush=True)
        if sys.argv[2] == "raises":
            raise ValueError("the host's own")
        await opened[0].call("run", {"code": "while True: pass"})

asyncio.run(main())
"""


def test_no_process_outlives_the_host() -> None:
    for way in ("raises", "SIGINT", "SIGKILL", "SIGTERM"):
        host = subprocess.Popen(
            [sys.executable, "-c", HOST, str(RECKLESS.file), way],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert host.stdout is not None
        with host.stdout as stdout:
            pid = int(stdout.readline())
        if way != "raises":
            assert len(group(pid)) == 4  # the hung call has five seconds of processor time
            host.send_signal(signal.Signals[way])
        host.wait()
        assert ends(pid, 4), way


OURS = "from robustbench_tc.worlds.base import World\n\nclass WORLD(World):\n    name = 'w'\n    "


def test_a_start_that_fails_says_why_in_one_line(tmp_path: Path) -> None:
    starts = {
        "def (:\n": "SyntaxError",
        "import nonsense_of_nobody\n": "No module named 'nonsense_of_nobody'",
        "import sys; sys.exit('on purpose')\n": "on purpose",
        "import os; os._exit(4)\n": "it ended",
        "class WORLD:\n    def __init__(self, state, seed): state['x']\n": "KeyError: 'x'",
        "class WORLD:\n    def __init__(self, state, seed):\n        while True: pass\n": "takes too long",
        "import os\nclass WORLD:\n    def __init__(self, state, seed): os._exit(1)\n": "ends its process",
    }
    refused = {
        "import sys; sys.exit('on purpose')\n": "cannot be imported: SystemExit: on purpose",
        OURS + "def __init__(self, state, seed): state[1]\n": "cannot start from this state: KeyError",
        OURS + "def __init__(self, *_): exit(3)\n": "cannot start from this state: SystemExit: 3",
        OURS + "def state(self): exit(3)\n": "does not report its state: SystemExit: 3",
        OURS + "def state(self): return {1, 2}\n": "does not report its state: TypeError",
        OURS + "def state(self): return 1 / 0\n": "does not report its state: ZeroDivisionError",
    }

    async def started() -> None:
        async with Worlds(seconds=0.3) as worlds:
            for number, (text, why, python) in enumerate(
                [(*one, sys.executable) for one in starts.items()] + [(*one, None) for one in refused.items()]
            ):
                file = tmp_path / f"w{number}.py"
                file.write_text(text)
                with pytest.raises(UserError) as failed:
                    await (await worlds.open(WorldType(file.stem, file, python), Start({}))).snapshot()
                assert why in str(failed.value) and "\n" not in str(failed.value), failed.value
                assert file.stem in str(failed.value)

    run(started)


def test_a_dead_parent_is_one_line() -> None:
    async def orphaned() -> int:
        async with Worlds() as worlds:
            handle = await worlds.open(RECKLESS, Start({"count": 0}))
            os.kill(parent(worlds), signal.SIGKILL)
            worlds.servers[RECKLESS].process.wait()
            assert (await handle.call("add", {"amount": 1})).text == "1"
            with pytest.raises(UserError, match="no process for another one: Broken pipe"):
                await worlds.open(RECKLESS, Start({"count": 0}))
            return parent(worlds)

    assert ends(run(orphaned))
