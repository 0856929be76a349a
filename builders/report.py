"""What a build leaves behind about itself: counts, skips, texts. No clock in it: same build, same report."""

import difflib
import statistics as stats
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import jinja2
import msgspec
import pyarrow as pa

from robustbench_tc import sources
from robustbench_tc.io import marker, templates
from robustbench_tc.schema import LiveRow, Sample, content_hash
from robustbench_tc.shown import Line, Part, Table

from .plan import Skip
from .sources import BuildProfile


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """`build_report.json`, the marker of a build (`io.marker`). No clock in it: same build, same report."""

    report_version: int = marker.BUILD_VERSION
    pyarrow: str = pa.__version__
    """Version of the library that wrote the Parquet files: another one writes other bytes."""
    files: dict[str, str] = {}
    """Every other file of the build → sha256; filled in by `finished`."""
    own_sha256: str = ""
    """Filled in by `json`."""

    def json(self) -> bytes:
        """The bytes of the file, sealed with their own sha256."""
        return marker.sealed(msgspec.structs.replace(self, own_sha256=""))

    def markdown(self) -> str:
        """The readable form."""
        raise NotImplementedError

    def shown(self) -> Iterator[Part]:
        """What a command prints: the readable form, as it is."""
        yield Line(self.markdown())


Made = TypeVar("Made", bound=Report)


def finished(folder: Path, report: Made, card: Callable[[Made], str]) -> Made:
    """Writes the report and the README that `card` renders; the report, which names every file now."""
    (folder / "build_report.md").write_text(report.markdown())
    (folder / "README.md").write_text(card(report))
    report = msgspec.structs.replace(report, files=marker.hashes(folder, but=marker.BUILD))
    (folder / marker.BUILD).write_bytes(report.json())
    return report


def add(counts: dict[Any, int], key: Any, count: int = 1) -> None:
    """Counts one more, or so many."""
    counts[key] = counts.get(key, 0) + count


def merge(mine: dict[Any, Any], theirs: Mapping[Any, Any]) -> None:
    """Takes other counts of the same nesting in; lists are joined, texts taken over."""
    for key, found in theirs.items():
        if isinstance(found, Mapping):
            merge(mine.setdefault(key, {}), found)
        elif isinstance(found, list):
            mine.setdefault(key, []).extend(found)
        elif isinstance(found, str):
            mine[key] = found
        else:
            add(mine, key, found)


class BuildReport(Report, frozen=True, kw_only=True):
    """`build_report.json`, the marker of the build (`io.marker`)."""

    kind: Literal["robustbench-tc"] = "robustbench-tc"
    fingerprint: str
    """`schema.fingerprint` of the rows: a build has no version, that is its release's."""
    profile: BuildProfile
    seed: int
    types: tuple[str, ...]
    configs: tuple[str, ...]
    """Folders of the release, in the card's order; a config without a row is left out: it could not load."""
    checksums: dict[str, str]
    """Config → sha256 over its files."""
    rows: dict[str, dict[str, int]]
    """Type code (and `clean`) → source → rows."""
    skipped: tuple[Skip, ...]
    """Every (sample, type) pair without a row."""
    flags: dict[str, dict[str, int]]
    """Flag → type code → rows that carry it."""
    typing_errors: dict[str, int]
    """Words changed by `realistic_typos` → rows."""
    lengths: dict[str, dict[str, int | float]]
    """Rewriting type → texts, and the quantiles of length after / before in characters."""
    generators: dict[str, Any]
    """Rewriting type → what its generator did."""
    known_issues: dict[str, dict[str, int]]
    """Source → reason → records left out."""
    pins: tuple[dict[str, Any], ...] = ()
    """Upstream files that the build read: repository, commit, sha256."""

    def shown(self) -> Iterator[Part]:
        """Rows per type and source, and why others are not there."""
        names = self._sources()
        rows = (
            (code, *(str(found.get(one, 0)) for one in names), str(sum(found.values())))
            for code, found in self.rows.items()
        )
        yield Table(("type", *names, "rows"), rows, f"profile {self.profile}, seed {self.seed}")
        left_out = sum(map(Counter, self.known_issues.values()), Counter[str]())
        skips = Counter(skip.reason for skip in self.skipped)
        for what, found, place in (
            ("records left out", left_out, "known_issues"),
            ("skipped pairs", skips, "build_report.json"),
        ):
            if found:
                reasons = ", ".join(f"{reason} {n}" for reason, n in found.items())
                yield f"{what}: {reasons} (each one in {place})"

    def _sources(self) -> list[str]:
        """Those with rows, in the order of every table."""
        return [s for s in sources.in_tables() if any(s in by_source for by_source in self.rows.values())]

    @property
    def total(self) -> int:
        """Rows of all types and sources, clean ones included."""
        return sum(sum(by_source.values()) for by_source in self.rows.values())

    def markdown(self) -> str:
        """The readable form: rows per type and source, then why pairs were skipped, then the texts."""
        return _template("build_report.md.j2").render(
            report=self,
            sources=self._sources(),
            skipped=Counter((skip.type_code, skip.source, skip.reason) for skip in self.skipped),
        )


class Tally(msgspec.Struct, kw_only=True):
    """Counts rows and skips while they pass."""

    rows: dict[str, dict[str, int]] = {}
    skipped: list[Skip] = []
    flags: dict[str, dict[str, int]] = {}
    words: dict[int, int] = {}
    """Words that `realistic_typos` changed → rows."""
    ratios: dict[str, list[float]] = {}
    """Length after / before of every rewritten text, by type."""
    hashes: dict[str, str] = {}
    """Row id → `content_hash`."""

    def add(self, row: Sample | Skip) -> None:
        """Counts a row with its flags, rewritten texts and typing errors; a skip is kept as it is."""
        by_source = self.rows.setdefault(row.type_code, {})
        if isinstance(row, Skip):
            self.skipped.append(row)
            return
        add(by_source, row.source)
        self.hashes[row.id] = content_hash(row)
        for flag in row.flags:
            add(self.flags.setdefault(flag, {}), row.type_code)
        if row.component == "observation":
            for change in row.changes:
                if isinstance(change.before, str) and isinstance(change.after, str) and change.before:
                    self.ratios.setdefault(row.type_code, []).append(len(change.after) / len(change.before))
            if row.type_code == "realistic_typos":
                add(self.words, changed_words(row.changes[0].before, row.changes[0].after))

    def merge(self, other: "Tally") -> None:
        """Takes another tally's counts in."""
        merge(msgspec.structs.asdict(self), msgspec.structs.asdict(other))

    @property
    def typing_errors(self) -> dict[str, int]:
        """Number of changed words (as text, for JSON) → rows of `realistic_typos`."""
        return {str(n): rows for n, rows in sorted(self.words.items())}

    @property
    def lengths(self) -> dict[str, dict[str, int | float]]:
        """Type → number of rewritten texts, and min, median and max of length after / before."""
        return {
            code: {
                "texts": len(ratios),
                "min": round(min(ratios), 4),
                "median": round(stats.median(ratios), 4),
                "max": round(max(ratios), 4),
            }
            for code, ratios in self.ratios.items()
        }


def changed_words(before: str, after: str) -> int:
    """How many words differ: the larger side of every edit between the two word sequences."""
    matcher = difflib.SequenceMatcher(None, before.split(), after.split(), autojunk=False)
    return sum(max(b - a, d - c) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal")


class LiveSkip(msgspec.Struct, frozen=True):
    """A task without a row of a kind."""

    clean_id: str
    type_code: str
    world: str
    reason: str
    """A `live.placing.Reason`; of a registry type that of its unit, or `live.registry.TAKES_GOLD`."""


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
    skipped: tuple[LiveSkip, ...]
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
        return _template("live_report.md.j2").render(report=self)


class LiveTally(msgspec.Struct):
    """Counts rows of a live build while they are written."""

    rows: dict[str, dict[str, int]] = {}
    labels: dict[str, dict[str, dict[str, int]]] = {}
    positions: dict[str, dict[str, int]] = {}

    def counted(self, rows: Iterable[LiveRow]) -> Iterable[LiveRow]:
        """The same rows, counted as they pass."""
        for row in rows:
            add(self.rows.setdefault(row.type_code, {}), row.world)
            if row.label is not None and row.position is not None:
                add(self.labels.setdefault(row.type_code, {}).setdefault(row.label, {}), row.world)
                add(self.positions.setdefault(row.type_code, {}), row.position)
            yield row


def _template(name: str) -> jinja2.Template:
    environment = templates.environment("robustbench_tc.builders")
    environment.filters["inline"] = _inline
    return environment.get_template(name)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_inline(inner)}" for key, inner in value.items())
    return str(value)
