"""How whoever answers is opened: a model at its addresses, vLLM in this process, an agent in this process."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import msgspec

from robustbench_tc.compute import parallel
from robustbench_tc.compute.parallel import SERIAL, Workers
from robustbench_tc.llm import Client, Endpoint, LoadBalancer, Stats, Transport, over_http
from robustbench_tc.llm.ray import on_actors

from . import models
from .dialogue import Speaker
from .request_settings import RequestSettings
from .speakers import ModelSpeaker
from .vllm import VLLMTransport, check_takes


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How fast answers come. No answer depends on it."""

    concurrency: int = 32
    """Requests under way at each address."""
    timeout_s: float = 300.0
    max_retries: int = 6
    workers: Workers = SERIAL
    gpus: int = 1


class Opened(NamedTuple):
    """Whoever answers, ready to be asked."""

    speaker: Speaker
    at_once: int
    """Requests under way, at all its addresses."""
    stats: Stats
    """Filled while it is asked."""
    address: str = ""
    """For the run record; never holds a key."""
    requests: RequestSettings = RequestSettings(decoding={})


Opening: TypeAlias = AbstractAsyncContextManager[Opened]


def endpoint(
    addresses: Sequence[Endpoint], requests: RequestSettings, effort: Effort, *, backoff_s: float = 0.5
) -> Opening:
    """A model at its addresses, which share its requests."""
    specs = [one.resolved() for one in addresses]
    at_once = effort.concurrency * len(specs)
    wire = partial(over_http, specs, effort.timeout_s, concurrency=at_once)
    shown = ", ".join(map(str, specs))
    return _client(wire, specs[0], shown, requests, effort, at_once, backoff_s=backoff_s)


def vllm(name: str, requests: RequestSettings, effort: Effort, *, gpus_each: float = 1) -> Opening:
    """vLLM in this process, or on Ray so many engines with so many GPUs each.

    `name` is a folder, a Hub id or a name of the models' table.
    """
    model, batch = models.find(name), effort.concurrency
    weights = (model.weights if model is not None else None) or name
    check_takes(requests)
    known = {} if model is None else {"dtype": model.dtype, "max_model_len": model.max_model_len}
    options = {option: value for option, value in known.items() if value is not None}
    engine = partial(VLLMTransport, weights, batch=batch, **options)
    engines = effort.gpus if effort.workers.engine == "ray" else 1
    names = [f"vllm in process: {weights}"] * engines

    def wire(ray: Any) -> Transport:
        if ray is None:
            return engine()
        return LoadBalancer(on_actors(ray, [engine] * engines, concurrency=2 * batch, gpus=gpus_each), names)

    spec = Endpoint(name, reasoning=False)
    # Twice as many as an engine takes at once: the next batch waits while it is at one.
    return _client(wire, spec, ", ".join(names), requests, effort, batch * engines, waiting=2)


@asynccontextmanager
async def _client(
    wire: Callable[..., Transport],
    spec: Endpoint,
    address: str,
    requests: RequestSettings,
    effort: Effort,
    at_once: int,
    *,
    waiting: int = 1,
    backoff_s: float = 0.5,
) -> AsyncIterator[Opened]:
    """A model behind what `wire` opens, which gets the module `ray` or None; `waiting`: times `at_once`
    requests are sent."""
    with parallel.on_ray(effort.workers) as ray:
        async with Client(
            spec,
            wire=wire(ray=ray),
            concurrency=waiting * at_once,
            max_retries=effort.max_retries,
            backoff_s=backoff_s,
            max_cost=requests.max_cost,
            price=requests.price,
            system_as_user=requests.system_as_user,
        ) as client:
            yield Opened(ModelSpeaker(client, requests), at_once, client.stats, address, requests)
