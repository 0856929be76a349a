"""One start of `rbtc eval` on a run folder: takes what other runs have (`--reuse`), opens the journal and
whoever answers, asks, leaves the files."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from robustbench_tc import __version__
from robustbench_tc.compute import loop
from robustbench_tc.errors import UserError
from robustbench_tc.llm import Stats, Store
from robustbench_tc.llm.store import read_lines
from robustbench_tc.schema import Json, LiveRow, Sample
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from . import growth, predictions, probe
from .data import Selection
from .dialogue import begin
from .inputs import Dataset
from .journal import Journal, Lines, finished, replay, taken
from .live import episodes
from .live.inputs import LiveData
from .live.world_env import World
from .prompts import OURS, Prompts, wording
from .record import RunFolder, Session, Settings, open_run
from .run import Asked, Progress, Runner, Sharing, Watch, has_worked
from .scripted import Scripted
from .speakers import ModelSpeaker
from .who import Opening


def spent(journal: Store, price: tuple[float, float] | None) -> float:
    """What the journal's answers cost, reused and shared ones left out; failed and lost requests are in no
    journal."""
    if price is None:
        return 0.0
    asked, said = price
    lines = (one for _, one in read_lines(journal.path) if not one.get("reused") and not one.get("shared"))
    tokens = ((one.get("prompt_tokens") or 0, one.get("completion_tokens") or 0) for one in lines)
    return sum(sent * asked + got * said for sent, got in tokens) / 1e6


def run(
    folder: RunFolder,
    data: Dataset | LiveData,
    opening: Opening,
    *,
    selection: Selection | None = None,
    words: Prompts = OURS,
    worlds: Mapping[str, WorldType] = MappingProxyType({}),
    first: Asked | None = None,
    ask_first: bool = False,
    say: Callable[[str], None] = lambda _: None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Asks what is not answered yet. Whatever happens, run.json and predictions.parquet, or episodes.parquet,
    say how far it got.

    `selection`: what is asked of the run's rows, by default the first that it was begun with. `words`: of
    prompt mode; `worlds`: by the name that live rows have; `first`: whose first replies may stop the session
    (`run.Watch`); `ask_first`: whether a server is asked the first
    questions of `rbtc probe` before any row, once a run; `say` gets what fails.
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
            worked = first is not None and has_worked(first, settings, journal, data.by_id)
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
                worlds=hosted,
                kinds=worlds,
                sharing=Sharing(journal, stats) if settings.shares and model is not None else None,
                watch=Watch(2 * opened.at_once, first, worked=worked),
                progress=tell,
            )
            try:
                if ask_first and model is not None and not is_live and record.probed is None:
                    record.probed = await probe.first(model, settings.model, settings.mode)
                    folder.save()
                    for one in probe.failed(record.probed):
                        say(one.line)
                return await runner.run(dialogues, len(rows) * settings.repeat)
            finally:
                record.served_models = sorted({*record.served_models, *runner.served_models})
                stats.requests = stats.requests or made.requests  # in this process no client counts
                stats.cost = round(stats.cost - earlier, 9)
                for name in Stats.__struct_fields__:
                    setattr(made, name, getattr(stats, name))

    with folder.journal() as journal:
        record.sessions.append(made)
        try:
            return loop.run(ask())
        finally:
            made.seconds = round(time.monotonic() - started, 3)
            leave(folder, journal, data)


def sample_by_sample(rows: Sequence[Sample | LiveRow]) -> list[Sample | LiveRow]:
    """The rows with all types of a sample together, so that a server's prefix cache has what they share."""
    places = {clean_id: at for at, clean_id in enumerate(dict.fromkeys(row.clean_id for row in rows))}
    return sorted(rows, key=lambda row: places[row.clean_id])


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
    samples = (row for row in rows if isinstance(row, Sample))
    if said := next(filter(None, map(wording, samples)), None):
        folder.record.open_wording = said
    done = finished(journal, rows, settings)
    if isinstance(data, LiveData):
        episodes.leave(folder, (one.env.episode(one.repeat) for one in done if isinstance(one.env, World)))
    else:
        predictions.leave(
            folder,
            (
                predictions.combine(
                    one.env.row,
                    data.hashes[one.env.row.id],
                    settings,
                    *one.env.answers,
                    noticed=one.env.noticed,
                )
                for one in done
                if isinstance(one.env, Scripted)
            ),
        )


# --- answers of other runs ----------------------------------------------------------------------------


SAID = ("text", "tool_calls", "results")
"""What two lines of equal dialogues have in common."""


def check_reuse(runs: Sequence[Path], settings: Settings, out: Path) -> None:
    """UserError for a folder whose answers cannot be taken: no run, other settings, the run itself."""
    for path in runs:
        if path.resolve() == out.resolve():
            raise UserError(f"--reuse {path} is the run itself, which the command resumes anyway")
        folder = open_run(path)
        if found := growth.answers_differ(folder.record.settings, settings):
            raise UserError(f"--reuse {path}: its answers were made with other settings: {'; '.join(found)}")
        if not folder.journal_path.is_file():
            raise UserError(f"--reuse {path}: it has no journal.jsonl to take answers from")


def reuse(folder: RunFolder, data: Dataset | LiveData, selection: Selection, runs: Sequence[Path]) -> None:
    """Puts answers of `runs` that `folder` is to ask for into its journal; the other runs stay as they are.

    An answer is taken under its key: equal model, mode, decoding, prompts and what the row asks, in whatever
    version of the dataset and whatever is right there; with the calls of a live row goes what came of them.
    Recorded failures are not answers. What was taken, and how many rows are left to ask, is counted in the
    record and in the folder's notes.
    """
    if not runs:
        return
    settings, record, rows = folder.record.settings, folder.record, data.select(selection)
    with folder.journal() as journal:
        ours = Lines(journal.path)
        for path in runs:
            theirs = Lines(open_run(path).journal_path)
            new: dict[str, dict[str, Json]] = {}
            for row in rows:
                for repeat in range(settings.repeat):
                    for key in taken(theirs, begin(row, settings, repeat)):
                        if key not in ours:
                            new[key] = theirs[key] | {"id": row.id, "reused": True}
                        elif any(ours[key].get(one) != theirs[key].get(one) for one in SAID):
                            break  # what follows is of another dialogue
            journal.extend(new)
            ours.update(new)
            answers = sum("results" not in line for line in new.values())
            record.reused[str(path)] = record.reused.get(str(path), 0) + answers
            folder.notes.append(f"reused {answers} answers of {path}")
        left = sum(
            not all(replay(ours, begin(row, settings, repeat)) for repeat in range(settings.repeat))
            for row in rows
        )
        folder.notes.append(f"{left} of {len(rows)} rows are left to ask")
    folder.save()
