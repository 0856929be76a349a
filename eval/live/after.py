"""A live run looked at again: its dataset's rows, its scores, one episode. The model is not needed."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from robustbench_tc.errors import UserError
from robustbench_tc.io import folders
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from ..evaluate import check_thread
from . import inputs, record, unedited
from .inputs import LiveData
from .record import LiveFolder
from .replay import Replay, replayed
from .score import LiveScore, read_scores, score_run
from .show import Shown, find, shown


class PlayedRun(NamedTuple):
    """A scored live run."""

    path: str
    defences: tuple[str, ...]
    who: tuple[str, str, str]
    """Dataset fingerprint, model and mode."""
    scores: Sequence[LiveScore]
    totals: Mapping[str, Any]
    """Of its record."""


def opened(run: str | Path, dataset: str | None = None) -> tuple[LiveFolder, LiveData]:
    """A run and the dataset that it played, or another place of the same. Raises UserError."""
    folder = record.open_run(Path(run))
    data = inputs.load(dataset or folder.record.dataset, revision=folder.record.dataset_revision)
    if data.fingerprint() != folder.record.settings.fingerprint:
        raise UserError(
            f"{data.name} is not what {run} was played with: build that again, or name its place with "
            "--dataset"
        )
    return folder, data


def played_run(run: str | Path) -> PlayedRun:
    """A scored live run with what it cost. Raises UserError."""
    folder = record.open_run(Path(run))
    settings = folder.record.settings
    return PlayedRun(
        path=str(run),
        defences=settings.defend,
        who=(settings.fingerprint, settings.model, settings.mode),
        scores=read_scores(folder.path),
        totals=folder.record.totals,
    )


def score_live(
    run: str | Path,
    *,
    dataset: str | None = None,
    worlds: Sequence[str] = (),
    world_python: str | None = None,
) -> list[LiveScore]:
    """Replays every episode of a live run, without the model, and writes its `scores.parquet`.

    `dataset`: where the run's dataset lies now, if it was moved. Raises UserError.
    """
    check_thread()
    folder, data = opened(run, dataset)
    for name in (record.EPISODES, record.SCORES):
        folders.refuse_foreign(folder.path / name)
    types = inputs.world_types(data.rows, worlds, world_python)
    rows = data.by_id
    unedited.check_all(folder, rows)
    return score_run(folder.path, rows, world_of=types.__getitem__)


def show_episode(
    run: str | Path,
    episode: str,
    *,
    repeat: int = 0,
    dataset: str | None = None,
    worlds: Sequence[str] = (),
    world_python: str | None = None,
) -> Shown:
    """One episode of a live run with its world's changes. `episode`: a row id, or a unique beginning."""
    check_thread()
    folder, data = opened(run, dataset)
    played = find(folder.episodes(), episode, repeat)
    rows = data.by_id
    unedited.check(folder, rows, [played])
    row = rows[played.id]
    world: WorldType = inputs.world_types([row], worlds, world_python)[row.world]

    async def replay() -> Replay:
        async with Worlds() as hosted:
            return await replayed(row, played, hosted, world=world)

    return shown(asyncio.run(replay()))
