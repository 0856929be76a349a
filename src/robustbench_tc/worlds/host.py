"""Worlds in processes of their own: a call that hangs, dies or does harm costs its episode a tool error.

    async with HostWorlds() as worlds:
        handle = await worlds.open(find("orders"), Start(task.state, task.seed))
        answered = await handle.call("list_orders", {})

A lost world is brought back by repeating the calls that it answered in a fresh process, so a world must be a
function of its start and its calls; one that is not is found out here and said to be so.
"""

import hashlib
import json
import os
import platform
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple

from ..errors import UserError
from ..schema import Json
from .handle import Answered, Snapshot, Start, WorldType
from .processes import Child, Lost, Parent, PerLoop

CALL_SECONDS = 5.0
OPEN_SECONDS = 30.0
ARGUMENT_BYTES = 1_000_000
NESTING = 100
FORKS_AT_ONCE = 16
CALLS_AT_ONCE = 8
"""At least; more where there are many processors."""

TIMED_OUT = json.dumps({"error": "The call took too long and was stopped. Nothing was changed."})
DIED = json.dumps({"error": "The tool failed unexpectedly. Nothing was changed."})
TOO_LARGE = json.dumps({"error": f"The arguments are larger than {ARGUMENT_BYTES:,} bytes."})
NOT_JSON = json.dumps({"error": "The arguments are not JSON, or nested too deeply."})


class WorldLost(UserError):
    """A world that cannot be brought back after it was lost."""


class Done(NamedTuple):
    """A call that was carried out."""

    request: str
    result: bytes
    """A digest of what was answered."""


class HostHandle:
    """One world in one episode."""

    def __init__(self, worlds: "HostWorlds", world: WorldType, start: str, child: Child) -> None:
        self._worlds, self._world, self._start = worlds, world, start
        self._child: Child | None = child
        self._done: list[Done] = []
        self._turn = PerLoop(1)
        self._closed = False

    async def call(self, name: str, arguments: Mapping[str, Json]) -> Answered:
        try:
            request = _request(name, arguments)
        except ValueError as error:
            return Answered(str(error))
        async with self._turn():
            child = await self._living()
            try:
                text = await self._text(child, request, self._worlds.seconds)
            except Lost as lost:
                self._drop()
                return Answered(TIMED_OUT if lost.why == "timeout" else DIED, lost.why)
            except BaseException:  # cancelled: nobody knows how far the call came
                self._drop()
                raise
            self._done.append(Done(request, _digest(text)))
            return Answered(text)

    async def snapshot(self) -> Snapshot:
        async with self._turn():
            for _ in range(2):
                child = await self._living()
                try:
                    found = await self._worlds.ask(child, "null", self._worlds.seconds)
                except Lost:
                    found = {}
                except BaseException:
                    self._drop()
                    raise
                match found:
                    case {"state": state, "generated": [*generated]}:
                        return Snapshot(state, tuple(generated))
                    case {"error": error}:
                        raise UserError(f"world {self._world.name}: its state is not JSON: {error}")
                self._drop()
            raise WorldLost(f"world {self._world.name} does not say its state: its process ends, twice")

    async def copy(self) -> "HostHandle":
        async with self._turn():
            child = await self._replayed()
            made = HostHandle(self._worlds, self._world, self._start, child)
            made._done = list(self._done)
            return made

    async def close(self) -> None:
        self._closed = True
        self._done = []
        self._drop()

    @property
    def pid(self) -> int | None:
        """Of its process; none between a lost world and the next call."""
        return None if self._child is None else self._child.pid

    def _drop(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    async def _text(self, child: Child, request: str, seconds: float) -> str:
        found = await self._worlds.ask(child, request, seconds)
        if not isinstance(text := found.get("text"), str):
            raise Lost("died")
        return text

    async def _living(self) -> Child:
        if self._closed:
            raise RuntimeError("this world was closed")
        if self._child is None:
            self._child = await self._replayed()
        return self._child

    async def _replayed(self) -> Child:
        """A fresh process in which everything that was done so far was done."""
        for attempt in (1, 2):
            child = await self._worlds.fork(self._world, self._start)
            try:
                for number, done in enumerate(self._done, 1):
                    # A call that took almost all its time is not to fail because the machine is busy.
                    text = await self._text(child, done.request, 2 * self._worlds.seconds)
                    if _digest(text) != done.result:
                        raise WorldLost(
                            f"world {self._world.name} cannot be brought back: call {number}, "
                            f"{done.request[:80]}, has another result when it is repeated; "
                            "a world may depend on its start and its calls only"
                        )
                return child
            except Lost as lost:
                child.close()
                if attempt == 2:
                    raise WorldLost(
                        f"world {self._world.name} cannot be brought back: call {number}, "
                        f"{done.request[:80]}, which worked before, "
                        + ("took too long" if lost.why == "timeout" else "ended its process")
                    ) from None
            except BaseException:
                child.close()
                raise
        raise AssertionError("unreachable")


class HostWorlds:
    """Worlds in processes of their own. Not for several threads at the same time."""

    def __init__(self, *, seconds: float = CALL_SECONDS) -> None:
        self.seconds = seconds
        """How long a call may take."""
        known = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
        self.isolation = "seccomp" if known else "limits only"
        """Certain once a world was opened; "limits only" as soon as one of them had no more."""
        self._parents: dict[WorldType, Parent] = {}
        self._former: list[Parent] = []
        self._starting, self._forking = PerLoop(1), PerLoop(FORKS_AT_ONCE)
        self._running = PerLoop(max(CALLS_AT_ONCE, 2 * (os.cpu_count() or 1)))
        self._closed = False

    async def __aenter__(self) -> "HostWorlds":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends every process, those of handles that were not closed too."""
        self._closed = True
        parents = [*self._parents.values(), *self._former]
        self._parents, self._former = {}, []
        for parent in parents:
            await parent.stop()

    @property
    def parents(self) -> dict[str, int]:
        """The pid of the process that forks, by the world's name."""
        return {world.name: parent.pid for world, parent in self._parents.items()}

    async def open(self, world: WorldType, start: Start) -> HostHandle:
        try:
            text = json.dumps([start.state, start.seed, 4 * self.seconds])
        except (ValueError, TypeError, RecursionError) as error:
            raise UserError(f"world {world.name} cannot start from this state: {error}") from None
        return HostHandle(self, world, text, await self.fork(world, text))

    async def ask(self, child: Child, request: str, seconds: float) -> dict[str, Json]:
        """As the child's own; its time begins when it gets a place to run, so that a crowd is no time-out."""
        async with self._running():
            return await child.ask(request, seconds)

    async def fork(self, world: WorldType, start: str) -> Child:
        """A process with a fresh world in it. Raises UserError where there is none, tried twice."""
        async with self._forking():
            for _ in range(2):
                parent = await self._parent(world)
                child: Child | None = None
                try:
                    child = parent.fork()
                    hello = await child.ask(start, OPEN_SECONDS)
                except Lost as lost:
                    why = "takes too long" if lost.why == "timeout" else "ends"
                    if child is not None:
                        child.close()
                    continue
                except BaseException:
                    if child is not None:
                        child.close()
                    raise
                if "error" in hello:
                    child.close()
                    raise UserError(f"world {world.name} cannot start from this state: {hello['error']}")
                child.pid = hello["pid"]
                return child
        raise UserError(f"world {world.name} cannot be started: its process {why}, twice")

    async def _parent(self, world: WorldType) -> Parent:
        if self._closed:
            raise RuntimeError("these worlds were closed")
        if not hasattr(os, "fork"):
            raise UserError("worlds need an operating system with fork: Linux, macOS, or WSL on Windows")
        async with self._starting():
            found = self._parents.get(world)
            if found is None or not found.alive:
                # Children of a dead parent live on: their episodes keep them.
                fresh = await Parent.start(world)
                if found is not None:
                    self._former.append(found)
                found = self._parents[world] = fresh
                if found.isolation != "seccomp":
                    self.isolation = found.isolation
            return found


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _request(name: str, arguments: Mapping[str, Json]) -> str:
    """A call as JSON. Raises ValueError with what the agent is answered where that is not possible."""
    try:
        text = json.dumps([name, dict(arguments)])
    except (ValueError, TypeError, RecursionError):
        raise ValueError(NOT_JSON) from None
    if len(text) > ARGUMENT_BYTES:
        raise ValueError(TOO_LARGE)
    if _depth([arguments]) > NESTING:
        raise ValueError(NOT_JSON)
    return text


def _depth(value: Json) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        inner: list[Json] = []
        for one in level:
            if isinstance(one, Mapping):
                inner += one.values()
            elif isinstance(one, list | tuple):
                inner += one
        level = [one for one in inner if isinstance(one, Mapping | list | tuple)]
    return depth
