"""One start of `rbtc eval` on a run folder: opens the journal and a backend, asks, and leaves the files."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from robustbench_tc import __version__
from robustbench_tc.compute import loop, parallel
from robustbench_tc.compute.parallel import SERIAL, Workers
from robustbench_tc.llm import Client, Endpoint, LoadBalancer, Stats, Store, Transport, over_http
from robustbench_tc.llm.ray import on_actors
from robustbench_tc.schema import Sample

from . import predictions
from .backends.endpoint import EndpointBackend
from .backends.vllm import VLLMTransport, check_takes
from .first_replies import Asked, FirstReplies
from .inputs import Selection
from .models import Model
from .passes import Results
from .prompts import OURS, Prompts, wording
from .record import RunFolder, Session
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


OpenBackend = Callable[[], AbstractAsyncContextManager[Opened]]


def endpoint(
    spec: Endpoint,
    requests: RequestSettings,
    *,
    also: Sequence[Endpoint] = (),
    concurrency: int,
    timeout_s: float = 300.0,
    max_retries: int = 6,
    backoff_s: float = 0.5,
    workers: Workers = SERIAL,
) -> OpenBackend:
    """A model at an address. `also`: further addresses of it, which share its requests."""
    specs = [one.resolved() for one in (spec, *also)]
    return _opening(
        lambda ray: over_http(specs, timeout_s, ray=ray, concurrency=concurrency),
        specs[0],
        ", ".join(map(str, specs)),
        requests,
        workers,
        concurrency=concurrency,
        max_retries=max_retries,
        backoff_s=backoff_s,
    )


def vllm(
    model: Model | None,
    name: str,
    requests: RequestSettings,
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
    check_takes(requests)
    known = {} if model is None else {"dtype": model.dtype, "max_model_len": model.max_model_len}
    options = {option: value for option, value in known.items() if value is not None}
    engine = partial(VLLMTransport, weights, batch=batch, **options)
    names = [f"vllm in process: {weights}"] * (engines if workers.engine == "ray" else 1)

    def wire(ray: Any) -> Transport:
        if ray is None:
            return engine()
        return LoadBalancer(on_actors(ray, [engine] * engines, concurrency=2 * batch, gpus=gpus), names)

    # Twice as many as an engine takes at once: the next batch waits while it is at one.
    return _opening(
        wire,
        Endpoint(name, reasoning=False),
        ", ".join(names),
        requests,
        workers,
        concurrency=2 * batch * len(names),
    )


def _opening(
    wire: Callable[[Any], Transport],
    spec: Endpoint,
    address: str,
    requests: RequestSettings,
    workers: Workers,
    **options: Any,
) -> OpenBackend:
    """A backend over what `wire` opens, which gets the module `ray` or None; `options` of the client."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Opened]:
        with parallel.on_ray(workers) as ray:
            async with Client(
                spec,
                wire=wire(ray),
                max_cost=requests.max_cost,
                price=requests.price,
                system_as_user=requests.system_as_user,
                **options,
            ) as client:
                backend = EndpointBackend(client, requests.decoding, requests.system)
                yield Opened(backend, address, client.stats, requests)

    return opened


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
    first: Asked | None = None,
    before: Callable[[Backend], Awaitable[None]] | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Asks what is not answered yet. Whatever happens, run.json and predictions.parquet say how far it got.

    `every`: all rows of the run, where `rows`, those to ask, are only a part of them. `selection`: what was
    asked for, for the record. `results`: by clean id what the tools of own cases answer; `words`: of
    prompt mode; `first`: whose first replies may stop the session (`first_replies`); `before`: what is asked
    before any row.
    Raises UserError where it cannot go on; the folder is then good for another start.
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
    every = rows if every is None else every

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
                journal,
                opened.backend,
                workers=2 * concurrency,
                results=results,
                words=words,
                first=first and FirstReplies(first, settings, journal, every),
                progress=tell,
            )
            try:
                if before is not None:
                    await before(opened.backend)
                return await harness.run(rows)
            finally:
                served.update(harness.served_models)
                made.requests, made.retries = opened.stats.requests, opened.stats.retries
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
            return loop.run(ask())
        finally:
            made.seconds = round(time.monotonic() - started, 3)
            record.served_models = sorted(served)
            _leave(folder, journal, every, hashes)


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
