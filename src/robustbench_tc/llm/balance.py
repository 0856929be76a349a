"""The way to one model at one address or at several, here or from actors on a Ray cluster."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from ..schema import Json
from .endpoint import Endpoint
from .errors import LLMError
from .messages import Completion
from .native import NativeTransport
from .ray import on_actors
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
        return sorted(set.intersection(*map(set, lists)))

    async def close(self) -> None:
        await asyncio.gather(*(wire.close() for wire in self._wires))
