"""The card of the training data."""

from robustbench_tc import __version__, taxonomy
from robustbench_tc.builders.toolrl_report import TrainingReport
from robustbench_tc.dataset_cards.citation import paper_bibtex

from .facts import Release
from .front_matter import configs_of, dataset_header
from .how_made import HOW_MADE
from .render import template
from .said import language_codes, languages

PURPOSES = {
    "full": "GRPO, every row perturbed (the paper's ToolRL-DR-Full)",
    "mixed": "GRPO, a share perturbed, the rest clean (the paper's ToolRL-DR-Mixed)",
    "retry": "GRPO with a transition error at the first call of the rollout",
    "paft": "fine-tuning on conversations, a share perturbed",
}


def training_card(report: TrainingReport, release: Release | None = None) -> str:
    """`README.md` of the training data: of a build, or with `release` of a release, which says more."""
    used = [code for code in report.used if report.used[code]]
    checksums = release.checksums if release else {}
    header = dataset_header(
        "ToolRL-DR",
        sum(counts["train"] + counts["validation"] for counts in report.rows.values()),
        ["tool-calling", "reinforcement-learning", "grpo", "domain-randomization"],
        configs_of(report.rows, next(iter(report.rows)), checksums, release, ("train", "validation")),
        release,
        languages=language_codes(used),
    )
    return template("toolrl_dr.md.j2").render(
        header=header,
        used=used,
        components=report.components,
        languages=languages(used),
        report=report,
        release=release,
        types=[t for t in taxonomy.types("known") if t.code in {*report.types, *report.used}],
        how_made=HOW_MADE,
        purposes=PURPOSES,
        bibtex=paper_bibtex(),
        package_version=__version__,
    )
