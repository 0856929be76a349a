"""Entries into boards: one per kind and dataset, ranked, with a mark for who is not surely behind.

Who has a rank: a run that somebody vouches for, without a flag that counts, and without defences. All others
are listed below them, and none of them moves a rank.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache, cached_property

import msgspec
import numpy as np

from robustbench_tc.eval import paper
from robustbench_tc.eval.stats import significance
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.lattice import Ints
from robustbench_tc.eval.stats.significance import Places, fisher_p, paired_p

from . import flags
from .checker import CONDITIONS, of_paper
from .entry import Entry, Flag, Kind, Reasoned, Status, Submission, Tier, Verdicts, Vouched

PAPER = "paper"
"""Version and fingerprint of the paper's own board."""

HEAD = {"core": "perturbed", "own": "perturbed", "live": "success_all"}
"""Kind → which of `Row.values` it is ranked by."""


class Row(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One run on a board."""

    entry: Entry
    tier: Tier
    vouched: Vouched | None = None
    flags: tuple[Flag, ...] = ()
    """Those that count."""
    cleared: tuple[tuple[Flag, Reasoned], ...] = ()
    """Those that a maintainer has cleared."""
    superseded_by: str | None = None
    """The run that took its place."""
    rank: int = 0
    """0: it has none."""
    places: Places | None = None
    """The ranks that the data allow it."""
    p_leader: float | None = None
    """Of "as good as the leader"; None for the leader, and without a rank."""

    @property
    def run(self) -> str:
        return self.entry.run

    @property
    def day(self) -> str:
        """YYYY-MM-DD; of the paper's models nothing."""
        return "" if self.tier == "published" else self.entry.day

    @property
    def may_rank(self) -> bool:
        return self.tier != "unverified" and not self.flags and not defended(self.entry)

    @property
    def not_behind(self) -> bool:
        """Whether it is not surely behind the leader."""
        return self.p_leader is not None and self.p_leader >= significance.LEVEL

    @property
    def head(self) -> Interval | None:
        """What it is ranked by."""
        return self.values.get(HEAD[self.entry.kind])

    @cached_property
    def values(self) -> dict[str, Interval | None]:
        """`Entry.figures`, made once."""
        return self.entry.figures


class Board(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The runs of one kind on one dataset."""

    kind: Kind
    dataset: str
    version: str
    fingerprint: str
    rows: tuple[Row, ...]
    """By rank, then those without one."""
    past: tuple[Row, ...] = ()
    """Superseded runs, newest first."""

    @cached_property
    def ranked(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.rank)


def boards(entries: Sequence[Entry], status: Status) -> list[Board]:
    """Every board, the newest first, without withdrawn runs; the paper's comes last."""
    groups: dict[tuple[Kind, str], list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda one: (one.day, one.run)):
        if entry.run not in status.withdrawn:
            groups[entry.kind, entry.fingerprint].append(entry)
    newest = sorted(groups, key=lambda key: (groups[key][-1].day, key), reverse=True)
    return [*(_board(groups[key], status) for key in newest), paper_board()]


def front(found: Sequence[Board], status: Status) -> Board | None:
    """The core's board of the front page: what `status` says, else that of its dataset's version, else the
    newest that has a run; None where there is no run."""
    version = status.dataset.rpartition("@")[2]
    return max(
        (board for board in found if board.kind == "core" and board.fingerprint != PAPER),
        key=lambda board: (board.fingerprint == status.front, board.version == version),
        default=None,
    )


def of_whom(entry: Entry) -> tuple[str, str]:
    """Who submitted a run, and the model."""
    return entry.submitter or entry.run.partition("/")[0], entry.submission.model


def defended(entry: Entry) -> str:
    """The defences that a run had, if any: its figures are not the model's alone."""
    return " + ".join((*entry.defend, *filter(None, [entry.submission.defences])))


def _board(entries: Sequence[Entry], status: Status) -> Board:
    """The board of entries of one dataset, which come oldest first."""
    latest = {_place(entry): entry.run for entry in entries}
    rows = [_row(entry, status, latest[_place(entry)], entry.flags) for entry in entries]
    there = [row for row in rows if row.superseded_by is None]
    same = flags.copies([row.entry for row in there], {row.run for row in there if row.may_rank})
    there = [
        _row(row.entry, status, row.run, (*row.entry.flags, same[row.run])) if row.run in same else row
        for row in there
    ]
    of = entries[-1]
    return Board(
        kind=of.kind,
        dataset=of.dataset,
        version=of.version,
        fingerprint=of.fingerprint,
        rows=tuple(ranked(there)),
        past=tuple(row for row in reversed(rows) if row.superseded_by is not None),
    )


def _place(entry: Entry) -> tuple[str, ...]:
    """What a run stands for: a newer run of the same takes its place."""
    return *of_whom(entry), entry.mode, entry.submission.agent or "", defended(entry)


def _row(entry: Entry, status: Status, latest: str, flags: Sequence[Flag]) -> Row:
    cleared = status.cleared.get(entry.run, {})
    vouched = status.tiers.get(entry.run)
    return Row(
        entry=entry,
        tier=vouched.tier if vouched else "unverified",
        vouched=vouched,
        flags=tuple(flag for flag in flags if flag.code not in cleared),
        cleared=tuple((flag, cleared[flag.code]) for flag in flags if flag.code in cleared),
        superseded_by=None if latest == entry.run else latest,
    )


def ranked(rows: Iterable[Row]) -> list[Row]:
    """Those that have a rank by what their kind is ranked by, ties by name; then the others in the
    same order."""
    in_order = sorted(
        rows,
        key=lambda row: (
            -row.head.value if row.head else 1.0,
            row.entry.submission.model.casefold(),
            row.run,
        ),
    )
    placed = [row for row in in_order if row.may_rank and row.head is not None]
    allowed = _places(placed)
    return [
        *(
            msgspec.structs.replace(
                row,
                rank=number,
                places=allowed.get(row.run),
                p_leader=p_of(placed[0].entry, row.entry) if number > 1 else None,
            )
            for number, row in enumerate(placed, 1)
        ),
        *(row for row in in_order if not row.may_rank or row.head is None),
    ]


def _places(placed: Sequence[Row]) -> dict[str, Places]:
    """The ranks that the data allow the first `MOST_RANKED` rows; those of live runs are not worked out."""
    known = [
        (row.entry.core, row.entry.repeats) for row in placed[: significance.MOST_RANKED] if row.entry.core
    ]
    if len(placed) < 2 or not known:
        return {}
    paired = [figures.verdicts for figures, _ in known if figures.verdicts]
    if len(paired) == len(known) and len({verdicts.there for verdicts in paired}) == 1:
        pairs = significance.told_apart([_right(verdicts) for verdicts in paired], [n for _, n in known])
    else:
        pairs = significance.told_apart_by_counts([figures.counts["perturbed"] for figures, _ in known])
    return {
        row.run: one
        for row, one in zip(placed, significance.compatible_ranks(pairs, len(placed)), strict=False)
    }


def p_of(a: Entry, b: Entry) -> float | None:
    """Two-sided p of "equally good": the exact paired test over samples, or Fisher's where only counts are
    known; None for live runs, of which neither is kept."""
    if a.core is None or b.core is None:
        return None
    if a.core.verdicts and b.core.verdicts and a.core.verdicts.there == b.core.verdicts.there:
        return paired_p(_right(a.core.verdicts) * b.repeats - _right(b.core.verdicts) * a.repeats)
    return fisher_p(a.core.counts["perturbed"], b.core.counts["perturbed"])


def _right(verdicts: Verdicts) -> Ints:
    """Per clean id the right answers to its perturbed rows, over all repeats."""
    packed = np.array([np.frombuffer(repeat, np.uint8) for repeat in verdicts.right])
    shape = len(packed), len(CONDITIONS), verdicts.samples
    bits = np.unpackbits(packed, axis=1, count=shape[1] * shape[2]).reshape(shape)
    counted: Ints = bits[:, 1:].sum(axis=(0, 1), dtype=np.int64)  # all but the clean ones
    return counted


@cache
def paper_board() -> Board:
    """The paper's 21 models on the paper's own dataset version, of which only counts are known."""
    entries = [
        Entry(
            kind="core",
            run=f"{PAPER}/{name}",
            submission=Submission(model=name, params_b=paper.models()[name].params_b),
            mode=paper.models()[name].paper_mode,
            dataset=paper.SOURCE,
            version=PAPER,
            fingerprint=PAPER,
            checker="",
            core=figures,
        )
        for name, figures in of_paper().items()
    ]
    return Board(
        kind="core",
        dataset=paper.SOURCE,
        version=PAPER,
        fingerprint=PAPER,
        rows=tuple(ranked(Row(entry=entry, tier="published") for entry in entries)),
    )
