"""A live run looked at again: its dataset's rows, its scores, one episode. The model is not needed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from robustbench_tc.compute import loop
from robustbench_tc.errors import UserError
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from ..record import RunFolder, open_run
from . import inputs, unedited
from .inputs import LiveData
from .record import read_episodes
from .replay import Replay, replayed
from .score import LiveScore, score_run
from .show import Shown, find, shown


def opened(run: str | Path, dataset: str | None = None) -> tuple[RunFolder, LiveData]:
    """A run and the dataset that it played, or another place of the same. Raises UserError."""
    folder = open_run(Path(run))
    data = inputs.load(dataset or folder.record.dataset, revision=folder.record.dataset_revision)
    if data.fingerprint() != folder.record.settings.fingerprint:
        raise UserError(
            f"{data.name} is not what {run} was played with: build that again, or name its place with "
            "--dataset"
        )
    return folder, data


def score(folder: RunFolder, data: LiveData, kinds: Mapping[str, WorldType]) -> list[LiveScore]:
    """Replays every episode of a live run, without the model, and writes its `scores.parquet`.

    `kinds`: the world of each name that rows have. Raises UserError.
    """
    folder.claim(folder.scores_path)
    unedited.check_all(folder, data.by_id)
    return score_run(folder.path, data.by_id, world_of=kinds.__getitem__)


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
    folder, data = opened(run, dataset)
    played = find(read_episodes(folder.path), episode, repeat, run)
    rows = data.by_id
    unedited.check(folder, rows, [played])
    row = rows[played.id]
    world: WorldType = inputs.world_types([row], worlds, world_python)[row.world]

    async def replay() -> Replay:
        async with Worlds() as hosted:
            return await replayed(row, played, hosted, world=world)

    return shown(loop.run(replay()))
