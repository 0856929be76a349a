"""The files of a release that hold its version: card and reports, croissant.json, eval.yaml, the licence."""

import hashlib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

from robustbench_tc.audits.report import AuditReport
from robustbench_tc.builders.report import BuildReport, LiveReport
from robustbench_tc.builders.sources import OWN_CASES
from robustbench_tc.builders.toolrl_report import TrainingReport
from robustbench_tc.errors import UserError
from robustbench_tc.io import manifest, marker
from robustbench_tc.io.files import decoded
from robustbench_tc.io.manifest import Manifest
from robustbench_tc.taxonomy import CLEAN

from . import responsible_ai, sentences
from .checkpoint import NAME as CHECKPOINT, Checkpoint, checkpoint_card
from .croissant import croissant
from .eval_yaml import NAME as EVAL, eval_yaml
from .facts import Release
from .live import live_card
from .render import OWN_TITLE, benchmark_card, book_of, own_card
from .training import training_card

NO_LICENCE = b"""The tools and requests of this dataset are their maker's. Whoever published it says
what may be done with them; robustbench-tc, which the rows were made with, gives no licence for them.
"""
"""LICENSE of a release of own tools."""

T = TypeVar("T")
Said: TypeAlias = tuple[str, dict[str, Any]]
"""A card, and what `croissant` takes besides the release."""


def render(folder: Path, release: Manifest) -> Mapping[str, bytes]:
    """The files of a release that hold its version, from the reports and the data files that `release` names.

    Raises UserError.
    """
    if release.kind == "checkpoint":
        card = checkpoint_card(read_build_file(folder / CHECKPOINT, Checkpoint), release.version)
        return {"README.md": card.encode()}
    kinds: dict[str, tuple[Any, Any, str]] = {
        "robustbench-tc": (BuildReport, _benchmark, "RobustBench-TC"),
        "robustbench-tc-live": (LiveReport, _live, "RobustBench-TC live"),
        "toolrl-dr": (TrainingReport, _training, "ToolRL-DR"),
    }
    kind, say, title = kinds[release.kind]
    report = read_build_file(folder / marker.BUILD, kind)
    upstream = ["toolrl"] if release.kind == "toolrl-dr" else [str(row.get("source")) for row in report.pins]
    its = Release(folder, release, read_audit(folder), title, upstream)
    card, about = say(report, its)
    made = {"README.md": card.encode(), "build_report.md": report.markdown().encode()}
    named = report.files | {name: hashlib.sha256(data).hexdigest() for name, data in made.items()}
    made["build_report.json"] = msgspec.structs.replace(report, files=named).json()
    own = release.profile == OWN_CASES
    if release.kind == "robustbench-tc":
        made[EVAL] = eval_yaml(OWN_TITLE if own else title, about["description"], report.configs)
    licence = NO_LICENCE if own else licence_text()
    return {**made, "croissant.json": croissant(its, **about), "LICENSE": licence}


def rendered_again(folder: Path) -> Mapping[str, bytes]:
    """The same for a finished release, from its own manifest and reports. Raises UserError."""
    return render(folder, manifest.read_manifest(folder))


def read_build_file(path: Path, kind: type[T]) -> T:
    """What a build's file says, as this package's version writes it. Raises UserError."""
    if not path.is_file():
        raise UserError(f"{path} is missing: build the folder again")
    return decoded(path.read_bytes(), kind, path)


def read_audit(folder: Path) -> AuditReport:
    """The audit report in a folder. UserError where there is none, or none that this package wrote."""
    return read_build_file(folder / marker.AUDIT, AuditReport)


def licence_text() -> bytes:
    """The licence that the package is installed with (Apache-2.0 asks for a copy with what is passed on)."""
    try:
        text = distribution("robustbench-tc").read_text("licenses/LICENSE")
    except PackageNotFoundError:
        text = None
    if text is None:
        raise UserError("robustbench-tc is not installed with its LICENSE: install it with pip")
    return text.encode()


def _benchmark(report: BuildReport, release: Release) -> Said:
    codes = [code for code, by_source in report.rows.items() if by_source]
    clean = sum(report.rows.get(CLEAN, {}).values())
    sources = list(dict.fromkeys(row["source"] for row in report.pins))
    own = report.profile == OWN_CASES
    asked = "Requests to the author's own tools" if own else "Tool calling"
    card = own_card(report, book_of(release.folder), release) if own else benchmark_card(report, release)
    return card, {
        "description": f"{asked} under deployment noise",
        "responsible_ai": responsible_ai.benchmark(clean, sources, _writers(report), codes),
        "languages": sentences.language_codes(codes),
    }


def _training(report: TrainingReport, release: Release) -> Said:
    codes = [code for code, rows in report.used.items() if rows]
    rows = sum(row["train"] for row in report.rows.values())
    return training_card(report, release), {
        "description": "Training rows for tool calling",
        "responsible_ai": responsible_ai.training(rows, _writers(report), codes),
        "languages": sentences.language_codes(codes),
    }


def _live(report: LiveReport, release: Release) -> Said:
    tasks = sum(report.rows.get(CLEAN, {}).values())
    return live_card(report, release), {
        "description": "Tool calling in worlds that calls change, under faults",
        "responsible_ai": responsible_ai.live(tasks, list(report.worlds)),
        "keywords": ("tool calling", "agents", "robustness"),
    }


def _writers(report: BuildReport | TrainingReport) -> list[str]:
    """Who wrote texts of a build."""
    return sorted({str(made.get("generator", "")) for made in report.generators.values()} - {""})
