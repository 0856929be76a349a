"""What a live build leaves behind about itself. No clock in it: same build, same report."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from robustbench_tc.io import templates
from robustbench_tc.schema import LiveRow

from ..report import Report, add
from .placing import Skip


class LiveReport(Report, frozen=True, kw_only=True):
    """`build_report.json` of a live build, its marker (`io.marker`)."""

    kind: Literal["robustbench-tc-live"] = "robustbench-tc-live"
    profile: str
    """`bundled`, `lite` or `full`; `own` where worlds were named."""
    seed: int
    worlds: dict[str, str]
    """World → sha256 of its file."""
    kinds: tuple[str, ...]
    types: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """Registry types; left out where none was named, so that the report is as before there were any."""
    configs: tuple[str, ...]
    """Folders of the build; a config without a row is left out: it could not load."""
    checksums: dict[str, str]
    """Config → sha256 over its files."""
    rows: dict[str, dict[str, int]]
    """Type code (and `clean`) → world → rows."""
    labels: dict[str, dict[str, dict[str, int]]]
    """Type code → label → world → rows."""
    positions: dict[str, dict[str, int]]
    """Type code → position → rows."""
    skipped: tuple[Skip, ...]
    """Every pair of a task and a kind, or a registry type, without a row."""
    pins: tuple[dict[str, Any], ...] = ()
    """Upstream files that the build read: repository, commit, sha256."""

    @property
    def total(self) -> int:
        """Rows of all types and worlds, clean ones included."""
        return sum(sum(by_world.values()) for by_world in self.rows.values())

    @property
    def reasons(self) -> dict[str, dict[str, int]]:
        """Type code → reason → tasks without a row."""
        found: dict[str, Counter[str]] = {}
        for skip in self.skipped:
            found.setdefault(skip.type_code, Counter())[skip.reason] += 1
        return {code: dict(sorted(counts.items())) for code, counts in found.items()}

    def markdown(self) -> str:
        """The readable form: rows per type, world and label, then why tasks have no row of a kind."""
        environment = templates.environment("robustbench_tc.builders.live")
        return environment.get_template("live_report.md.j2").render(report=self)


class Tally:
    """Counts rows while they are written."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, int]] = {}
        self.labels: dict[str, dict[str, dict[str, int]]] = {}
        self.positions: dict[str, dict[str, int]] = {}

    def counted(self, rows: Iterable[LiveRow]) -> Iterable[LiveRow]:
        """The same rows, counted as they pass."""
        for row in rows:
            add(self.rows.setdefault(row.type_code, {}), row.world)
            if row.label is not None and row.position is not None:
                add(self.labels.setdefault(row.type_code, {}).setdefault(row.label, {}), row.world)
                add(self.positions.setdefault(row.type_code, {}), row.position)
            yield row
