"""Boards of live runs: one per version of the live dataset, ranked by success over all kinds of faults.

They are apart from the boards of `board`: no row, rank, mark or figure there depends on a live run.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from robustbench_tc.eval.stats.intervals import Interval

from . import table as tables
from . import tiers
from .board import tier_of
from .live_records import LiveEntry
from .live_scoring import ALL
from .records import Submission, Verification, board_version, encode
from .store import current
from .tiers import Tier


class LiveRow(msgspec.Struct, frozen=True, kw_only=True):
    """One live run."""

    submission: Submission
    entry: LiveEntry
    tier: Tier
    cleared: tuple[str, ...] = ()
    """Flags that a maintainer has cleared: they count no more."""
    superseded_by: str | None = None
    rank: int = 0
    """By success in a focus, among runs that have one; 0 for all others."""

    @property
    def id(self) -> str:
        return self.submission.id

    @property
    def model(self) -> str:
        return self.submission.model

    @property
    def flags(self) -> tuple[str, ...]:
        """Codes of those that count."""
        return tuple(flag.code for flag in self.entry.flags if flag.code not in self.cleared)

    def success(self, focus: str) -> Interval | None:
        """Success of the episodes of a focus: `clean`, or the name of a line; None where none was played."""
        if focus == "clean":
            return self.entry.clean
        line = self.entry.line(focus)
        return None if line is None else line.success


class LiveBoard(msgspec.Struct, frozen=True, kw_only=True):
    """The live runs of one dataset version."""

    version: str
    """As `records.board_version`."""
    dataset_version: str
    fingerprint: str
    rows: tuple[LiveRow, ...] = ()
    """Ranked by `ALL`, then those without a rank, then scripted agents."""
    past: tuple[LiveRow, ...] = ()
    """Superseded submissions, newest first."""
    notice: str = ""

    def row(self, row_id: str) -> LiveRow | None:
        """A row by its id, superseded ones included."""
        return next((row for row in (*self.rows, *self.past) if row.id == row_id), None)

    @property
    def focuses(self) -> list[str]:
        """What it can be ranked by: the lines that its rows have, sums first."""
        there = {line.name: None for row in (*self.rows, *self.past) for line in row.entry.lines}
        sums = [name for name in (ALL, "explicit", "implicit") if name in there]
        return [*(sums or [ALL]), "clean", *(name for name in there if name not in sums)]


def boards(
    submissions: Sequence[Submission],
    verifications: Mapping[str, Verification],
    entries: Mapping[str, LiveEntry],
    cleared: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> dict[str, LiveBoard]:
    """Every board by its version, that of the newest submission first. Submissions come oldest first."""
    newer = current(submissions)
    groups: dict[str, list[LiveRow]] = {}
    for one in submissions:
        if one.id in entries:
            row = LiveRow(
                submission=one,
                entry=entries[one.id],
                tier=tier_of(verifications.get(one.id)),
                cleared=tuple(cleared.get(one.id, ())),
                superseded_by=newer[one.id],
            )
            groups.setdefault(board_version(one.dataset_version, one.fingerprint), []).append(row)
    newest = sorted(groups, key=lambda name: groups[name][-1].submission.submitted_at, reverse=True)
    return {
        version: LiveBoard(
            version=version,
            dataset_version=groups[version][0].submission.dataset_version,
            fingerprint=groups[version][0].submission.fingerprint,
            rows=tuple(ranked(row for row in groups[version] if row.superseded_by is None)),
            past=tuple(row for row in reversed(groups[version]) if row.superseded_by is not None),
        )
        for version in newest
    }


def is_ranked(row: LiveRow) -> bool:
    """Whether the run takes a rank: vouched for, without a flag and without defences, as on the board."""
    return tiers.is_ranked(row) and not row.submission.defence


def is_baseline(row: LiveRow) -> bool:
    """Whether it is no entrant: a scripted agent."""
    return bool(row.flags)


def ranked(rows: Iterable[LiveRow], focus: str = ALL) -> list[LiveRow]:
    """The rows that have an episode in the focus, in its order: those with ranks, the others, baselines."""
    there = [row for row in rows if row.success(focus) is not None]
    there.sort(key=lambda row: (not is_ranked(row), is_baseline(row), *_order(row, focus)))
    return [
        msgspec.structs.replace(row, rank=number if is_ranked(row) else 0)
        for number, row in enumerate(there, 1)
    ]


def _order(row: LiveRow, focus: str) -> tuple[float, float, str, str]:
    """Success descending, ties by that of the clean episodes, then by name."""
    found = row.success(focus)
    value = 0.0 if found is None else found.value
    return -value, -row.entry.clean.value, row.model.casefold(), row.id


def file_of(board: LiveBoard) -> str:
    """What its stored table is called."""
    return f"live-{board.version}"


def table(board: LiveBoard) -> bytes:
    """What a rebuild compares."""
    names = board.version, board.dataset_version, board.fingerprint
    return tables.table(names, board.rows, board.past, lambda row: encode(row.entry))
