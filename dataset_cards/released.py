"""The files of a release that hold its version: card and reports, croissant.json, the licence."""

import datetime
import hashlib
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from robustbench_tc.audits.report import AuditReport
from robustbench_tc.builders.report import BuildReport, LiveReport
from robustbench_tc.builders.sources import OWN_CASES
from robustbench_tc.builders.sources.pins import pins
from robustbench_tc.builders.toolrl_report import TrainingReport
from robustbench_tc.dataset_cards import citation
from robustbench_tc.errors import UserError
from robustbench_tc.io import manifest, marker
from robustbench_tc.io.manifest import Manifest
from robustbench_tc.taxonomy import CLEAN

from . import responsible_ai, said
from .checkpoint import NAME as CHECKPOINT, checkpoint_card
from .croissant import About, croissant
from .facts import Release, release_facts
from .live import examples_of, live_card
from .own import book_of, own_card
from .render import benchmark_card
from .training import training_card

NO_LICENCE = b"""The tools and requests of this dataset are their maker's. Whoever published it says
what may be done with them; robustbench-tc, which the rows were made with, gives no licence for them.
"""
"""LICENSE of a release of own tools."""


class Facts(NamedTuple):
    """What the cards of a release are rendered from, besides the folder itself."""

    manifest: Manifest
    """Its files: those of the data."""
    build: dict[str, Any]
    """`build_report.json`, or `checkpoint.json`."""
    audit: AuditReport | None

    @property
    def published(self) -> datetime.date:
        """The day of the release."""
        return datetime.date.fromisoformat(self.manifest.created_at[:10])

    @property
    def address(self) -> str:
        """Where it is found: on the Hub, or the repository of the package."""
        return citation.hub_address(self.manifest.repo) if self.manifest.repo else citation.ADDRESS

    @property
    def sha256(self) -> dict[str, str]:
        """Of the data files, by path."""
        return {path: entry.sha256 for path, entry in self.manifest.files.items()}


Report: TypeAlias = BuildReport | TrainingReport | LiveReport
T = TypeVar("T")


class _Said(NamedTuple):
    """What differs from kind to kind."""

    report: Report
    release: Release
    card: str
    description: str
    responsible_ai: responsible_ai.Properties
    keywords: tuple[str, ...] = ("tool calling", "robustness")
    languages: Sequence[str] = ("en",)
    licence: bytes | None = None
    """None: the package's."""


def render(folder: Path, facts: Facts) -> Mapping[str, bytes]:
    """The files of a release that hold its version. Raises UserError."""
    release = facts.manifest
    if release.kind == "checkpoint":
        return {"README.md": checkpoint_card(facts.build, release.version).encode()}
    kinds = {"robustbench-tc": _benchmark, "robustbench-tc-live": _live, "toolrl-dr": _training}
    its = kinds[release.kind](folder, facts)
    about = About(
        name=release.kind,
        version=release.version,
        description=its.description,
        creator=citation.CREATOR,
        url=facts.address,
        published=facts.published,
        cite_as=its.release.bibtex,
        keywords=its.keywords,
        doi=release.doi,
        responsible_ai=its.responsible_ai,
        languages=its.languages,
    )
    made = {"README.md": its.card.encode(), "build_report.md": its.report.markdown().encode()}
    named = its.report.files | {name: hashlib.sha256(data).hexdigest() for name, data in made.items()}
    made["build_report.json"] = msgspec.structs.replace(its.report, files=named).json()
    licence = licence_text() if its.licence is None else its.licence
    return {**made, "croissant.json": croissant(folder, about, facts.sha256), "LICENSE": licence}


def rendered_again(folder: Path) -> Mapping[str, bytes]:
    """The same for a finished release, from its own manifest and reports. Raises UserError."""
    release = manifest.read(folder)
    release = msgspec.structs.replace(release, files=manifest.data_files(release.files, release.kind))
    if release.kind == "checkpoint":
        return render(folder, Facts(release, load(folder / CHECKPOINT), None))
    return render(folder, Facts(release, load(folder / marker.BUILD), read_audit(folder)))


def load(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a build. Raises UserError."""
    try:
        found = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path} is missing: build the folder again") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} holds no object: build the folder again")
    return found


def converted(plain: dict[str, Any], kind: type[T], path: Path | str) -> T:
    """What `load` read of the file `path`, as this package's version writes it. Raises UserError."""
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise UserError(f"{path} is not as this package writes it: {error}") from None


def read_audit(folder: Path) -> AuditReport:
    """The audit report in a folder. UserError where there is none, or none that this package wrote."""
    return converted(load(folder / marker.AUDIT), AuditReport, folder / marker.AUDIT)


def licence_text() -> bytes:
    """The licence that the package is installed with (Apache-2.0 asks for a copy with what is passed on)."""
    try:
        text = distribution("robustbench-tc").read_text("licenses/LICENSE")
    except PackageNotFoundError:
        text = None
    if text is None:
        raise UserError("robustbench-tc is not installed with its LICENSE: install it with pip")
    return text.encode()


def _benchmark(folder: Path, facts: Facts) -> _Said:
    report = converted(facts.build, BuildReport, marker.BUILD)
    read = {row["source"]: row for row in facts.build.get("pins", ())}
    release = _stated(folder, facts, "RobustBench-TC", read)
    codes = [code for code, by_source in report.rows.items() if by_source]
    clean = sum(report.rows.get(CLEAN, {}).values())
    own = report.profile == OWN_CASES
    asked = "Requests to somebody's own tools" if own else "Tool calling"
    return _Said(
        report,
        release,
        own_card(report, book_of(folder), release) if own else benchmark_card(report, release),
        f"{asked} under deployment noise",
        responsible_ai.benchmark(clean, list(read), _writers(report), codes),
        languages=said.language_codes(codes),
        licence=NO_LICENCE if own else None,
    )


def _training(folder: Path, facts: Facts) -> _Said:
    report = converted(facts.build, TrainingReport, marker.BUILD)
    release = _stated(folder, facts, "ToolRL-DR", ("toolrl",))
    codes = [code for code, rows in report.used.items() if rows]
    rows = sum(row["train"] for row in report.rows.values())
    return _Said(
        report,
        release,
        training_card(report, release),
        "Training rows for tool calling",
        responsible_ai.training(rows, _writers(report), codes),
        languages=said.language_codes(codes),
    )


def _live(folder: Path, facts: Facts) -> _Said:
    report = converted(facts.build, LiveReport, marker.BUILD)
    release = _stated(folder, facts, "RobustBench-TC live", {str(row.get("source")) for row in report.pins})
    tasks = sum(report.rows.get(CLEAN, {}).values())
    return _Said(
        report,
        release,
        live_card(report, release, examples_of(folder, report.configs)),
        "Tool calling in worlds that calls change, under faults",
        responsible_ai.live(tasks, list(report.worlds)),
        keywords=("tool calling", "agents", "robustness"),
    )


def _stated(folder: Path, facts: Facts, title: str, sources: Collection[str]) -> Release:
    """What the card says beyond a build's. `title`: of the BibTeX entry; `sources`: those to be cited."""
    assert facts.audit is not None, "every dataset is audited"
    cited = {name: origin.citation for name, origin in pins().sources.items() if name in sources}
    its, year = facts.manifest, facts.published.year
    return release_facts(
        folder,
        version=its.version,
        sha256=facts.sha256,
        audit=facts.audit,
        citations=cited,
        bibtex=citation.dataset_bibtex(title, its.version, year, facts.address, its.doi),
        repo=its.repo,
        previous=its.previous.version if its.previous else None,
        step=its.previous.step if its.previous else "",
    )


def _writers(report: BuildReport | TrainingReport) -> list[str]:
    """Who wrote texts of a build."""
    return sorted({str(made.get("generator", "")) for made in report.generators.values()} - {""})
