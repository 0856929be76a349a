"""The card of the training data."""

from robustbench_tc import taxonomy
from robustbench_tc.builders.toolrl_report import TrainingReport

from .facts import Release
from .render import card
from .sentences import language_codes, languages

PURPOSES = {
    "full": "GRPO, every row perturbed (the paper's ToolRL-DR-Full)",
    "mixed": "GRPO, a share perturbed, the rest clean (the paper's ToolRL-DR-Mixed)",
    "retry": "GRPO with a transition error at the first call of the rollout",
    "paft": "fine-tuning on conversations, a share perturbed",
}


def training_card(report: TrainingReport, release: Release | None = None) -> str:
    """`README.md` of the training data: of a build, or with `release` of a release, which says more."""
    used = [code for code in report.used if report.used[code]]
    return card(
        "toolrl_dr.md.j2",
        report,
        release,
        title="ToolRL-DR",
        rows=sum(counts["train"] + counts["validation"] for counts in report.rows.values()),
        tags=("tool-calling", "reinforcement-learning", "grpo", "domain-randomization"),
        configs=report.rows,
        checksums=release.checksums if release else {},
        header={"splits": ("train", "validation"), "languages": language_codes(used)},
        used=used,
        components=report.components,
        languages=languages(used),
        types=[t for t in taxonomy.types("known") if t.code in {*report.types, *report.used}],
        purposes=PURPOSES,
    )
