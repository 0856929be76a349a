"""One episode of a live run, played again for a person. The model is not needed."""

from collections.abc import Sequence
from pathlib import Path

from robustbench_tc.compute import loop
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Worlds

from ..record import open_run
from ..verdicts import live_data_of
from . import inputs
from .episodes import check, read as read_episodes
from .replay import Replay, replayed
from .show import Shown, find, shown


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
    folder = open_run(Path(run))
    data = live_data_of(folder, dataset)
    played = find(read_episodes(folder.path), episode, repeat, run)
    rows = data.by_id
    check(folder, rows, [played])
    row = rows[played.id]
    world: WorldType = inputs.world_types([row], worlds, world_python)[row.world]

    async def replay() -> Replay:
        async with Worlds() as hosted:
            return await replayed(row, played, hosted, world=world)

    return shown(loop.run(replay()))
