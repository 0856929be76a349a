"""One start of `rbtc live run` on its folder: opens the journal, the worlds and whoever acts, and plays.

Whatever happens, the record and `episodes.parquet` say how far it got, and the same command goes on.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from robustbench_tc import __version__
from robustbench_tc.compute import loop
from robustbench_tc.errors import UserError
from robustbench_tc.llm import Store
from robustbench_tc.schema import Episode, LiveRow
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from ..inputs import Selection
from ..record import RunFolder, Session
from ..run import Progress
from ..session import OpenBackend, spent
from .episode import Place, Speaker, kept, play
from .record import leave
from .speakers import ModelSpeaker


class Acting(NamedTuple):
    """Whoever acts in the episodes of a session, ready to be asked."""

    speaker: Speaker
    note: Callable[[Session], None] = lambda session: None
    """Writes into the session what it came to."""
    cost: Callable[[], float] = lambda: 0.0
    served_models: Callable[[], set[str]] = lambda: set()


Cast = Callable[[Store], AbstractAsyncContextManager[Acting]]
"""Opens whoever acts; is given the journal, whose answers were paid for."""


def model(open_backend: OpenBackend, workers: int) -> Cast:
    """A model behind a backend of `session`."""

    @asynccontextmanager
    async def opened(journal: Store) -> AsyncIterator[Acting]:
        async with open_backend() as backend:
            # A limit of cost is one of the run: what earlier sessions spent counts.
            earlier = backend.stats.cost = spent(journal, backend.requests.price)
            speaker = ModelSpeaker(backend.backend, workers)

            def note(session: Session) -> None:
                stats = backend.stats
                session.endpoint, session.headers = backend.address, backend.requests.header_digests
                session.requests, session.retries = stats.requests, stats.retries
                session.errors, session.retried = dict(stats.errors), dict(stats.retried)
                session.left_out = list(stats.left_out)
                if backend.requests.price is not None:
                    session.cost = round(stats.cost - earlier, 9)

            yield Acting(speaker, note, lambda: backend.stats.cost, lambda: speaker.served_models)

    return opened


def scripted(speaker: Speaker) -> Cast:
    """An agent in this process."""

    @asynccontextmanager
    async def opened(journal: Store) -> AsyncIterator[Acting]:
        yield Acting(speaker)

    return opened


def run(
    folder: RunFolder,
    rows: Sequence[LiveRow],
    cast: Cast,
    types: Mapping[str, WorldType],
    *,
    concurrency: int,
    every: Sequence[LiveRow] | None = None,
    selection: Selection | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Plays every episode that has not ended yet. `types`: the world of each name in `rows`.

    `every`: all rows of the run, where `rows`, those to play, are only a part of them. `selection`: what was
    asked for, for the record.
    At most `2 * concurrency` episodes are in hand; the backend bounds the requests under way. Raises
    UserError where it cannot go on; the folder is then good for another start.
    """
    record = folder.record
    started = time.monotonic()
    made = Session(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        endpoint="",
        package_version=__version__,
        concurrency=concurrency,
        selection=selection,
        repeat=record.settings.repeat,
    )
    places = [Place.of(row, record.settings, n) for n in range(record.settings.repeat) for row in rows]
    whole = [
        Place.of(row, record.settings, n) for n in range(record.settings.repeat) for row in every or rows
    ]
    state = Progress(len(places))
    served: set[str] = set(record.served_models)

    async def session() -> None:
        async with cast(journal) as acting, Worlds() as worlds:

            def moved() -> None:
                state.cost = acting.cost()
                progress(state)

            moved()
            try:
                await _play_all(places, journal, acting.speaker, worlds, types, concurrency, state, moved)
            finally:
                served.update(acting.served_models())
                acting.note(made)

    with folder.journal() as journal:
        record.sessions.append(made)
        folder.save()
        try:
            loop.run(session())
        finally:
            made.seconds = round(time.monotonic() - started, 3)
            record.served_models = sorted(served)
            leave(folder, finished(whole, journal))
    return state


def finished(places: Sequence[Place], journal: Store) -> Iterator[Episode]:
    """The episodes that the journal has to their end: rows in order, repeats of a row together."""
    order = {place.row.id: at for at, place in reversed(list(enumerate(places)))}
    for place in sorted(places, key=lambda one: (order[one.row.id], one.repeat)):
        if (found := kept(place, journal)) is not None:
            yield found


async def _play_all(
    places: Sequence[Place],
    journal: Store,
    speaker: Speaker,
    worlds: Worlds,
    types: Mapping[str, WorldType],
    concurrency: int,
    state: Progress,
    moved: Callable[[], None],
) -> None:
    todo, asking = iter(places), asyncio.Semaphore(concurrency)

    async def work() -> None:
        for place in todo:
            episode, asked = await play(place, journal, speaker, worlds, types[place.row.world], asking)
            state.done += 1
            state.kept += not asked
            state.request_errors += episode.ended == "request_error"
            moved()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(2 * concurrency, len(places))):
                group.create_task(work())
    except* UserError as errors:
        raise errors.exceptions[0] from None
