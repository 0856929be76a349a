"""Dataset cards: YAML front matter that `datasets` reads, and prose with the release's own numbers.

The reports are taken as they are and the rest is counted in the release's files (`facts.py`), so that a card
can never say another number than its data hold.
"""

from collections import Counter

import jinja2

from robustbench_tc import __version__, sources, taxonomy
from robustbench_tc.builders.report import BuildReport, LiveReport
from robustbench_tc.dataset_cards.citation import paper_bibtex
from robustbench_tc.io import templates
from robustbench_tc.schema import GOLD_NOT_STATED

from . import said
from .facts import Release
from .front_matter import configs_of, dataset_header
from .how_made import FLAGS, HOW_MADE, PAPER_ROWS, PAPER_SOURCES


def benchmark_card(report: BuildReport, release: Release | None = None) -> str:
    """`README.md` of the benchmark: of a build, or with `release` of a release, which says more."""
    counts = ((code, sum(by_source.values())) for code, by_source in report.rows.items())
    count = {code: rows for code, rows in counts if rows}
    types = [t for t in taxonomy.known_with(count) if t.code in count]
    header = dataset_header(
        "RobustBench-TC",
        report.total,
        ["tool-calling", "function-calling", "robustness", "agents", "benchmark"],
        configs_of(report.configs, taxonomy.CLEAN, report.checksums, release),
        release,
        languages=said.language_codes(count),
    )
    return template("robustbench_tc.md.j2").render(
        header=header,
        report=report,
        release=release,
        types=types,
        count=count,
        said=said,
        further_requests=said.further_requests(count),
        skips=skips(report),
        how_made=HOW_MADE,
        flags=FLAGS,
        answerable=_answerable(report),
        per_source=per_source(report),
        core=len(taxonomy.codes()) + 1,
        paper_sources=PAPER_SOURCES,
        paper_rows=PAPER_ROWS,
        bibtex=paper_bibtex(),
        package_version=__version__,
    )


def _answerable(report: BuildReport) -> dict[str, tuple[int, int]]:
    """(rows that somebody could answer, rows) of clean and of the core types."""
    found = {"clean": (0, 0), "perturbed": (0, 0)}
    core = set(taxonomy.codes())
    for code, by_source in report.rows.items():
        if code == taxonomy.CLEAN or code in core:
            name = "clean" if code == taxonomy.CLEAN else "perturbed"
            rows = sum(by_source.values())
            known = rows - report.flags.get(GOLD_NOT_STATED, {}).get(code, 0)
            found[name] = (found[name][0] + known, found[name][1] + rows)
    return found


def per_source(report: BuildReport) -> dict[str, tuple[int, int]]:
    """Source → its clean rows, and its rows in clean and the core types together."""
    core = [report.rows[code] for code in (taxonomy.CLEAN, *taxonomy.codes()) if code in report.rows]
    found = {source: sum(rows.get(source, 0) for rows in core) for source in sources.in_tables()}
    clean = report.rows.get(taxonomy.CLEAN, {})
    return {source: (clean.get(source, 0), rows) for source, rows in found.items() if rows}


def skips(report: BuildReport | LiveReport) -> dict[tuple[str, str], int]:
    """(type, reason) → pairs without a row."""
    return Counter((skip.type_code, skip.reason) for skip in report.skipped)


def template(name: str) -> jinja2.Template:
    """A template of this room."""
    return templates.environment("robustbench_tc.dataset_cards").get_template(name)
