"""Ways to a model from elsewhere: actors on a Ray cluster, each with a transport opened where it runs.

Retries, budgets, stores and journals stay with the client; only the sending happens elsewhere. An actor whose
process or node is lost is started again; what it was asked is asked again, and nothing else is.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Any

from ..errors import UserError
from ..schema import Json
from .errors import LLMError
from .messages import Completion
from .transport import Transport

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
        raise UserError(f"the Ray cluster has {there:g} GPUs, {wanted:g} are asked for: see --gpus")
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
        """As `Transport.served_models`; [] where the actor was lost."""
        try:
            found: list[str] = await self._reply(self._actor.served_models.remote())
        except LLMError:
            return []
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
