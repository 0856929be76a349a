"""Where worlds are opened: bundled ones and a user's own in this process, BFCL's in processes of its Python.

    async with Worlds() as worlds:
        handle = await worlds.open(find("orders"), Start(task.state, task.seed))
        answered = await handle.call("list_orders", {})

Upstream's classes share tables and default arguments, so every episode of BFCL's is a fork of a process that
has imported them (`fork_server`). A call that hangs or ends it costs a tool error, and the world is brought
back by repeating the calls that it answered in a fresh fork.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from ..errors import UserError
from ..schema import Json
from .handle import Answered, LocalHandle, Snapshot, Start, WorldType, load_file

SERVER = Path(__file__).with_name("fork_server.py")

CALL_SECONDS = 5.0
"""Of processor time, for one call in a process of its own."""

ARGUMENT_BYTES = 1_000_000
ANSWER_BYTES = 16_000_000
"""A longer answer counts as a dead world: nothing that a world says can fill this process's memory."""

TIMED_OUT = json.dumps({"error": "The call took too long and was stopped. Nothing was changed."})
DIED = json.dumps({"error": "The tool failed unexpectedly. Nothing was changed."})
LOST = {"timeout": TIMED_OUT, "died": DIED}
TOO_LARGE = json.dumps({"error": f"The arguments are larger than {ARGUMENT_BYTES:,} bytes."})
NOT_JSON = json.dumps({"error": "The arguments are not JSON, or nested too deeply."})


class Child:
    """The process of one episode."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
        self._reader, self._writer, self._seconds = reader, writer, seconds
        self.ended = False

    async def ask(self, request: str) -> dict[str, Json]:
        """The answer to a request, or `problem`, timeout or died, where none came that can be read. Then, or
        cancelled, the child has ended: nobody knows how far it came."""
        begun, answer = time.monotonic(), None
        try:
            self._writer.write(request.encode() + b"\n")
            await self._writer.drain()
            answer = dict(json.loads(await self._reader.readline()))
        except (OSError, ValueError):  # it is gone, or its line is none, or too long
            late = time.monotonic() - begun >= self._seconds  # its own clock ended it
            return {"problem": "timeout" if late else "died"}
        finally:
            if answer is None:
                self.end()
        return answer

    def end(self) -> None:
        """Ends the process; one that is in a call ends with that."""
        self.ended = True
        self._writer.close()


class ForkServer:
    """The process that has imported a world's file in another Python; it forks a child for every episode."""

    def __init__(self, world: WorldType, seconds: float) -> None:
        """Raises UserError, one line, where its Python or its file does not work."""
        self.name, self._seconds = world.name, seconds
        self._control, theirs = socket.socketpair()
        command = [world.python or sys.executable, "-I", "-B", str(SERVER), str(theirs.fileno())]
        with theirs:
            self.process = subprocess.Popen(
                [*command, str(world.file), str(seconds)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                env={},
                start_new_session=True,
            )
        if not self._control.recv(5):
            # Its end of the socket closes before its last words are written.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=1)
            said = self.stop().decode(errors="replace").split("\n")
            why = next((line.strip() for line in reversed(said) if line.strip()), "it ended")
            raise UserError(f"world {world.name} does not start in {world.python}: {why[:300]}")

    async def fork(self, start: str) -> Child:
        """A child with a fresh world. Raises UserError where there is none."""
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                socket.send_fds(self._control, [b"+"], [theirs.fileno()])
        except OSError as error:
            raise UserError(f"world {self.name}: no process for another one: {error.strerror}") from None
        reader, writer = await asyncio.open_connection(sock=ours, limit=ANSWER_BYTES)
        child = Child(reader, writer, self._seconds)
        opened = await child.ask(start)
        why = {"timeout": "it takes too long", "died": "it ends its process"}.get(str(opened.get("problem")))
        why = opened.get("error", why)
        if why is not None:
            child.end()
            raise UserError(f"world {self.name} cannot start from this state: {why}")
        return child

    def stop(self) -> bytes:
        """Ends it with all its children; what it wrote before it was ready."""
        self._control.close()
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            os.killpg(self.process.pid, signal.SIGKILL)
        return bytes(self.process.communicate()[1])


class ForkedHandle:
    """One world in a process of its own. Calls come one after the other."""

    def __init__(self, server: ForkServer, start: str, child: Child) -> None:
        self._server, self._start, self._child = server, start, child
        self._done: list[tuple[str, str]] = []
        """Requests that were answered, and the results."""

    async def call(self, name: str, arguments: Mapping[str, Json]) -> Answered:
        try:
            request = json.dumps([name, dict(arguments)])
        except (ValueError, TypeError, RecursionError):
            return Answered(NOT_JSON)
        if len(request) > ARGUMENT_BYTES:
            return Answered(TOO_LARGE)
        answer = await (await self._living()).ask(request)
        if (problem := answer.get("problem")) is not None:
            return Answered(LOST[problem], problem)
        self._done.append((request, answer["text"]))
        return Answered(answer["text"])

    async def snapshot(self) -> Snapshot:
        found = await (await self._living()).ask("[]")
        if "problem" in found:
            raise UserError(f"world {self._server.name} does not report its state, so its process is ended")
        return Snapshot(found["state"], tuple(found["generated"]))

    async def copy(self) -> "ForkedHandle":
        made = ForkedHandle(self._server, self._start, await self._replayed())
        made._done = list(self._done)
        return made

    async def aclose(self) -> None:
        self._child.end()

    async def _living(self) -> Child:
        if self._child.ended:
            self._child = await self._replayed()
        return self._child

    async def _replayed(self) -> Child:
        """A fresh process in which everything that was done so far was done."""
        child = await self._server.fork(self._start)
        for number, (request, text) in enumerate(self._done, 1):
            if (await child.ask(request)).get("text") != text:
                child.end()
                raise UserError(
                    f"world {self._server.name} cannot be restored: call {number}, {request[:80]}, has "
                    "another result when it is repeated; a world may depend on its start and its calls only"
                )
        return child


Handle = LocalHandle | ForkedHandle
"""One world in one episode: `call` carries a call out and never raises for what a model said, `snapshot` is
the state now, `copy` another world that has met the same calls, `aclose` gives it back."""


class Worlds(contextlib.AbstractAsyncContextManager["Worlds"]):
    """Worlds of every type. A context manager, since those of BFCL are processes, of one event loop."""

    def __init__(self, *, seconds: float = CALL_SECONDS) -> None:
        self._seconds = seconds
        self._modules: dict[Path, ModuleType] = {}
        self.servers: dict[WorldType, ForkServer] = {}

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends every process, those of handles that were not closed too."""
        while self.servers:
            self.servers.popitem()[1].stop()

    async def open(self, world: WorldType, start: Start) -> Handle:
        """A fresh world. Raises UserError where it cannot be started at all."""
        if world.python is None:
            if world.file not in self._modules:
                self._modules[world.file] = load_file(world.file)
            return LocalHandle(self._modules[world.file], start)
        if world not in self.servers:
            self.servers[world] = ForkServer(world, self._seconds)
        line = json.dumps([start.state, start.seed])
        return ForkedHandle(self.servers[world], line, await self.servers[world].fork(line))
