"""Entries into boards: one per dataset version, ranked, with a mark for who is not surely behind."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeVar, cast

import msgspec
import numpy as np

from robustbench_tc import taxonomy
from robustbench_tc.eval import paper
from robustbench_tc.eval.stats.blind import BlindLine
from robustbench_tc.eval.stats.intervals import Interval, apart_from, of_counts
from robustbench_tc.eval.stats.paired import compare_lines
from robustbench_tc.eval.stats.runs import Outcomes
from robustbench_tc.eval.stats.significance import fisher_p, holm, paired_p
from robustbench_tc.eval.stats.values import codes_of

from . import copies, names, tiers
from .index import Kept, kept
from .records import Entry, Submission, Verification, board_version
from .row import CONDITIONS, FOCUSES, LEVELS, Figures, Row, count_values
from .store import current
from .tiers import Flag, Tier

PAPER = "paper"
"""The version of the paper's own board."""

Made = TypeVar("Made")

LEVEL = 0.05
"""A model whose p is below it is significantly behind the leader."""


class Board(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The board of one dataset version: the table that is served. It never changes, so what views need of
    all rows is worked out once (`once`)."""

    version: str
    """How it is addressed: see `records.board_version`; `paper` for the paper's."""
    dataset_version: str
    fingerprint: str | None
    paired: bool
    """False: only counts are known, so tests are those of independent samples."""
    rows: tuple[Row, ...]
    """Ranked by perturbed accuracy, then those without a rank."""
    past: tuple[Row, ...] = ()
    """Superseded submissions, newest first."""
    defended: tuple[Row, ...] = ()
    """Defended runs, superseded ones included: they have no place, and stand on the tab of the defences."""
    reference: tuple[BlindLine, ...] = ()
    """What needs no reading: lines without a place, that no one submitted."""
    notice: str = ""
    """What is not on it yet, in a sentence."""
    copies: dict[str, Flag] = {}
    """Rows that have the replies of another one: the flag with its figure, cleared or not."""

    def row(self, row_id: str) -> Row | None:
        """A row by its id, superseded and defended ones included."""
        return self.once("rows by id", self._by_id).get(row_id)

    def _by_id(self) -> dict[str, Row]:
        return {row.id: row for row in (*self.defended, *self.past, *self.rows)}

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` gives of this board; it is kept with the board."""
        kept = cast(dict[Hashable, Any], self.__dict__)
        if key not in kept:
            kept[key] = make()
        return cast(Made, kept[key])

    def in_order(self, focus: str) -> list[Row]:
        """`ranked` of all rows. Not to be changed."""
        return self.once(("in order", focus), lambda: _ranked(self._sorted(focus)))

    def mixed(self, focus: str) -> dict[str, int]:
        """Row id → its place by accuracy in a focus, whether it has a rank or not."""
        return self.once(("mixed", focus), lambda: {row.id: at for at, row in enumerate(self._sorted(focus))})

    def _sorted(self, focus: str) -> list[Row]:
        names = self.once("by name", lambda: _by_name(self.rows))
        return self.once(("sorted", focus), lambda: _by_accuracy(names, focus))


def best_first(rows: Iterable[Row], focus: str) -> list[Row]:
    """Those that have rows in a focus by accuracy, ties by the number of right answers, then by name."""
    return _by_accuracy(_by_name(rows), focus)


def _by_name(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row.model.casefold(), row.id))


def _by_accuracy(named: Sequence[Row], focus: str) -> list[Row]:
    """`best_first` of rows in the order of their names."""
    counts = count_values([row.figures for row in named], focus)
    there = np.flatnonzero(~np.isnan(counts).any(axis=1))
    correct, n = counts[there].T
    # Two different shares of whole numbers below 2**26 are different floats, and equal ones are equal.
    order = np.lexsort((-correct, -correct / np.maximum(n, 1)))  # equal ones stay as they stand
    return [named[at] for at in there[order].tolist()]


def ranked(rows: Iterable[Row], focus: str = "perturbed") -> list[Row]:
    """The rows in the order of `focus`: first those that have ranks (`tiers.is_ranked`), then the others."""
    return _ranked(best_first(rows, focus))


def _ranked(there: Sequence[Row]) -> list[Row]:
    placed: list[Row] = []
    rest: list[Row] = []
    for row in there:
        (placed if tiers.is_ranked(row) else rest).append(row)
    return [
        *(_with_rank(row, number) for number, row in enumerate(placed, 1)),
        *(_with_rank(row, 0) for row in rest),
    ]


def _with_rank(row: Row, rank: int) -> Row:
    return row if row.rank == rank else msgspec.structs.replace(row, rank=rank)


def leader_of(rows: Sequence[Row]) -> Row | None:
    """The first of rows in the order of `ranked`; None where none has a rank."""
    return rows[0] if rows and rows[0].rank else None


def marked(rows: Iterable[Row], leader: Row | None, focus: str) -> list[Row]:
    """The rows with their p against the leader: asked for what is shown, a test for each row costs. Rows
    without a rank have none."""
    return [
        row
        if leader is None or not row.rank or row.id == leader.id
        else msgspec.structs.replace(row, p_leader=p_of(leader.figures, row.figures, focus))
        for row in rows
    ]


@lru_cache(maxsize=20_000)  # after an addition most rows are as before
def p_of(a: Figures, b: Figures, focus: str) -> float:
    """Two-sided p of "equally good": the paired cluster test, or Fisher's where only counts are known."""
    if _pairs(a, b):
        return paired_p(a.right(focus) * b.repeats - b.right(focus) * a.repeats)
    of_a, of_b = a.counts(focus), b.counts(focus)
    return 1.0 if of_a is None or of_b is None else fisher_p(of_a, of_b)


def _pairs(a: Figures, b: Figures) -> bool:
    return a.verdicts is not None and b.verdicts is not None and a.samples == b.samples


class Difference(msgspec.Struct, frozen=True):
    """Two entries in one condition, b − a."""

    name: str
    """`clean`, `perturbed`, a component or a type."""
    difference: Interval
    p: float
    p_holm: float | None = None
    """Types only: corrected for looking at all of them."""


TESTED = tuple(name for name in FOCUSES if name not in LEVELS)
"""What two rows are compared in: a level's types stand for themselves."""


def differences(a: Figures, b: Figures, wanted: Sequence[str] = TESTED) -> tuple[Difference, ...]:
    """b beside a, both of one dataset version: paired where samples are known, else independent."""
    there = [name for name in wanted if a.counts(name) and b.counts(name)]
    found: dict[str, tuple[Interval, float]] = {}
    if _pairs(a, b):
        pairs = compare_lines(outcomes(a), outcomes(b), {name: codes_of(name) for name in there})
        found = {name: (pair.difference, pair.p) for name, pair in pairs.items()}
    else:
        for name in there:
            of_a, of_b = a.counts(name) or (0, 0), b.counts(name) or (0, 0)
            interval = apart_from(of_counts(*of_b), of_counts(*of_a), of_a[1] + of_b[1])
            found[name] = interval, fisher_p(of_a, of_b)
    corrected = holm({code: found[code][1] for code in taxonomy.codes() if code in found})
    return tuple(Difference(name, interval, p, corrected.get(name)) for name, (interval, p) in found.items())


def outcomes(figures: Figures) -> Outcomes:
    """The verdicts of a row as counts. Two rows of one board can be paired; nothing is known of pairs of
    answers inside one."""
    right, there = figures.columns()
    nothing = np.zeros_like(right.T)
    return Outcomes(
        clean_ids=tuple(map(str, range(figures.samples))),
        types=CONDITIONS,
        correct=right.T,
        n=there.T * figures.repeats,
        missing=nothing,
        pairs=nothing,  # not stored: which clean answer a perturbed one belongs to
        kept=nothing,
        lost=nothing,
        gained=nothing,
        repeats=figures.repeats,
    )


def tier_of(verification: Verification | None) -> Tier:
    """How far a submission's run is vouched for."""
    return "unverified" if verification is None else verification.kind


def row_of(
    one: Submission,
    entry: Kept,
    verification: Verification | None = None,
    superseded_by: str | None = None,
    cleared: Collection[str] = (),
) -> Row:
    """A submission's line, without a rank."""
    used = (entry.usage.prompt_tokens, entry.usage.completion_tokens)
    prices = (one.price_in, one.price_out)
    known = None not in used
    return Row(
        id=one.id,
        model=one.model,
        family=one.family,
        user=one.user,
        params_b=one.params_b,
        mode=one.mode,
        submitted_at=one.submitted_at,
        tier=tier_of(verification),
        flags=tuple(flag for flag in entry.flags if flag not in cleared),
        cleared=tuple(cleared),
        defence=one.defence,
        card=one.card,
        licence=one.licence,
        weights=one.weights,
        tokens=sum(n or 0.0 for n in used) if known else None,
        latency_s=entry.usage.latency_s,
        price=sum((n or 0.0) * (usd or 0.0) for n, usd in zip(used, prices, strict=True)) / 1000
        if known and None not in prices
        else None,
        figures=entry.figures,
        superseded_by=superseded_by,
    )


def boards(
    submissions: Sequence[Submission],
    verifications: Mapping[str, Verification],
    entries: Mapping[str, Entry | Kept],
    published: Mapping[str, Entry],
    cleared: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> dict[str, Board]:
    """Every board by its version, the paper's last. Submissions come oldest first; one without an entry is
    left out (the caller says so). `cleared`: by submission the flags that do not count."""
    newer, known = current(submissions), kept(entries)
    groups: dict[str, list[Row]] = {}
    defended: dict[str, list[Row]] = {}
    places: dict[str, Submission] = {}
    for one in submissions:
        if one.id not in known:
            continue
        version = board_version(one.dataset_version, one.fingerprint)
        places[version] = one
        row = row_of(one, known[one.id], verifications.get(one.id), newer[one.id], cleared.get(one.id, ()))
        (defended if row.defence else groups).setdefault(version, []).append(row)
    newest_first = sorted(places, key=lambda version: places[version].submitted_at, reverse=True)
    found = {
        version: _board(
            version,
            places[version],
            groups.get(version, []),
            _reference(known[row.id] for row in groups.get(version, ())),
            defended.get(version, []),
        )
        for version in newest_first
    }
    return {**found, PAPER: paper_board(published)}


def _board(
    version: str,
    of: Submission,
    rows: Sequence[Row],
    reference: tuple[BlindLine, ...],
    defended: Sequence[Row] = (),
) -> Board:
    """The board of these rows, which come oldest first."""
    here, found = copies.flagged(row for row in rows if row.superseded_by is None)
    return Board(
        version=version,
        dataset_version=of.dataset_version,
        fingerprint=of.fingerprint,
        paired=True,
        rows=tuple(ranked(here)),
        past=tuple(row for row in reversed(rows) if row.superseded_by is not None),
        defended=tuple(defended),
        reference=reference,
        copies=found,
    )


def _reference(entries: Iterable[Kept]) -> tuple[BlindLine, ...]:
    """The reference lines of entries of one dataset: those of an audit, if one of them has them."""
    found = {id(entry.reference): entry.reference for entry in entries}
    return max(found.values(), key=lambda lines: (len(lines), msgspec.json.encode(lines)), default=())


def paper_board(published: Mapping[str, Entry]) -> Board:
    """The paper's 21 models on the paper's own dataset version."""
    models = paper.models()
    rows = [
        Row(
            id=f"paper-{name}",
            model=name,
            family=names.family_of(name),
            user=None,
            params_b=models[name].params_b,
            mode=models[name].mode,
            submitted_at=None,
            tier="published",
            figures=Figures.of(entry),
        )
        for name, entry in published.items()
    ]
    return Board(
        version=PAPER, dataset_version=PAPER, fingerprint=None, paired=False, rows=tuple(ranked(rows))
    )
