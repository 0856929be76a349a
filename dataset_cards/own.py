"""The card of a dataset of own tools: what it is, and that it is not the published benchmark."""

from pathlib import Path

from robustbench_tc import sources, taxonomy
from robustbench_tc.builders.configs import combined
from robustbench_tc.builders.report import BuildReport
from robustbench_tc.errors import UserError
from robustbench_tc.own.book import NAME, Book, read_book

from .facts import Release
from .render import card, skips

TITLE = "Own tools, built with RobustBench-TC"
"""What such a dataset is called where others stand beside it."""


def own_card(report: BuildReport, book: Book, release: Release | None = None) -> str:
    """`README.md` of a build from `rbtc build --cases`, or with `release` of a release of it."""
    count = {code: sum(by_source.values()) for code, by_source in report.rows.items()}
    return card(
        "robustbench_tc_own.md.j2",
        report,
        release,
        title=TITLE,
        rows=report.total,
        tags=("tool-calling", "function-calling", "robustness", "agents"),
        configs=report.configs,
        header={"licence": "other", "combined": combined(report.configs)},
        book=book,
        source=sources.OWN,
        types=[t for t in taxonomy.known_with(count) if count.get(t.code)],
        without_rows=[code for code in count if code != taxonomy.CLEAN and not count[code]],
        count=count,
        skips=skips(report),
    )


def book_of(folder: Path) -> Book:
    """The book of a dataset of own tools. Raises UserError where it has none."""
    if (found := read_book(folder)) is None:
        raise UserError(f"{NAME} is missing: build the dataset again")
    return found
