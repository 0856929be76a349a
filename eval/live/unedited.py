"""Whether a run's episodes are what its journal says: figures are made of nothing that was edited afterwards.

A replay notices other calls and results; the texts, the tokens and how an episode ended stand in no world.
"""

import os
from collections.abc import Iterable, Mapping

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Episode, LiveRow

from ..record import EPISODES, JOURNAL, RunFolder
from . import prompts
from .episodes import kept
from .record import read_episodes


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
        wanted = [(name, getattr(row, name)) for name in ("clean_id", "type_code", "world")]
        wanted += [("model", settings.model), ("mode", settings.mode)]
        for name, value in wanted:
            if getattr(one, name) != value:
                raise _differs(folder, one, name)
        if not 0 <= one.repeat < settings.repeat:
            raise _differs(folder, one, "repeat")
    if settings.prompt_version != prompts.version() or not os.access(path, os.R_OK | os.W_OK):
        return
    with folder.journal() as journal:
        for one in found:
            try:
                played = kept(journal, rows[one.id], settings, one.repeat)
            except (ValueError, AssertionError) as error:
                raise UserError(f"{path} is damaged at {one.id}: {str(error)[:200]}") from None
            if played is None:
                raise _differs(folder, one, "its end")
            if played != one:
                names = Episode.__struct_fields__
                first = next(name for name in names if getattr(one, name) != getattr(played, name))
                raise _differs(folder, one, first)


def _differs(folder: RunFolder, one: Episode, what: str) -> UserError:
    return UserError(
        f"{folder.path / EPISODES}: {one.id[:200]}, repeat {one.repeat}, is not as the run's journal and "
        f"record have it ({what}): the command of the run writes it again from the journal"
    )
