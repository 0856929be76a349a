"""Entries into boards: one per dataset version, ranked, with a mark for who is not surely behind."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Literal, get_args

import msgspec
import numpy as np

from robustbench_tc import taxonomy
from robustbench_tc.eval import paper
from robustbench_tc.eval.stats import blind
from robustbench_tc.eval.stats.blind import BlindLine
from robustbench_tc.eval.stats.intervals import Interval, apart_from, of_counts
from robustbench_tc.eval.stats.lattice import Ints
from robustbench_tc.eval.stats.paired import compare_lines
from robustbench_tc.eval.stats.runs import Outcomes
from robustbench_tc.eval.stats.significance import fisher_p, holm, paired_p
from robustbench_tc.eval.stats.values import codes_of

from . import names
from .records import Entry, Submission, Verification, board_version
from .store import current

PAPER = "paper"
"""The version of the paper's own board."""

LEVEL = 0.05
"""A model whose p is below it is significantly behind the leader."""

LEVELS = tuple(level for level in get_args(taxonomy.Level) if codes_of(level) != (level,))
"""The levels that the core has types of."""

FOCUSES = ("perturbed", taxonomy.CLEAN, *taxonomy.COMPONENTS, *LEVELS, *taxonomy.codes())
"""What a board can be ranked by; the first is the default."""

Status = Literal["published", "unverified", "verified"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a board."""

    id: str
    """The submission's, or `paper-MODEL`."""
    model: str
    family: str
    user: str | None
    """None: the paper published it."""
    params_b: float | None
    mode: str | None
    submitted_at: str | None
    status: Status
    entry: Entry
    superseded_by: str | None = None
    rank: int = 0
    """By perturbed accuracy; 0 for a superseded submission."""
    p_leader: float | None = None
    """Of "as good as the leader" by perturbed accuracy; None for the leader."""


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """The board of one dataset version: the table that is served."""

    version: str
    """How it is addressed: see `records.board_version`; `paper` for the paper's."""
    dataset_version: str
    fingerprint: str | None
    paired: bool
    """False: only counts are known, so tests are those of independent samples."""
    rows: tuple[Row, ...]
    """Ranked by perturbed accuracy."""
    past: tuple[Row, ...] = ()
    """Superseded submissions, newest first."""
    reference: tuple[BlindLine, ...] = ()
    """What needs no reading: lines without a place, that no one submitted."""

    def row(self, row_id: str) -> Row | None:
        """A row by its id, superseded ones included."""
        return next((row for row in (*self.rows, *self.past) if row.id == row_id), None)


def counts_of(entry: Entry, focus: str) -> tuple[int, int] | None:
    """(correct, n) in a focus; None where the entry lacks it. A level's are those of its core types."""
    if focus not in LEVELS:
        return entry.counts.get(focus)
    counts = [entry.counts[code] for code in codes_of(focus) if code in entry.counts]
    if len(counts) < len(codes_of(focus)):
        return None
    return sum(correct for correct, _ in counts), sum(n for _, n in counts)


def order(row: Row, focus: str) -> tuple[Fraction, int, str, str]:
    """Sorts a board: accuracy descending, ties by correct count, then by name."""
    correct, n = counts_of(row.entry, focus) or (0, 1)
    return -Fraction(correct, n), -correct, row.model.casefold(), row.id


def ranked(rows: Iterable[Row], focus: str = "perturbed") -> list[Row]:
    """The rows in the order of `focus`, with rank and p against its leader."""
    there = sorted((row for row in rows if counts_of(row.entry, focus)), key=lambda row: order(row, focus))
    return [
        msgspec.structs.replace(
            row, rank=number, p_leader=None if number == 1 else p_of(there[0].entry, row.entry, focus)
        )
        for number, row in enumerate(there, 1)
    ]


def p_of(a: Entry, b: Entry, focus: str) -> float:
    """Two-sided p of "equally good": the paired cluster test, or Fisher's where only counts are known."""
    differences = _differences(a, b, focus)
    if differences is not None:
        return paired_p(differences)
    of_a, of_b = counts_of(a, focus), counts_of(b, focus)
    return 1.0 if of_a is None or of_b is None else fisher_p(of_a, of_b)


def _differences(a: Entry, b: Entry, focus: str) -> Ints | None:
    """Per clean_id the right answers of a minus those of b, over common repeats; None without samples."""
    if a.verdicts is None or b.verdicts is None:
        return None
    sums = [
        np.sum([_digits(entry.verdicts[code])[0] for code in codes_of(focus)], axis=0)
        for entry in (a, b)
        if entry.verdicts is not None
    ]
    found: Ints = sums[0] * b.repeats - sums[1] * a.repeats
    return found


@lru_cache(maxsize=20_000)
def _digits(text: str) -> tuple[Ints, Ints]:
    """Right answers per clean_id, and whether there is a row. Kept: every ranking asks for the same ones."""
    codes = np.frombuffer(text.encode(), np.uint8).astype(np.int64)
    there = codes != ord("-")
    found = np.where(there, codes - ord("0"), 0), there.astype(np.int64)
    for column in found:
        column.flags.writeable = False
    return found


class Difference(msgspec.Struct, frozen=True):
    """Two entries in one condition, b − a."""

    name: str
    """`clean`, `perturbed`, a component or a type."""
    difference: Interval
    p: float
    p_holm: float | None = None
    """Types only: corrected for looking at all of them."""


def differences(a: Entry, b: Entry) -> tuple[Difference, ...]:
    """b beside a, both of one dataset version: paired where samples are known, else independent."""
    first, second = _outcomes(a), _outcomes(b)
    there = [name for name in FOCUSES if name in a.counts and name in b.counts]
    found: dict[str, tuple[Interval, float]] = {}
    if first is None or second is None:
        for name in there:
            (of_a, of_b), n = (a.counts[name], b.counts[name]), a.counts[name][1] + b.counts[name][1]
            interval = apart_from(of_counts(*of_b), of_counts(*of_a), n)
            found[name] = interval, fisher_p(of_a, of_b)
    else:
        pairs = compare_lines(first, second, {name: codes_of(name) for name in there})
        found = {name: (pair.difference, pair.p) for name, pair in pairs.items()}
    corrected = holm({code: found[code][1] for code in taxonomy.codes() if code in found})
    return tuple(Difference(name, interval, p, corrected.get(name)) for name, (interval, p) in found.items())


def _outcomes(entry: Entry) -> Outcomes | None:
    if entry.verdicts is None:
        return None
    columns = {code: _digits(text) for code, text in entry.verdicts.items()}
    correct = np.stack([right for right, _ in columns.values()], axis=1)
    n = np.stack([there for _, there in columns.values()], axis=1) * entry.repeats
    nothing = np.zeros_like(n)
    return Outcomes(
        clean_ids=tuple(map(str, range(len(correct)))),
        types=tuple(columns),
        correct=correct,
        n=n,
        missing=nothing,
        pairs=nothing,  # not stored: which clean answer a perturbed one belongs to
        kept=nothing,
        lost=nothing,
        gained=nothing,
        repeats=entry.repeats,
    )


def boards(
    submissions: Sequence[Submission],
    verifications: Mapping[str, Verification],
    entries: Mapping[str, Entry],
    published: Mapping[str, Entry],
) -> dict[str, Board]:
    """Every board by its version, the paper's last. Submissions come oldest first; one without an entry is
    left out (the caller says so)."""
    newer = current(submissions)
    groups: dict[str, list[Row]] = {}
    places: dict[str, Submission] = {}
    for one in submissions:
        if one.id not in entries:
            continue
        version = board_version(one.dataset_version, one.fingerprint)
        places[version] = one
        groups.setdefault(version, []).append(
            Row(
                id=one.id,
                model=one.model,
                family=one.family,
                user=one.user,
                params_b=one.params_b,
                mode=one.mode,
                submitted_at=one.submitted_at,
                status="verified" if one.id in verifications else "unverified",
                entry=entries[one.id],
                superseded_by=newer[one.id],
            )
        )
    newest_first = sorted(groups, key=lambda version: places[version].submitted_at, reverse=True)
    found = {
        version: Board(
            version=version,
            dataset_version=places[version].dataset_version,
            fingerprint=places[version].fingerprint,
            paired=True,
            rows=tuple(ranked(row for row in groups[version] if row.superseded_by is None)),
            past=tuple(row for row in reversed(groups[version]) if row.superseded_by is not None),
            reference=_reference(row.entry for row in groups[version]),
        )
        for version in newest_first
    }
    return {**found, PAPER: paper_board(published)}


def _reference(entries: Iterable[Entry]) -> tuple[BlindLine, ...]:
    """The reference lines of entries of one dataset: those of an audit, if one of them has them."""
    found = [blind.lines(entry.needs_no_reading) for entry in entries]
    return max(found, key=len, default=())


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
            status="published",
            entry=entry,
        )
        for name, entry in published.items()
    ]
    return Board(
        version=PAPER, dataset_version=PAPER, fingerprint=None, paired=False, rows=tuple(ranked(rows))
    )
