"""The figures of what needs no reading, for a dataset: from its audit's report, else counted in its rows."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from robustbench_tc.schema import Sample

from .agents.blind import POLICIES, Tried, try_blind

AUDIT = "audit_report.json"

COUNTED = 20_000
"""Rows that are counted at most. A larger dataset that nobody audited has no figures; the tables say so."""


class TypeFigures(msgspec.Struct, frozen=True, omit_defaults=True):
    """The counts of one type, or of `clean`."""

    type_code: str
    rows: int
    chance: float
    right: dict[str, int]
    """Blind policy → rows in which it chooses the gold tool."""
    classifier: int | None = None
    """The same of the audit's classifier; None where the rows alone were at hand."""

    def __post_init__(self) -> None:
        counts = (*self.right.values(), self.classifier or 0)
        if self.rows < 1 or not 0 <= self.chance <= 1 or not all(0 <= n <= self.rows for n in counts):
            raise ValueError("figures that no rows have")


class _Audit(msgspec.Struct):
    """What is read of an audit's report."""

    shortcuts: tuple[TypeFigures, ...] = ()


def audited(folder: Path, rows: Mapping[str, int]) -> tuple[TypeFigures, ...]:
    """What the audit's report in `folder` says, if it is about as many rows of each type; else nothing."""
    try:
        found = msgspec.json.decode((folder / AUDIT).read_bytes(), type=_Audit).shortcuts
    except (OSError, ValueError, RecursionError):
        return ()
    return found if sorted((one.type_code, one.rows) for one in found) == sorted(rows.items()) else ()


def counted(rows: Iterable[Sample]) -> tuple[TypeFigures, ...]:
    """The same from the rows: everything but the classifier, which the audit alone trains."""
    tried: dict[str, list[Tried]] = defaultdict(list)
    for row in rows:
        tried[row.type_code].append(try_blind(row))
    return tuple(
        TypeFigures(
            code,
            len(found),
            round(float(sum(one.chance for one in found) / len(found)), 4),
            {name: sum(one.right[name] for one in found) for name in POLICIES},
        )
        for code, found in tried.items()
    )
