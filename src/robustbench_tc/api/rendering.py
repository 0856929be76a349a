"""The files of a release that hold its version."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError
from .live import render_live
from .own import NO_LICENCE, card_of

if TYPE_CHECKING:
    from ..release.freeze import Facts


def render(folder: Path, facts: "Facts") -> Mapping[str, bytes]:
    """The files of a release that hold its version: cards and reports, croissant.json, the licence."""
    import hashlib

    import msgspec

    from ..builders.report import BuildReport
    from ..builders.sources.pins import pins
    from ..builders.toolrl_report import TrainingReport
    from ..dataset_cards import responsible_ai
    from ..dataset_cards.checkpoint import checkpoint_card
    from ..dataset_cards.croissant import About, croissant
    from ..dataset_cards.facts import release_facts
    from ..dataset_cards.training import training_card
    from ..io import citation
    from ..release.freeze import OWN_PROFILE, licence_text

    if facts.kind == "checkpoint":
        return {"README.md": checkpoint_card(facts.build, facts.version).encode()}
    if facts.kind == "robustbench-tc-live":
        return render_live(folder, facts)
    benchmark = facts.kind == "robustbench-tc"
    built = {**facts.build, "dataset_version": facts.version}
    report: BuildReport | TrainingReport
    try:
        report = msgspec.convert(built, BuildReport) if benchmark else msgspec.convert(built, TrainingReport)
    except msgspec.ValidationError as error:
        raise UserError(f"build_report.json is not of this package's version: {error}") from None
    read = {row["source"]: row for row in facts.build.get("pins", ())} if benchmark else {"toolrl": None}
    sha256 = {path: entry.sha256 for path, entry in facts.files.items()}
    published = datetime.date.fromisoformat(facts.created_at[:10])
    address = citation.hub_address(facts.repo) if facts.repo else citation.ADDRESS
    title = "RobustBench-TC" if benchmark else "ToolRL-DR"
    bibtex = citation.dataset_bibtex(title, facts.version, published.year, address, facts.doi)
    release = release_facts(
        folder,
        version=facts.version,
        sha256=sha256,
        audit=facts.audit or {},
        citations={name: origin.citation for name, origin in pins().sources.items() if name in read},
        bibtex=bibtex,
        repo=facts.repo,
        previous=facts.previous.version if facts.previous else None,
        step=facts.previous.step if facts.previous else "",
    )
    writers = sorted({str(made.get("generator", "")) for made in report.generators.values()} - {""})
    if isinstance(report, BuildReport):
        card = card_of(folder, report, release)
        clean = sum(report.rows.get("clean", {}).values())
        said = responsible_ai.benchmark(clean, list(read), writers)
    else:
        card = training_card(report, release)
        said = responsible_ai.training(sum(row["train"] for row in report.rows.values()), writers)
    own = isinstance(report, BuildReport) and report.profile == OWN_PROFILE
    licence = NO_LICENCE if own else licence_text()
    description = "Tool calling under deployment noise" if benchmark else "Training rows for tool calling"
    about = About(
        name=facts.kind,
        version=facts.version,
        description="Requests to somebody's own tools under deployment noise" if own else description,
        creator=citation.CREATOR,
        url=address,
        published=published,
        cite_as=bibtex,
        keywords=("tool calling", "robustness"),
        doi=facts.doi,
        responsible_ai=said,
    )
    made = {"README.md": card.encode(), "build_report.md": report.markdown().encode()}
    named = report.files | {name: hashlib.sha256(data).hexdigest() for name, data in made.items()}
    made["build_report.json"] = msgspec.structs.replace(report, files=named).json()
    return {**made, "croissant.json": croissant(folder, about, sha256), "LICENSE": licence}
