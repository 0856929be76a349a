"""The card of a dataset of own tools: what it is, and that it is not the published benchmark."""

from pathlib import Path

from robustbench_tc import __version__, sources, taxonomy
from robustbench_tc.builders.report import BuildReport
from robustbench_tc.errors import UserError
from robustbench_tc.own.book import NAME, Book, read

from .facts import Release
from .front_matter import configs_of, dataset_header
from .how_made import FLAGS, HOW_MADE
from .render import skips, template


def own_card(report: BuildReport, book: Book, release: Release | None = None) -> str:
    """`README.md` of a build from `rbtc build --cases`, or with `release` of a release of it."""
    count = {code: sum(by_source.values()) for code, by_source in report.rows.items()}
    types = [t for t in taxonomy.known_with(count) if count.get(t.code)]
    header = dataset_header(
        "Own tools, built with RobustBench-TC",
        report.total,
        ["tool-calling", "function-calling", "robustness", "agents"],
        configs_of(report.configs, taxonomy.CLEAN, report.checksums, release),
        release,
        licence="other",
    )
    return template("robustbench_tc_own.md.j2").render(
        header=header,
        report=report,
        release=release,
        book=book,
        source=sources.OWN,
        types=types,
        without_rows=[code for code in count if code != taxonomy.CLEAN and not count[code]],
        count=count,
        skips=skips(report),
        how_made=HOW_MADE,
        flags=FLAGS,
        package_version=__version__,
    )


def book_of(folder: Path) -> Book:
    """The book of a dataset of own tools. Raises UserError where it has none."""
    if (found := read(folder)) is None:
        raise UserError(f"{NAME} is missing: build the dataset again")
    return found
