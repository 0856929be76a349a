"""The folder of a live run: how it was asked, every answer and result as it came, and the episodes.

    runs/live/qwen3-8b-fc/
      live_run.json      settings, dataset, sessions, totals              (LiveRecord)
      journal.jsonl      one line per answer, one per reply's results     (Answer, Results)
      episodes.parquet   one row per (row, repeat) that ended             (live.Episode)
      scores.parquet     their scores                                     (`rbtc live score`)
      rbtc.json          names these files: what of the folder is ours    (`io.folders`)

The journal is the truth: episodes are made from it.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from robustbench_tc import schema
from robustbench_tc.errors import UserError
from robustbench_tc.io import parquet
from robustbench_tc.schema import Episode, Json, arrow_schema

from .. import growth
from ..record import FORMAT, SCORES, Folder, Session, Settings
from .inputs import LiveData

Row = TypeVar("Row", bound=msgspec.Struct)

RECORD = "live_run.json"
EPISODES = "episodes.parquet"


class LiveRecord(msgspec.Struct, kw_only=True):
    """`live_run.json`."""

    format: int = FORMAT
    dataset: str
    """Folder or Hub id, as loaded."""
    dataset_version: str | None = None
    dataset_revision: str | None = None
    settings: Settings
    expected: int
    """Episodes of a complete run."""
    sessions: list[Session] = []
    served_models: list[str] = []
    totals: dict[str, Json] = {}
    """Over the episodes that are there."""


class LiveFolder(Folder[LiveRecord]):
    """The files of one live run."""

    kind, what, command = "live-run", "live run", "rbtc live run"
    record_name, record_type, made = RECORD, LiveRecord, (EPISODES, SCORES)

    def episodes(self) -> list[Episode]:
        """As `read_episodes`."""
        return read_episodes(self.path)

    def leave(self, found: Iterable[Episode]) -> None:
        """Writes `episodes.parquet`, and the totals into the record."""
        episodes = list(found)
        arrow = arrow_schema(Episode)
        tables = (schema.arrow_table(batch, Episode) for batch in parquet.batches(episodes))
        parquet.write_file(tables, self.path / EPISODES, arrow, replace=True)
        replies = [reply for one in episodes for reply in one.replies]
        self.record.totals = {
            "episodes": len(episodes),
            "ended": dict(sorted(Counter(one.ended for one in episodes).items())),
            "replies": len(replies),
            "requests": sum(reply.requests for reply in replies),
            "calls": sum(len(reply.steps) for reply in replies),
            "prompt_tokens": sum(reply.prompt_tokens or 0 for reply in replies),
            "completion_tokens": sum(reply.completion_tokens or 0 for reply in replies),
        }
        self.save()


def read_episodes(folder: Path) -> list[Episode]:
    """The episodes of a run folder that ended. Raises UserError where there are none yet, or the file is
    damaged."""
    return read_table(folder / EPISODES, Episode, "`rbtc live run` goes on in it")


def read_table(path: Path, kind: type[Row], hint: str) -> list[Row]:
    """The rows of a file of a run. Raises UserError, with the hint where there is no such file."""
    if not path.is_file():
        raise UserError(f"{path.parent} has no {path.name}: {hint}")
    try:
        return [schema.record(row, kind) for row in parquet.read_rows([path])]
    except ValueError as error:
        raise UserError(f"{path} is damaged: {str(error)[:300]}") from None


def start(path: Path, data: LiveData, settings: Settings, expected: int) -> LiveFolder:
    """A new run folder, or the one that is there if it was asked under equal settings. Raises UserError."""
    check_place(path)
    if (path / RECORD).exists():
        folder = open_run(path)
        if differ := growth.differences(folder.record.settings, settings):
            raise UserError(
                f"{path} holds a run of other settings: {'; '.join(differ)}. Take another --out, or --fresh"
            )
        folder.claim(path / EPISODES, folder.scores_path)
        return folder
    path.mkdir(parents=True, exist_ok=True)
    folder = LiveFolder(
        path,
        LiveRecord(
            dataset=data.name,
            dataset_version=data.version,
            dataset_revision=data.revision,
            settings=settings,
            expected=expected,
        ),
    )
    folder.claim(path / EPISODES, folder.scores_path)
    folder.save()
    return folder


open_run, check_place, discard = LiveFolder.open, LiveFolder.check_place, LiveFolder.discard
