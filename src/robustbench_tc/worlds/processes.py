"""The host's ends of a world's processes: `Parent`, which forks, and `Child`, one per episode (see `worker`).

Nothing here belongs to an event loop: descriptors are watched by the loop that waits for them at that moment,
so a world can be used from one `asyncio.run` after another, of one thread at a time.
"""

import asyncio
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Literal

from ..errors import UserError
from ..schema import Json
from .handle import WorldType

WORKER = Path(__file__).with_name("worker.py")
FRAME_BYTES = 16_000_000
"""A longer answer counts as a dead world: nothing a child says can fill the host's memory."""
START_SECONDS = 60.0
STOP_SECONDS = 5.0


class Lost(Exception):
    """A process gave no usable answer."""

    def __init__(self, why: Literal["timeout", "died"]) -> None:
        super().__init__(why)
        self.why = why


class PerLoop:
    """A semaphore of whichever event loop is running."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._loop: asyncio.AbstractEventLoop | None = None
        self._semaphore = asyncio.Semaphore(places)

    def __call__(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._semaphore = loop, asyncio.Semaphore(self._places)
        return self._semaphore


class End:
    """One end of a pipe or socket, read or written without blocking."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self._waiting: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None

    async def ready(self, deadline: float, *, writing: bool = False) -> None:
        """Until it may be used again, or is closed. Raises Lost at the deadline."""
        loop = asyncio.get_running_loop()
        if loop.time() >= deadline:
            raise Lost("timeout")
        future: asyncio.Future[None] = loop.create_future()
        (loop.add_writer if writing else loop.add_reader)(self.descriptor, _settle, future)
        timer = loop.call_at(deadline, _settle, future)
        self._waiting = (loop, future)
        try:
            await future
        finally:
            timer.cancel()
            self._forget()

    def _forget(self) -> None:
        if self._waiting is not None:
            loop, future = self._waiting
            self._waiting = None
            if not loop.is_closed():
                loop.remove_reader(self.descriptor)
                loop.remove_writer(self.descriptor)
                _settle(future)

    async def read(self, most: int, deadline: float) -> bytes:
        """What is there, at least one byte. Raises Lost."""
        while self.descriptor >= 0:
            try:
                found = os.read(self.descriptor, most)
            except BlockingIOError:
                await self.ready(deadline)
                continue
            except OSError:
                break
            if not found:
                break
            return found
        raise Lost("died")

    async def write(self, data: bytes, deadline: float) -> None:
        rest = memoryview(data)
        while rest:
            if self.descriptor < 0:
                raise Lost("died")
            try:
                rest = rest[os.write(self.descriptor, rest) :]
            except BlockingIOError:
                await self.ready(deadline, writing=True)
            except OSError:
                raise Lost("died") from None

    async def frame(self, deadline: float) -> Json:
        """The next frame. Raises Lost where it is none, too long, or followed by more than was asked for."""
        found = b""
        while len(found) < 4:
            found += await self.read(65536, deadline)
        wanted = int.from_bytes(found[:4], "big")
        parts, length = [found[4:]], len(found) - 4
        if wanted > FRAME_BYTES:
            raise Lost("died")
        while length < wanted:
            parts.append(await self.read(1_000_000, deadline))
            length += len(parts[-1])
        try:
            return json.loads(b"".join(parts))
        except (ValueError, RecursionError):
            raise Lost("died") from None

    def close(self) -> None:
        if self.descriptor >= 0:
            self._forget()
            os.close(self.descriptor)
            self.descriptor = -1


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class Child:
    """The process of one episode."""

    def __init__(self, parent: "Parent", requests: int, answers: int) -> None:
        self._parent, self._requests, self._answers = parent, End(requests), End(answers)
        self._number = 0
        self.pid = 0
        """Once it said so."""

    async def ask(self, what: str, seconds: float) -> dict[str, Json]:
        """The answer to a request, which is JSON. After Lost, or cancelled, the child can only be closed."""
        deadline = asyncio.get_running_loop().time() + seconds
        self._number += 1
        request = f"[{self._number},{what}]".encode()
        await self._requests.write(len(request).to_bytes(4, "big") + request, deadline)
        found = await self._answers.frame(deadline)
        match found:
            case [int(number), dict(answer)] if number == self._number:
                return answer
        raise Lost("died")

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        if self._answers.descriptor < 0:
            return
        if not self._parent.end(self) and self.pid and not hung_up(self._answers.descriptor):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)
        self._requests.close()
        self._answers.close()


def hung_up(descriptor: int) -> bool:
    """Whether nobody holds the other end: the process is gone, and its pid may be somebody else's."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return bool(poll.poll(0))


class Parent:
    """The process that imported a world's file and forks a child for every episode."""

    def __init__(self, process: "subprocess.Popen[bytes]", control: socket.socket) -> None:
        self._process, self._control = process, control
        self.isolation = "limits only"
        self._children: dict[Child, int] = {}
        self._forked = 0

    @classmethod
    async def start(cls, world: WorldType, *words: str) -> "Parent":
        """Raises UserError, one line, where its Python or its file does not work. `words`: for `worker`."""
        python = world.python or sys.executable
        try:
            ours, theirs = socket.socketpair()
            with tempfile.TemporaryFile() as stderr, theirs:
                command = [python, "-I", "-B", str(WORKER), str(theirs.fileno())]
                process = subprocess.Popen(
                    [*command, str(WORKER.parents[1]), str(world.file), *words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    pass_fds=(theirs.fileno(),),
                    env={},
                    start_new_session=True,
                )
                theirs.close()
                parent = cls(process, ours)
                await parent._greeting(world, stderr)
        except OSError as error:
            raise UserError(f"world {world.name}: {python} does not start: {error.strerror}") from None
        return parent

    async def _greeting(self, world: WorldType, stderr: IO[bytes]) -> None:
        end = End(self._control.fileno())
        deadline = asyncio.get_running_loop().time() + START_SECONDS
        try:
            said = await end.frame(deadline)
        except Lost as lost:
            self._process.kill()
            self._process.wait()
            stderr.seek(0)
            reason = _reason(stderr.read(20_000).decode("utf-8", "replace"))
            if lost.why == "timeout":
                reason = f"no sign of life after {START_SECONDS:.0f} s"
            said = {"error": reason or f"it ended with code {self._process.returncode}"}
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        if "error" in said:
            self._process.wait()
            self._control.close()
            python = world.python or "this Python"
            raise UserError(f"world {world.name} ({world.file}) does not start in {python}: {said['error']}")
        self.isolation = said["isolation"]
        self._control.settimeout(STOP_SECONDS)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None and not hung_up(self._control.fileno())

    def fork(self) -> Child:
        """A child that waits for what its world starts with. Raises Lost where the parent is dead."""
        made: list[int] = []
        try:
            made += os.pipe()
            made += os.pipe()
        except OSError:
            for one in made:
                os.close(one)
            raise UserError(
                f"too many open files for another world, {len(self._children)} are open: every world takes "
                "two, so lower the concurrency or raise `ulimit -n`"
            ) from None
        source, requests, answers, target = made
        child = Child(self, requests, answers)
        self._forked += 1
        self._children[child] = self._forked
        try:
            socket.send_fds(self._control, [b"F" + self._forked.to_bytes(4, "big")], [source, target])
        except OSError:
            child.close()
            raise Lost("died") from None
        finally:
            os.close(source)
            os.close(target)
        return child

    def end(self, child: Child) -> bool:
        """Has a child killed and waited for; False where the parent is dead and cannot."""
        number = self._children.pop(child)
        if self._control.fileno() < 0 or not self.alive:
            return False
        try:
            self._control.sendall(b"E" + number.to_bytes(4, "big"))
        except OSError:
            return False
        return True

    async def stop(self) -> None:
        """Ends it with all its children."""
        self._control.close()  # a living parent ends its children then, and itself
        patience = time.monotonic() + STOP_SECONDS
        while self._process.poll() is None and time.monotonic() < patience:
            await asyncio.sleep(0.005)
        self._process.kill()
        self._process.wait()
        for child in tuple(self._children):
            child.close()


def _reason(stderr: str) -> str:
    """The line that says why: the last of a traceback, else the first."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if not lines:
        return ""
    return (lines[-1] if lines[0].startswith("Traceback") else lines[0])[:300]
