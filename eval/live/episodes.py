"""Episodes: what a journal's dialogues with live rows came to, as `episodes.parquet` has them."""

from collections.abc import Iterator, Sequence

from robustbench_tc.schema import Episode, LiveRow

from ..dialogue import Dialogue
from ..journal import Journal, replay
from ..record import Settings
from .world_env import World


def begin(row: LiveRow, settings: Settings, repeat: int = 0) -> Dialogue:
    """A live row before its first request."""
    return Dialogue(World(row, settings), settings, repeat)


def of(journal: Journal, rows: Sequence[LiveRow], settings: Settings) -> Iterator[Episode]:
    """The episodes that the journal has to their end: rows in order, repeats of a row together."""
    for row in rows:
        for repeat in range(settings.repeat):
            if (found := kept(journal, row, settings, repeat)) is not None:
                yield found


def kept(journal: Journal, row: LiveRow, settings: Settings, repeat: int) -> Episode | None:
    """An episode as far as the journal has it to its end; None where it is not finished. No world runs."""
    world = World(row, settings)
    return world.episode(repeat) if replay(journal, Dialogue(world, settings, repeat)) else None
