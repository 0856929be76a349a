"""Hostile calls: what a model could say, and what it could reach if a world's code had a hole.

Every call is inert: nothing outside the episode's own process is touched, other episodes go on, and this
episode has lost nothing but the call.
"""

import asyncio
import ctypes
import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from robustbench_tc.worlds.handle import Answered, Start, WorldType
from robustbench_tc.worlds.host import DIED, NOT_JSON, TIMED_OUT, TOO_LARGE, HostWorlds

from . import purse

HERE = Path(__file__).parent
PURSE = WorldType("purse", HERE / "purse.py")
RECKLESS = WorldType("reckless", HERE / "reckless.py")

needs_seccomp = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"), reason="there is no seccomp"
)

CALLS: dict[str, tuple[str, dict[str, object], str]] = {
    "a dunder": ("__init__", {"state": {}}, "there is no tool"),
    "a method that is not a tool": ("call", {"name": "add_coins"}, "there is no tool"),
    "a path as a name": ("../../etc/passwd", {}, "there is no tool"),
    "an empty name": ("", {}, "there is no tool"),
    "a name with a null byte": ("add_coins\0", {"amount": 1}, "there is no tool"),
    "self as a parameter": ("add_coins", {"self": 1, "amount": 1}, "unknown parameter"),
    "globals as a parameter": ("add_coins", {"__globals__": {}, "amount": 1}, "unknown parameter"),
    "a name of 100,000 letters": ("x" * 100_000, {}, "there is no tool"),
    "a name of two megabytes": ("x" * 2_000_000, {}, TOO_LARGE),
    "an argument of two megabytes": ("add_coins", {"amount": "9" * 2_000_000}, TOO_LARGE),
    "a number that is not finite": ("add_coins", {"amount": float("inf")}, "not finite"),
    "a number of 5,000 digits": ("take_coins", {"amount": 10**5000}, NOT_JSON),
    "a number of 4,000 digits": ("take_coins", {"amount": 10**4000}, "beyond 64 bits"),
    "60,000 parameters": ("add_coins", {f"p{n}": n for n in range(60_000)}, "unknown parameter"),
    "half a surrogate pair": ("whisper", {"text": "\ud800"}, "not valid Unicode"),
    "bytes": ("add_coins", {"amount": b"2"}, NOT_JSON),
}
"""What a model can say to a world without a hole."""


def libc(call: str) -> str:
    """Code that calls a C function, and fails with its error as Python's own functions do."""
    return (
        "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True)\n"
        f"assert libc.{call} >= 0, os.strerror(ctypes.get_errno())"
    )


def to_every_descriptor(data: str, then: str = "") -> str:
    """Code that writes past the world to the host."""
    return f"import os\nfor n in range(20):\n  try: os.write(n, {data})\n  except OSError: pass\n{then}"


REFUSED: dict[str, str] = {
    "a shell": "import subprocess; subprocess.check_call('touch {canary}/made', shell=True)",
    "a subprocess": "import subprocess; subprocess.run(['touch', '{canary}/made'])",
    "a fork": "import os; os.fork()",
    "exec": "import os; os.execv('/bin/true', ['true'])",
    "a spawn": "import os; os.posix_spawn('/bin/true', ['true'], dict())",
    "a thread": "import threading; threading.Thread(target=print).start()",
    "a socket": "import socket; socket.socket()",
    "a connection": "import socket; socket.create_connection(('127.0.0.1', {port}))",
    "a socket by number": libc("syscall({socket}, 2, 1, 0)"),
    "a written file": "open('{canary}/made', 'w')",
    "a truncated file": "import os; os.open('{canary}/keep', os.O_RDONLY | os.O_TRUNC)",
    "a made file": "import os; os.open('{canary}/made', os.O_RDONLY | os.O_CREAT)",
    "an appended file": "open('{canary}/keep', 'a')",
    "a path that climbs": "open('{canary}/../{name}/keep', 'r+')",
    "a file by ctypes": libc("open(b'{canary}/made', 0o101, 0o600)"),
    "unlink": "import os; os.unlink('{canary}/keep')",
    "rename": "import os; os.rename('{canary}/keep', '{canary}/moved')",
    "a hard link": "import os; os.link('{canary}/keep', '{canary}/made')",
    "a symbolic link": "import os; os.symlink('{canary}/keep', '{canary}/made')",
    "a folder": "import os; os.mkdir('{canary}/made')",
    "a removed folder": "import os; os.rmdir('{canary}/empty')",
    "a pipe with a name": "import os; os.mkfifo('{canary}/made')",
    "chmod": "import os; os.chmod('{canary}/keep', 0)",
    "utime": "import os; os.utime('{canary}/keep', (0, 0))",
    "truncate": "import os; os.truncate('{canary}/keep', 0)",
    "memory as a file": "import os; os.memfd_create('made')",
    "the parent killed": "import os; os.kill(os.getppid(), 9)",
    "the host killed": "import os; os.kill({host}, 9)",
    "its group killed": "import os; os.killpg(0, 9)",
    "the host killed by ctypes": libc("kill({host}, 9)"),
    "a signal through a descriptor": "import fcntl; fcntl.fcntl(3, fcntl.F_SETOWN, {host})",
    "ptrace": libc("ptrace(16, {host}, 0, 0)"),
    "another's memory": libc("process_vm_writev({host}, 0, 0, 0, 0, 0)"),
    "limits lifted": "import resource; resource.setrlimit(resource.RLIMIT_CPU, (10**6, 10**6))",
    "a signal ignored": "import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN)",
    "a namespace": libc("unshare(0x10000000)"),
    "a working directory": "import os; os.chdir('/')",
    "io_uring": libc("syscall(425, 1, 0)"),
}  # fmt: skip
"""Refused by the filter: the tool fails, the world stays."""

LOST: dict[str, tuple[str, str]] = {
    "an endless loop": ("while True: pass", TIMED_OUT),
    "a long sleep": ("import time; time.sleep(1000)", TIMED_OUT),
    "a number that takes minutes": ("found = 7 ** 10**9", TIMED_OUT),
    "exit": ("import sys; sys.exit(0)", DIED),
    "a hard exit": ("import os; os._exit(0)", DIED),
    "abort": ("import os; os.abort()", DIED),
    "a null pointer": ("import ctypes; ctypes.string_at(0)", DIED),
    "its pipes closed": ("import os; os.closerange(0, 100)", DIED),
    "its pipes closed, then a loop": ("import os; os.closerange(0, 100)\nwhile True: pass", DIED),
    "garbage on its pipe": (to_every_descriptor("b'garbage' * 100"), DIED),
    "half a frame": (to_every_descriptor("bytes([0, 0, 1, 0, 34])", "os._exit(0)"), DIED),
    "a frame of four gigabytes": (to_every_descriptor("b'\\xff' * 100"), DIED),
    "an answer to another call": (to_every_descriptor("b'\\0\\0\\0\\x0d[1,{\"text\":0}]'"), DIED),
    "brackets without end": (to_every_descriptor("(50_000).to_bytes(4, 'big') + b'[' * 50_000"), DIED),
    "20 MB of answer": ("found = 'x' * 20_000_000", DIED),
}  # fmt: skip
"""The world is lost with the call, and comes back without it."""

HARMLESS: dict[str, tuple[str, str]] = {
    "a shell by C": ("import os; found = os.system('touch {canary}/made')", "32512"),  # not executed
    "ten gigabytes": ("found = bytearray(10**10)", "MemoryError"),
    "memory bit by bit": (
        "import mmap\nfound = []\nwhile True: found.append(mmap.mmap(-1, 10**7))", "Cannot allocate"),
    "recursion": ("def f(): return f()\nf()", "RecursionError"),
    "an empty environment": ("import os; found = len(os.environ)", "0"),
    "one descriptor after the other": (
        "import os\nfound = [os.open(os.__file__, 0) for _ in range(100)]", "Too many open files"),
    "printing": ("print('x'); found = 'printed'", "printed"),
    "a lazy import": ("import decimal; found = decimal.Decimal(1)", "1"),
}  # fmt: skip
"""Answered by the world itself."""


class Ground(NamedTuple):
    """What hostile calls aim at."""

    worlds: HostWorlds
    canary: Path
    server: socket.socket

    def code(self, text: str) -> str:
        number = 41 if os.uname().machine == "x86_64" else 198
        filled = {
            "canary": self.canary,
            "name": self.canary.name,
            "host": os.getpid(),
            "port": self.server.getsockname()[1],
            "socket": number,
        }
        for name, value in filled.items():
            text = text.replace(f"{{{name}}}", str(value))
        return text

    def untouched(self) -> bool:
        """Whether the folder is as it was and nobody connected."""
        found = sorted(path.name for path in self.canary.iterdir())
        try:
            self.server.accept()
        except BlockingIOError:
            return found == ["empty", "keep"] and (self.canary / "keep").read_text() == "kept"
        return False


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    canary = tmp_path_factory.mktemp("canary")
    (canary / "keep").write_text("kept")
    (canary / "empty").mkdir()
    worlds = HostWorlds(seconds=2.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield Ground(worlds, canary, server)
    asyncio.run(worlds.close())


def run_beside_another(ground: Ground, code: str) -> Answered:
    """What a reckless world answers to code, between two counts, while another episode counts too."""

    async def run() -> Answered:
        other = await ground.worlds.open(RECKLESS, Start({"count": 100}))
        handle = await ground.worlds.open(RECKLESS, Start({"count": 0}))
        await handle.call("add", {"amount": 5})
        await other.call("add", {"amount": 1})
        before = await handle.snapshot()
        parent, child = ground.worlds.parents, handle.pid
        answered = await handle.call("run", {"code": code})
        assert await handle.snapshot() == before
        assert (handle.pid != child) == (answered.problem is not None)
        assert (await handle.call("add", {"amount": 1})).text == "6"
        assert (await other.call("add", {"amount": 1})) == Answered("102")
        assert ground.worlds.parents == parent and ground.untouched()
        await handle.close()
        await other.close()
        return answered

    return asyncio.run(run())


@pytest.mark.parametrize("name", CALLS)
def test_what_a_model_says_reaches_tools_only(ground: Ground, name: str) -> None:
    tool, arguments, said = CALLS[name]

    async def run() -> None:
        handle = await ground.worlds.open(PURSE, Start(purse.TASKS[0].state))
        answered = await handle.call(tool, arguments)
        assert answered.problem is None and said in answered.text
        assert json.loads(answered.text).keys() == {"error"}
        assert (await handle.snapshot()).state == purse.TASKS[0].state
        await handle.close()

    asyncio.run(run())


def test_arguments_that_nest_too_deeply_do_not_reach_the_world(ground: Ground) -> None:
    deep: dict[str, object] = {}
    for _ in range(50_000):
        deep = {"a": deep}
    cyclic: dict[str, object] = {}
    cyclic["a"] = [cyclic]

    async def run() -> None:
        handle = await ground.worlds.open(PURSE, Start(purse.TASKS[0].state))
        for arguments in (deep, cyclic):
            assert await handle.call("whisper", arguments) == Answered(NOT_JSON)
        await handle.close()

    asyncio.run(run())


def test_code_in_an_argument_is_a_text(ground: Ground) -> None:
    texts = ["__import__('os').system('touch made')", "{0.__class__}", "%s%n", "$(reboot)", "\0"]

    async def run() -> None:
        handle = await ground.worlds.open(PURSE, Start(purse.TASKS[0].state))
        for text in texts:
            assert await handle.call("whisper", {"text": text}) == Answered("whispered")
            assert (await handle.snapshot()).state["whisper"] == text
        await handle.close()

    asyncio.run(run())


@needs_seccomp
@pytest.mark.parametrize("name", REFUSED)
def test_a_world_with_a_hole_is_refused_by_the_kernel(ground: Ground, name: str) -> None:
    answered = run_beside_another(ground, ground.code(REFUSED[name]))
    assert answered.problem is None
    refusals = ("Operation not permitted", "can't start new thread", "not allowed to raise")
    assert any(one in json.loads(answered.text)["error"] for one in refusals)


@pytest.mark.parametrize("name", LOST)
def test_a_lost_world_costs_a_tool_error_and_comes_back(ground: Ground, name: str) -> None:
    code, text = LOST[name]
    answered = run_beside_another(ground, code)
    assert answered == Answered(text, "timeout" if text == TIMED_OUT else "died")


def test_more_stack_than_there_is_costs_a_tool_error(ground: Ground) -> None:
    """Python 3.12 ends the recursion itself; before it the process dies, and the world comes back."""
    code = (
        "import sys; sys.setrecursionlimit(10**9)\ndef f(): return g()\n"
        "def g(): return [*map(lambda _: f(), [0])]\nf()"
    )
    answered = run_beside_another(ground, code)
    if sys.version_info >= (3, 12):
        assert answered.problem is None and "RecursionError" in answered.text
    else:
        assert answered == Answered(DIED, "died")


@pytest.mark.parametrize("name", HARMLESS)
def test_what_the_world_answers_itself(ground: Ground, name: str) -> None:
    code, text = HARMLESS[name]
    answered = run_beside_another(ground, ground.code(code))
    assert answered.problem is None and text in answered.text


@needs_seccomp
def test_a_host_s_secrets_cannot_be_read_where_the_kernel_has_landlock(ground: Ground) -> None:
    if ctypes.CDLL(None).syscall(444, None, 0, 1) < 1:
        pytest.skip("there is no Landlock")
    for path in (f"/proc/{os.getpid()}/environ", "/etc/passwd", f"{ground.canary}/keep", "/proc/self/maps"):
        answered = run_beside_another(ground, f"found = open({path!r}).read()")
        assert "PermissionError" in answered.text and answered.problem is None
