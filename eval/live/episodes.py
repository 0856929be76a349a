"""Episodes: what a journal's dialogues with live rows came to, as `episodes.parquet` has them.

Figures are made of none that was edited afterwards (`check_all`): a replay in a world notices other calls and
results, but the texts, the tokens and how an episode ended stand in no world.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from robustbench_tc import schema
from robustbench_tc.errors import UserError
from robustbench_tc.io import parquet
from robustbench_tc.schema import Episode, LiveRow, arrow_schema

from ..dialogue import Dialogue
from ..journal import Journal, replay
from ..record import EPISODES, JOURNAL, RunFolder, Settings
from . import prompts
from .world_env import World

Row = TypeVar("Row", bound=msgspec.Struct)


def finished_episode(journal: Journal, row: LiveRow, settings: Settings, repeat: int) -> Episode | None:
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
    return read_rows(folder / EPISODES, Episode, "`rbtc eval` goes on in it")


def read_rows(path: Path, kind: type[Row], hint: str) -> list[Row]:
    """The rows of a file of a run. Raises UserError, with the hint where there is no such file."""
    if not path.is_file():
        raise UserError(f"{path.parent} has no {path.name}: {hint}")
    try:
        return [schema.record(row, kind) for row in parquet.read_rows([path])]
    except ValueError as error:
        raise UserError(f"{path} is damaged: {str(error)[:300]}") from None


def check_all(folder: RunFolder, rows: Mapping[str, LiveRow]) -> None:
    """`check` of every episode of a run, each there once and none left out."""
    episodes = read_episodes(folder.path)
    if len({(one.id, one.repeat) for one in episodes}) != len(episodes):
        raise UserError(f"{folder.path / EPISODES}: an episode occurs twice")
    expected = folder.record.totals.get("episodes")
    if expected not in (None, len(episodes)):
        raise UserError(
            f"{folder.path / EPISODES} has {len(episodes)} episodes, and run.json counts {expected}: "
            "the command of the run writes both again"
        )
    check(folder, rows, episodes)


def check(folder: RunFolder, rows: Mapping[str, LiveRow], episodes: Iterable[Episode]) -> None:
    """UserError, one line, for the first episode that is not its row's or not the journal's.

    Without a journal that can be opened, or with one of other prompts, only the row is compared.
    """
    found = list(episodes)
    path, settings = folder.path / JOURNAL, folder.record.settings
    for one in found:
        if (row := rows.get(one.id)) is None:
            raise UserError(f"{one.id[:200]}: no row of the dataset has this id: give the dataset of the run")
        own = {name: getattr(row, name) for name in ("clean_id", "type_code", "world")}
        _compare(folder, one, replace(one, **own, model=settings.model, mode=settings.mode))
        if not 0 <= one.repeat < settings.repeat:
            raise _differs(folder, one, "repeat")
    if settings.prompt_version != prompts.version() or not os.access(path, os.R_OK | os.W_OK):
        return
    with folder.journal() as journal:
        for one in found:
            try:
                played = finished_episode(journal, rows[one.id], settings, one.repeat)
            except (ValueError, AssertionError) as error:
                raise UserError(f"{path} is damaged at {one.id}: {str(error)[:200]}") from None
            if played is None:
                raise _differs(folder, one, "its end")
            _compare(folder, one, played)


def _compare(folder: RunFolder, one: Episode, other: Episode) -> None:
    for name in Episode.__struct_fields__:
        if getattr(one, name) != getattr(other, name):
            raise _differs(folder, one, name)


def _differs(folder: RunFolder, one: Episode, what: str) -> UserError:
    return UserError(
        f"{folder.path / EPISODES}: {one.id[:200]}, repeat {one.repeat}, is not as the run's journal and "
        f"record have it ({what}): the command of the run writes it again from the journal"
    )
