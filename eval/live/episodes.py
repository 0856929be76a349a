"""Episodes: what a journal's dialogues with live rows came to, as `episodes.parquet` has them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from robustbench_tc import schema
from robustbench_tc.errors import UserError
from robustbench_tc.io import parquet
from robustbench_tc.schema import Episode, LiveRow, arrow_schema

from ..dialogue import Dialogue
from ..journal import Journal, replay
from ..record import EPISODES, RunFolder, Settings
from .world_env import World

Row = TypeVar("Row", bound=msgspec.Struct)


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


def leave(folder: RunFolder, found: Iterable[Episode]) -> None:
    """Writes `episodes.parquet`, and the totals into the record."""
    episodes = list(found)
    arrow = arrow_schema(Episode)
    tables = (schema.arrow_table(batch, Episode) for batch in parquet.batches(episodes))
    parquet.write_file(tables, folder.answers_path, arrow, replace=True)
    replies = [reply for one in episodes for reply in one.replies]
    folder.record.totals = {
        "episodes": len(episodes),
        "ended": dict(sorted(Counter(one.ended for one in episodes).items())),
        "replies": len(replies),
        "requests": sum(reply.requests for reply in replies),
        "calls": sum(len(reply.steps) for reply in replies),
        "prompt_tokens": sum(reply.prompt_tokens or 0 for reply in replies),
        "completion_tokens": sum(reply.completion_tokens or 0 for reply in replies),
    }
    folder.save()


def read_episodes(folder: Path) -> list[Episode]:
    """The episodes of a run folder that ended. Raises UserError where there are none yet, or the file is
    damaged."""
    return read_table(folder / EPISODES, Episode, "`rbtc eval` goes on in it")


def read_table(path: Path, kind: type[Row], hint: str) -> list[Row]:
    """The rows of a file of a run. Raises UserError, with the hint where there is no such file."""
    if not path.is_file():
        raise UserError(f"{path.parent} has no {path.name}: {hint}")
    try:
        return [schema.record(row, kind) for row in parquet.read_rows([path])]
    except ValueError as error:
        raise UserError(f"{path} is damaged: {str(error)[:300]}") from None
