"""Any backend on a Ray cluster: one actor per endpoint, or per GPU, each with a backend opened where it runs.

Rows, journal, passes and failures stay with the harness; only the asking happens elsewhere. An actor whose
process or node is lost is started again and asked again what it had not answered; nothing else is.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias, cast

from robustbench_tc import cluster, parallel
from robustbench_tc.errors import UserError
from robustbench_tc.llm import Completion, LLMError, Stats
from robustbench_tc.parallel import Workers
from robustbench_tc.schema import Json

from ..session import OpenBackend, Opened
from ..wire import Ask

RESTARTS = 3
"""How often an actor is started again, and a request asked again of it."""

Reply: TypeAlias = Completion | dict[str, Json]
"""A completion, or the fields of the LLMError there was instead: as an exception it would not travel."""


class Seat:
    """An actor: a backend, opened at its first request."""

    def __init__(self, open_backend: OpenBackend) -> None:
        self._open, self._stack, self._opening = open_backend, AsyncExitStack(), asyncio.Lock()
        self._opened: Opened | None = None

    async def _ready(self) -> Opened:
        async with self._opening:
            if self._opened is None:
                self._opened = await self._stack.enter_async_context(self._open())
            return self._opened

    async def address(self) -> str:
        return (await self._ready()).address

    async def ask(self, ask: Ask, repeat: int) -> tuple[Reply, Stats]:
        """The reply, and what the backend did since it was last started."""
        opened = await self._ready()
        try:
            return await opened.backend.ask(ask, repeat), opened.stats
        except LLMError as error:
            return dict(vars(error)), opened.stats

    async def close(self) -> None:
        await self._stack.aclose()


class Seats:
    """Gives every request to the actor that has the fewest under way. A `Backend`."""

    def __init__(self, ray: Any, actors: Sequence[Any]) -> None:
        self._ray, self._actors = ray, actors
        self._busy = [0] * len(actors)
        self._did = [Stats() for _ in actors]
        self.stats = Stats()
        """Of all the backends together."""

    async def ask(self, ask: Ask, repeat: int) -> Completion:
        seat = self._busy.index(min(self._busy))
        self._busy[seat] += 1
        try:
            reply, self._did[seat] = await self._reply(self._actors[seat].ask.remote(ask, repeat))
        finally:
            self._busy[seat] -= 1
        self._add_up()
        if isinstance(reply, dict):
            raise LLMError(**reply)
        return cast(Completion, reply)

    def _add_up(self) -> None:
        self.stats.requests = sum(did.requests for did in self._did)
        self.stats.retries = sum(did.retries for did in self._did)
        self.stats.errors = sum((did.errors for did in self._did), Counter[str]())
        self.stats.left_out = list(dict.fromkeys(name for did in self._did for name in did.left_out))

    async def addresses(self) -> list[str]:
        return list(await asyncio.gather(*(self._reply(a.address.remote()) for a in self._actors)))

    async def close(self) -> None:
        """Closes what still answers."""
        closing = (self._reply(actor.close.remote()) for actor in self._actors)
        await asyncio.gather(*closing, return_exceptions=True)

    def _reply(self, reference: Awaitable[Any]) -> Awaitable[Any]:
        return cluster.reply_of(self._ray, reference)


def on_ray(
    open_backends: Sequence[OpenBackend], workers: Workers, *, concurrency: int, gpus: float = 0
) -> Callable[[], AbstractAsyncContextManager[Opened]]:
    """One actor for each of the backends, with so many GPUs each; an `OpenBackend` itself."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Opened]:
        with parallel.on_ray(workers) as ray:
            there, wanted = ray.cluster_resources().get("GPU", 0), gpus * len(open_backends)
            if wanted > there:  # Ray would wait for more
                raise UserError(f"the Ray cluster has {there:g} GPUs, {wanted:g} are asked for: see --gpus")
            # Asking is waiting: an endpoint's actor claims no processor.
            made = ray.remote(
                num_cpus=0,
                num_gpus=gpus,
                max_restarts=RESTARTS,
                max_task_retries=RESTARTS,
                max_concurrency=2 * concurrency,
            )(Seat)
            seats = Seats(ray, [made.remote(open_backend) for open_backend in open_backends])
            try:
                yield Opened(seats, ", ".join(await seats.addresses()), seats.stats)
            finally:
                await seats.close()

    return opened
