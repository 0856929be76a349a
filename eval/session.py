"""One start of `rbtc eval` on a run folder: opens the journal and whoever answers, asks, leaves the files."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType

from robustbench_tc import __version__
from robustbench_tc.compute import loop
from robustbench_tc.llm import Store
from robustbench_tc.llm.store import read_lines
from robustbench_tc.schema import LiveRow, Sample
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from . import growth, predictions
from .data import Selection
from .dialogue import Dialogue
from .first_replies import Asked, FirstReplies
from .inputs import Dataset
from .journal import Journal
from .live import episodes
from .live.inputs import LiveData
from .live.stage import Stage
from .live.world_env import World
from .opening import Opening
from .prompts import OURS, Prompts, wording
from .record import RunFolder, Session, Settings
from .run import Progress, Runner, Sharing
from .scripted import Results, Scripted
from .speakers import ModelSpeaker


def spent(journal: Store, price: tuple[float, float] | None) -> float:
    """What the journal's answers cost, reused and shared ones left out; failed and lost requests are in no
    journal."""
    if price is None:
        return 0.0
    whole = 0.0
    for _, line in read_lines(journal.path):
        if not line.get("reused") and not line.get("shared"):
            whole += (line.get("prompt_tokens") or 0) * price[0]
            whole += (line.get("completion_tokens") or 0) * price[1]
    return whole / 1e6


def run(
    folder: RunFolder,
    data: Dataset | LiveData,
    opening: Opening,
    *,
    selection: Selection | None = None,
    words: Prompts = OURS,
    worlds: Mapping[str, WorldType] = MappingProxyType({}),
    first: Asked | None = None,
    before: Callable[[ModelSpeaker], Awaitable[None]] | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Asks what is not answered yet. Whatever happens, run.json and predictions.parquet, or episodes.parquet,
    say how far it got.

    `selection`: what is asked of the run's rows, by default the first that it was begun with. `words`: of
    prompt mode; `worlds`: by the name that live rows have; `first`: whose first replies may stop the session
    (`first_replies`); `before`: what is asked before any row.
    Raises UserError where it cannot go on; the folder is then good for another start.
    """
    started, settings, record = time.monotonic(), folder.record.settings, folder.record
    selection = selection or settings.selection
    rows: Sequence[Sample | LiveRow] = data.select(selection)
    made = Session(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        package_version=__version__,
        selection=selection,
        repeat=settings.repeat,
    )
    results = data.results if isinstance(data, Dataset) else {}
    is_live = isinstance(data, LiveData)
    dialogues = (
        begin(row, settings, repeat, results.get(row.clean_id, {}), words)
        for repeat in range(settings.repeat)
        for row in sample_by_sample(rows)
    )

    async def ask() -> Progress:
        async with opening as opened, Worlds() as hosted:
            stats, price = opened.stats, opened.requests.price
            made.endpoint, made.headers = opened.address, opened.requests.header_digests
            made.concurrency = opened.at_once
            folder.save()
            # A limit of cost is one of the run: what earlier sessions spent counts.
            earlier = stats.cost = spent(journal, price)
            model = opened.speaker if isinstance(opened.speaker, ModelSpeaker) else None

            def tell(state: Progress) -> None:
                state.cost = stats.cost
                made.requests, made.shared = state.asked, state.shared
                progress(state)

            runner = Runner(
                journal,
                opened.speaker,
                workers=2 * opened.at_once,
                unwritten=opened.at_once if is_live else None,
                stage=partial(_stage, hosted, worlds) if is_live else None,
                sharing=Sharing(journal, stats) if settings.shares and model is not None else None,
                first=first and FirstReplies(first, settings, journal, data.by_id),
                progress=tell,
            )
            try:
                if before is not None and model is not None:
                    await before(model)
                return await runner.run(dialogues, len(rows) * settings.repeat)
            finally:
                record.served_models = sorted({*record.served_models, *runner.served_models})
                made.requests = stats.requests or made.requests  # in this process no client counts
                made.retries = stats.retries
                made.errors, made.left_out = dict(stats.errors), list(stats.left_out)
                made.retried = dict(stats.retried)
                if price is not None:
                    made.cost = round(stats.cost - earlier, 9)

    samples = (row for row in rows if isinstance(row, Sample))
    if said := next(filter(None, map(wording, samples)), None):
        record.open_wording = said
    with folder.journal() as journal:
        record.sessions.append(made)
        try:
            return loop.run(ask())
        finally:
            made.seconds = round(time.monotonic() - started, 3)
            leave(folder, journal, data)


def begin(
    row: Sample | LiveRow,
    settings: Settings,
    repeat: int = 0,
    results: Results = MappingProxyType({}),
    words: Prompts = OURS,
) -> Dialogue:
    """A row before its first request. `results`: what the tools of own cases answer; `words`: of prompt
    mode."""
    env = World(row, settings) if isinstance(row, LiveRow) else Scripted(row, settings, results, words)
    return Dialogue(env, settings, repeat)


def sample_by_sample(rows: Iterable[Sample | LiveRow]) -> list[Sample | LiveRow]:
    """The rows with all types of a sample together, so that a server's prefix cache has what they share."""
    samples: dict[str, list[Sample | LiveRow]] = {}
    for row in rows:
        samples.setdefault(row.clean_id, []).append(row)
    return [row for sample in samples.values() for row in sample]


def _stage(hosted: Worlds, worlds: Mapping[str, WorldType], dialogue: Dialogue) -> Stage:
    assert isinstance(dialogue.env.row, LiveRow)
    return Stage(dialogue.env.row, hosted, worlds[dialogue.env.row.world])


def take_back(folder: RunFolder, data: Dataset | LiveData) -> None:
    """Makes a run that was to grow what it was before: for a session that got no answer."""
    record, before = folder.record, folder.before
    if before is not None:
        record.settings, record.also, record.expected = before.settings, before.also, before.expected
        with folder.journal() as journal:
            leave(folder, journal, data)


def leave(folder: RunFolder, journal: Journal, data: Dataset | LiveData) -> None:
    """Writes what the journal has all answers of, as predictions or episodes, and totals."""
    settings, rows = folder.record.settings, growth.rows(data, folder.record.selections)
    if isinstance(data, LiveData):
        episodes.leave(folder, episodes.of(journal, rows, settings))
    else:
        predictions.leave(folder, predictions.of(journal, rows, data.hashes, settings))
