"""One start of `rbtc eval` on a run folder: opens the journal and a backend, asks, and leaves the files."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from robustbench_tc import __version__
from robustbench_tc.compute import parallel
from robustbench_tc.compute.parallel import SERIAL, Workers
from robustbench_tc.llm import (
    Client,
    Endpoint,
    NativeTransport,
    Provider,
    Stats,
    Store,
    Transport,
    over_http,
)
from robustbench_tc.llm.batch import BatchTransport
from robustbench_tc.llm.ray import over_ray
from robustbench_tc.schema import Json, Sample

from . import predictions
from .backends.batch import BatchBackend
from .backends.endpoint import EndpointBackend
from .backends.vllm import VLLMTransport, check_takes
from .inputs import Selection
from .models import Model
from .passes import Results
from .prompts import OURS, Prompts, wording
from .record import BATCHES, RunFolder, Session
from .request_settings import RequestSettings
from .run import Backend, Harness, Progress


class Opened(NamedTuple):
    """A backend that is ready to be asked."""

    backend: Backend
    address: str
    """For the run record; never holds a key."""
    stats: Stats
    """Filled while the backend is asked."""
    requests: RequestSettings
    batches: Sequence[str] = ()
    """Names of the batches that were worked with; grows."""


OpenBackend = Callable[[], AbstractAsyncContextManager[Opened]]


def endpoint(
    spec: Endpoint,
    requests: RequestSettings | dict[str, Json],
    *,
    also: Sequence[Endpoint] = (),
    concurrency: int,
    timeout_s: float = 300.0,
    max_retries: int = 6,
    backoff_s: float = 0.5,
    workers: Workers = SERIAL,
) -> OpenBackend:
    """An OpenAI-compatible endpoint. `also`: further addresses of the model, which share its requests.

    `requests`: decoding alone, or all of what was said about requests.
    """
    asked = _settings(requests)
    specs = [one.resolved() for one in (spec, *also)]

    @asynccontextmanager
    async def opened() -> AsyncIterator[Opened]:
        with parallel.on_ray(workers) as ray:
            async with Client(
                specs[0],
                concurrency=concurrency,
                max_retries=max_retries,
                backoff_s=backoff_s,
                max_cost=asked.max_cost,
                price=asked.price,
                wire=over_http(specs, timeout_s, ray=ray, concurrency=concurrency),
            ) as client:
                backend = EndpointBackend(client, asked.decoding, asked.system)
                yield Opened(backend, ", ".join(map(str, specs)), client.stats, asked)

    return opened


def batch(
    spec: Endpoint,
    requests: RequestSettings,
    *,
    folder: Path,
    at_once: int,
    timeout_s: float = 300.0,
    note: Callable[[str], None] = lambda line: None,
) -> OpenBackend:
    """The Batch API of an OpenAI-compatible server; `folder` keeps which batches were made.

    `at_once`: the most requests that can wait for a batch. What a batch has no answer to is asked again by
    the next session, not by this one.
    """
    resolved = spec.resolved()

    @asynccontextmanager
    async def opened() -> AsyncIterator[Opened]:
        with Store(folder / BATCHES) as book:
            wire = BatchTransport(resolved, book, timeout_s=timeout_s, note=note)
            async with Client(
                resolved,
                concurrency=at_once,
                max_retries=0,
                max_cost=requests.max_cost,
                price=requests.price,
                wire=wire,
            ) as client:
                backend = BatchBackend(client, requests.decoding, requests.system)
                yield Opened(backend, str(resolved), client.stats, requests, wire.made)

    return opened


def native(
    provider: Provider,
    spec: Endpoint,
    requests: RequestSettings,
    *,
    concurrency: int,
    timeout_s: float = 300.0,
    max_retries: int = 6,
    backoff_s: float = 0.5,
) -> OpenBackend:
    """A model of Anthropic's or Google's own API; `spec` is `llm.native_endpoint`'s."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Opened]:
        async with Client(
            spec,
            concurrency=concurrency,
            max_retries=max_retries,
            backoff_s=backoff_s,
            max_cost=requests.max_cost,
            price=requests.price,
            wire=NativeTransport(provider, spec, timeout_s),
        ) as client:
            backend = EndpointBackend(client, requests.decoding, requests.system)
            yield Opened(backend, f"{provider}:{spec}", client.stats, requests)

    return opened


def vllm(
    model: Model | None,
    name: str,
    requests: RequestSettings | dict[str, Json],
    *,
    batch: int,
    workers: Workers = SERIAL,
    engines: int = 1,
    gpus: float = 1,
) -> OpenBackend:
    """vLLM in this process, or on Ray so many engines with so many GPUs each.

    `name` is a folder, a Hub id or a name of the models' table.
    """
    weights = (model.weights if model is not None else None) or name
    asked = _settings(requests)
    check_takes(asked)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Opened]:
        engine = partial(
            VLLMTransport,
            weights,
            batch=batch,
            dtype=model.dtype if model is not None else None,
            max_model_len=model.max_model_len if model is not None else None,
        )
        with parallel.on_ray(workers) as ray:
            names = [f"vllm in process: {weights}"] * (1 if ray is None else engines)
            wire: Transport
            if ray is None:
                wire = engine()
            else:
                wire = over_ray(ray, [engine] * engines, names, concurrency=2 * batch, gpus=gpus)
            # Twice as many as an engine takes at once: the next batch waits while it is at one.
            async with Client(
                Endpoint(name, reasoning=False),
                concurrency=2 * batch * len(names),
                max_cost=asked.max_cost,
                price=asked.price,
                wire=wire,
            ) as client:
                backend = EndpointBackend(client, asked.decoding, asked.system)
                yield Opened(backend, ", ".join(names), client.stats, asked)

    return opened


def _settings(requests: RequestSettings | dict[str, Json]) -> RequestSettings:
    return requests if isinstance(requests, RequestSettings) else RequestSettings(decoding=requests)


def spent(journal: Store, price: tuple[float, float] | None) -> float:
    """What the journal's answers cost, reused ones left out; failed and lost requests are in no journal."""
    if price is None:
        return 0.0
    tokens = [0, 0]
    for key in list(journal.keys()):
        line = journal.get(key) or {}
        if line.get("reused"):
            continue
        tokens[0] += line.get("prompt_tokens") or 0
        tokens[1] += line.get("completion_tokens") or 0
    return (tokens[0] * price[0] + tokens[1] * price[1]) / 1e6


def run(
    folder: RunFolder,
    rows: Sequence[Sample],
    hashes: dict[str, str],
    open_backend: OpenBackend,
    *,
    concurrency: int,
    every: Sequence[Sample] | None = None,
    selection: Selection | None = None,
    results: Mapping[str, Results] | None = None,
    words: Prompts = OURS,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Asks what is not answered yet. Whatever happens, run.json and predictions.parquet say how far it got.

    `every`: all rows of the run, where `rows`, those to ask, are only a part of them. `selection`: what was
    asked for, for the record. `results`: by clean id what the tools of own cases answer; `words`: of
    prompt mode. Raises UserError where it cannot go on; the folder is then good for another start.
    """
    settings, record = folder.record.settings, folder.record
    started = time.monotonic()
    made = Session(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        endpoint="",
        package_version=__version__,
        concurrency=concurrency,
        selection=selection,
        repeat=settings.repeat,
    )
    served = set(record.served_models)

    async def ask() -> Progress:
        async with open_backend() as opened:
            made.endpoint, made.headers = opened.address, opened.requests.header_digests
            # A limit of cost is one of the run: what earlier sessions spent counts.
            earlier = opened.stats.cost = spent(journal, opened.requests.price)

            def tell(state: Progress) -> None:
                state.cost = opened.stats.cost
                progress(state)

            harness = Harness(
                settings,
                hashes,
                journal,
                opened.backend,
                workers=2 * concurrency,
                results=results,
                words=words,
                progress=tell,
            )
            try:
                return await harness.run(rows)
            finally:
                served.update(harness.served_models)
                made.requests, made.retries = opened.stats.requests, opened.stats.retries
                made.batches = list(opened.batches)
                made.errors, made.left_out = dict(opened.stats.errors), list(opened.stats.left_out)
                made.retried = dict(opened.stats.retried)
                if opened.requests.price is not None:
                    made.cost = round(opened.stats.cost - earlier, 9)

    if said := next(filter(None, map(wording, rows)), None):
        record.open_wording = said
    with folder.journal() as journal:
        record.sessions.append(made)
        folder.save()
        try:
            return asyncio.run(ask())
        finally:
            made.seconds = round(time.monotonic() - started, 3)
            record.served_models = sorted(served)
            _leave(folder, journal, rows if every is None else every, hashes)


def take_back(folder: RunFolder, rows: Sequence[Sample], hashes: dict[str, str]) -> None:
    """Makes a run that was to grow what it was before, with `rows`: for a session that got no answer."""
    record, before = folder.record, folder.before
    if before is not None:
        record.settings, record.also, record.expected = before.settings, before.also, before.expected
        with folder.journal() as journal:
            _leave(folder, journal, rows, hashes)


def _leave(folder: RunFolder, journal: Store, rows: Sequence[Sample], hashes: dict[str, str]) -> None:
    found = list(predictions.of(journal, rows, hashes, folder.record.settings))
    predictions.write(folder.predictions_path, found)
    folder.record.totals = predictions.totals(found)
    folder.save()
