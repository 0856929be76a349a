"""What any dataset has, and which part of it is asked: of an order of rows or samples a run takes the first.

The first N of an order are the first N of the N + 1 that a larger run takes: so a run grows.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import ClassVar, Generic, Literal, TypeVar

import msgspec

from robustbench_tc import sources, taxonomy
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.schema import LiveRow, Sample, fingerprint

Row = TypeVar("Row", Sample, LiveRow)

Origin = Literal["source", "world"]
"""What rows are shared out over: where a sample is from, or in which world an episode is played."""

SEED = 0
"""Of the order of the clean ids within a source (`order`)."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows of the dataset a run asks. Empty means all."""

    types: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    """Row ids or clean ids."""
    limit: int | None = None
    """At most so many rows, in turns over the selected types and sources, each behind its clean row."""
    samples: int | None = None
    """At most so many clean ids, each with all its selected rows; every source has its share."""


class Data(msgspec.Struct, Generic[Row], frozen=True, kw_only=True, dict=True):
    """A loaded dataset: samples (`inputs.Dataset`), or rows that are played in a world (`LiveData`)."""

    digest_of: ClassVar[Callable[..., str]]
    """Of what a row asks and wants."""
    by: ClassVar[Origin] = "source"
    anchored: ClassVar[bool] = False
    """Whether selected types bring the clean rows along which they are compared with."""
    name: str
    """The folder as an absolute path, or the Hub id."""
    revision: str | None = None
    """Hub only: the commit that was read."""
    version: str | None = None
    """The dataset's own version, if it states one."""
    rows: tuple[Row, ...]
    """Every row, clean ones first."""
    left_out: dict[str, int] = {}
    """What was in the files and is not in `rows`, by reason."""

    @cached_property
    def by_id(self) -> dict[str, Row]:
        """The rows by their ids."""
        return {row.id: row for row in self.rows}

    @cached_property
    def hashes(self) -> dict[str, str]:
        """What each row asks and wants, as a digest, by row id."""
        return {row.id: self.digest_of(row) for row in self.rows}

    def fingerprint(self) -> str:
        """32 hex digits over the sorted (id, digest) pairs: equal for equal rows in any order."""
        return fingerprint(sorted(self.hashes.items()))

    def select(self, selection: Selection) -> tuple[Row, ...]:
        """The selected rows, in the dataset's order.

        Raises UserError: an unknown name, or nothing is left.
        """
        known = dict.fromkeys(row.type_code for row in self.rows)
        types = {taxonomy.find_in(known, code, "type in this dataset") for code in selection.types}
        for source in selection.sources:
            if source not in sources.in_tables():
                raise unknown("source", source, sources.in_tables())
        present = {row.id for row in self.rows} | {row.clean_id for row in self.rows}
        if missing := [wanted for wanted in selection.ids if wanted not in present]:
            raise unknown("row id", missing[0], present)
        rows = [
            row
            for row in self.rows
            if (not types or row.type_code in types)
            and (not selection.sources or getattr(row, self.by) in selection.sources)
            and (not selection.ids or row.id in selection.ids or row.clean_id in selection.ids)
        ]
        if self.anchored and types and not selection.ids:
            types.add(taxonomy.CLEAN)
            samples = {row.clean_id for row in rows}
            rows = [row for row in self.rows if row.type_code in types and row.clean_id in samples]
        for word, number in (("limit", selection.limit), ("samples", selection.samples)):
            if number is not None and number < 1:
                raise UserError(f"--{word} {number}: give 1 or more")
        if selection.limit is not None and selection.samples is not None:
            raise UserError("--limit counts rows, --samples counts whole samples: give one of them")
        if selection.samples is not None:
            drawn = frozenset(order(rows, self.by)[: selection.samples])
            rows = [row for row in rows if row.clean_id in drawn]
        if selection.limit is not None:
            kept = {row.id for row in turns(rows, self.by)[: selection.limit]}
            rows = [row for row in rows if row.id in kept]
        if not rows:
            raise UserError(f"no row of {self.name} fits the selection: widen --types, --sources or --ids")
        return tuple(rows)


def order(rows: Iterable[Row], by: Origin = "source") -> list[str]:
    """The clean ids, at every length in the proportions of their sources, or of what else `by` names.

    Within a source they stand in an order that `SEED` and the clean id alone decide, whatever the dataset's
    other samples. The next one is of the source that is furthest behind its share.
    """
    by_source: dict[str, dict[str, None]] = {}
    for row in rows:
        by_source.setdefault(getattr(row, by), {})[row.clean_id] = None
    waiting = {source: deque(sorted(ids, key=_drawn)) for source, ids in sorted(by_source.items())}
    sizes = {source: len(ids) for source, ids in waiting.items()}
    every, taken, found = sum(sizes.values()), Counter[str](), list[str]()
    while len(found) < every:
        # In whole numbers, so that no rounding decides: share of the next length, less what is there.
        behind = {one: size * (len(found) + 1) - taken[one] * every for one, size in sizes.items()}
        source = max((one for one in behind if waiting[one]), key=lambda one: behind[one])
        taken[source] += 1
        found.append(waiting[source].popleft())
    return found


def _drawn(clean_id: str) -> bytes:
    return hashlib.sha256(f"{SEED}|{clean_id}".encode("utf-8", "surrogatepass")).digest()


def turns(rows: Sequence[Row], by: Origin = "source") -> list[Row]:
    """The rows in turns, one of each type, a perturbed row never before its clean row (if that is there).

    Each type begins with another source, so that a short run sees all; within a source all types begin with
    the samples that the most types have, so that few clean rows anchor many perturbed ones. The type clean
    is the last of a turn: clean rows come before by anchoring. `by`: what rows have in a source's place.
    """
    clean = {row.clean_id: row for row in rows if row.type_code == taxonomy.CLEAN}
    types = Counter(row.clean_id for row in rows)
    ranked = sorted(rows, key=lambda row: -types[row.clean_id])
    by_type: dict[str, dict[str, list[Row]]] = {row.type_code: {} for row in rows}
    for row in ranked:
        by_type[row.type_code].setdefault(getattr(row, by), []).append(row)
    if taxonomy.CLEAN in by_type:
        by_type[taxonomy.CLEAN] = by_type.pop(taxonomy.CLEAN)
    places = {source: at for at, source in enumerate(sorted({getattr(row, by) for row in rows}))}
    found: dict[str, Row] = {}
    # Of one type a source at a time; the type with this number begins with the source of this number.
    in_types = [
        _in_turns([there[one] for one in sorted(there, key=lambda one: (places[one] - at) % len(places))])
        for at, there in enumerate(by_type.values())
    ]
    for row in _in_turns(in_types):
        anchor = clean.get(row.clean_id, row)
        found |= {anchor.id: anchor, row.id: row}
    return list(found.values())


def _in_turns(lists: Sequence[Sequence[Row]]) -> list[Row]:
    return [row for turn in zip_longest(*lists) for row in turn if row is not None]
