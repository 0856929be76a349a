"""The files of a release that hold its version."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .live import render_live
from .own import NO_LICENCE, card_of
from .release_files import files_around, report_of, stated

if TYPE_CHECKING:
    from ..release.freeze import Facts

KEYWORDS = ("tool calling", "robustness")


def render(folder: Path, facts: "Facts") -> Mapping[str, bytes]:
    """The files of a release that hold its version: cards and reports, croissant.json, the licence."""
    from ..dataset_cards.checkpoint import checkpoint_card

    if facts.kind == "checkpoint":
        return {"README.md": checkpoint_card(facts.build, facts.version).encode()}
    if facts.kind == "robustbench-tc-live":
        return render_live(folder, facts)
    if facts.kind == "robustbench-tc":
        return _benchmark(folder, facts)
    return _training(folder, facts)


def _benchmark(folder: Path, facts: "Facts") -> Mapping[str, bytes]:
    from ..builders.report import BuildReport
    from ..dataset_cards import responsible_ai, said
    from ..release.freeze import OWN_PROFILE, licence_text

    report = report_of(facts, BuildReport)
    read = {row["source"]: row for row in facts.build.get("pins", ())}
    release = stated(folder, facts, "RobustBench-TC", read)
    clean = sum(report.rows.get("clean", {}).values())
    codes = [code for code, by_source in report.rows.items() if by_source]
    own = report.profile == OWN_PROFILE
    asked = "Requests to somebody's own tools" if own else "Tool calling"
    return files_around(
        folder,
        facts,
        report,
        release,
        card=card_of(folder, report, release),
        description=f"{asked} under deployment noise",
        keywords=KEYWORDS,
        responsible_ai=responsible_ai.benchmark(clean, list(read), _writers(report.generators), codes),
        languages=said.language_codes(codes),
        licence=NO_LICENCE if own else licence_text(),
    )


def _training(folder: Path, facts: "Facts") -> Mapping[str, bytes]:
    from ..builders.toolrl_report import TrainingReport
    from ..dataset_cards import responsible_ai, said
    from ..dataset_cards.training import training_card
    from ..release.freeze import licence_text

    report = report_of(facts, TrainingReport)
    release = stated(folder, facts, "ToolRL-DR", ("toolrl",))
    codes = [code for code, rows in report.used.items() if rows]
    rows = sum(row["train"] for row in report.rows.values())
    return files_around(
        folder,
        facts,
        report,
        release,
        card=training_card(report, release),
        description="Training rows for tool calling",
        keywords=KEYWORDS,
        responsible_ai=responsible_ai.training(rows, _writers(report.generators), codes),
        languages=said.language_codes(codes),
        licence=licence_text(),
    )


def _writers(generators: "Mapping[str, Mapping[str, object]]") -> list[str]:
    """Who wrote texts of a build."""
    return sorted({str(made.get("generator", "")) for made in generators.values()} - {""})
