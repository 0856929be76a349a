"""The way to one model at one address or at several, here or from actors on a Ray cluster, each with a
transport opened where it runs.

Retries, budgets, stores and journals stay with the client; only the sending happens elsewhere. An actor whose
process or node is lost is started again; what it was asked is asked again, and nothing else is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from typing import Any

from ..errors import UserError
from ..schema import Json
from .endpoint import Endpoint
from .errors import LLMError
from .messages import Completion
from .native import NativeTransport
from .transport import HttpTransport, Transport


def over_http(
    endpoints: Sequence[Endpoint], timeout_s: float = 300.0, *, ray: Any = None, concurrency: int = 16
) -> Transport:
    """The way to one model at one address or at several; the endpoints are resolved.

    With the module `ray` each address is asked by an actor, with `concurrency` requests under way at each.
    """
    openings = [
        partial(HttpTransport if one.provider == "openai" else NativeTransport, one, timeout_s)
        for one in endpoints
    ]
    if ray is not None:
        wires = on_actors(ray, openings, concurrency=concurrency)
    else:
        wires = [opening() for opening in openings]
    return wires[0] if ray is None and len(wires) == 1 else LoadBalancer(wires, [*map(str, endpoints)])


class LoadBalancer:
    """Several ways to one model: a request goes where the fewest are under way.

    A request that lost its connection counts as under way until its address answers again: one that is gone
    has nothing to do, and would be given everything.
    """

    def __init__(self, wires: Sequence[Transport], names: Sequence[str]) -> None:
        """`names` tell the wires apart in messages."""
        self._wires, self._names = wires, names
        self._busy, self._lost, self._sent = ([0] * len(wires) for _ in range(3))

    async def send(self, body: dict[str, Json]) -> Completion:
        """One attempt where the fewest requests are under way. Raises LLMError naming the address."""
        one = min(range(len(self._wires)), key=lambda i: (self._busy[i] + self._lost[i], self._sent[i]))
        self._busy[one] += 1
        self._sent[one] += 1
        try:
            done = await self._wires[one].send(body)
        except LLMError as error:
            self._lost[one] += error.code == "connection"
            raise error.saying(f"{self._names[one]}: {error.message}") from None
        finally:
            self._busy[one] -= 1
        self._lost[one] = 0
        return done

    async def served_models(self) -> list[str]:
        """What all of them serve."""
        lists = await asyncio.gather(*(wire.served_models() for wire in self._wires))
        return list(set.intersection(*map(set, lists)))

    async def close(self) -> None:
        await asyncio.gather(*(wire.close() for wire in self._wires))


OpenTransport = Callable[[], Transport]
"""Opens a transport in the process that calls it; travels to an actor."""

RESTARTS = 3
"""How often a lost actor is started again."""


def on_actors(
    ray: Any, openings: Sequence[OpenTransport], *, concurrency: int, gpus: float = 0
) -> list[Transport]:
    """One actor for each transport, with so many GPUs each. Raises UserError where the cluster has too few.

    `concurrency`: requests under way at each. An address may be asked elsewhere while its actor starts again;
    what holds a GPU has loaded a model, so its requests wait for it.
    """
    there, wanted = ray.cluster_resources().get("GPU", 0), gpus * len(openings)
    if wanted > there:  # Ray would wait for more
        raise UserError(f"the Ray cluster has {there:g} GPUs, but {wanted:g} are requested: see --gpus")
    made = ray.remote(
        num_cpus=0,  # asking is waiting
        num_gpus=gpus,
        max_restarts=RESTARTS,
        max_task_retries=RESTARTS if gpus else 0,
        max_concurrency=2 * concurrency,
    )(Sender)
    return [RayTransport(ray, made.remote(opening)) for opening in openings]


class Sender:
    """The actor: a transport, opened at the first request, where an event loop runs."""

    def __init__(self, open_transport: OpenTransport) -> None:
        self._open = open_transport

    @cached_property
    def _transport(self) -> Transport:
        return self._open()

    async def send(self, body: dict[str, Json]) -> Completion | dict[str, Any]:
        """The completion, or the fields of the LLMError there was instead: no exception would travel."""
        try:
            return await self._transport.send(body)
        except LLMError as error:
            return dict(vars(error))

    async def served_models(self) -> list[str]:
        return await self._transport.served_models()


class RayTransport:
    """A `Sender` as a `Transport`."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor

    async def send(self, body: dict[str, Json]) -> Completion:
        """As `Transport.send`; an actor that was lost is a connection error, which is tried again."""
        reply = await self._reply(self._actor.send.remote(body))
        if isinstance(reply, dict):
            raise LLMError(**reply)
        done: Completion = reply
        return done

    async def served_models(self) -> list[str]:
        """As `Transport.served_models`."""
        found: list[str] = await self._reply(self._actor.served_models.remote())
        return found

    async def close(self) -> None:
        """Ray ends an actor, and with it what it has open, once nobody holds it."""

    async def _reply(self, reference: Awaitable[Any]) -> Any:
        """What the actor returned. Raises what it raised; LLMError where the actor is gone."""
        try:
            return await reference
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError as error:
            said = f"a Ray actor was lost: {type(error).__name__}"
            raise LLMError("connection", said, retryable=True) from None
