"""Dataset cards: YAML front matter that `datasets` reads, and prose with the release's own numbers.

The report is taken as it is (rows, configs, pins), so that a card can never say another number than the
build did.
"""

from importlib.resources import files
from typing import Any, Protocol

import jinja2

from robustbench_tc import __version__, taxonomy
from robustbench_tc.schema import SOURCES


class Report(Protocol):
    """What a card needs of a build report (`builders.report.BuildReport`)."""

    @property
    def dataset_version(self) -> str: ...
    @property
    def profile(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def configs(self) -> tuple[str, ...]: ...
    @property
    def rows(self) -> dict[str, dict[str, int]]: ...
    @property
    def checksums(self) -> dict[str, str]: ...
    @property
    def total(self) -> int: ...
    @property
    def skipped(self) -> tuple[Any, ...]: ...
    @property
    def flags(self) -> dict[str, dict[str, int]]: ...
    @property
    def known_issues(self) -> dict[str, dict[str, int]]: ...
    @property
    def pins(self) -> tuple[dict[str, Any], ...]: ...


def benchmark_card(report: Report) -> str:
    """`README.md` of a benchmark release."""
    return (
        _environment()
        .get_template("robustbench_tc.md.j2")
        .render(
            report=report,
            types=[t for t in taxonomy.types("all") if t.code in report.rows],
            count={code: sum(by_source.values()) for code, by_source in report.rows.items()},
            sources=[s for s in SOURCES if any(s in by_source for by_source in report.rows.values())],
            repositories=_repositories(report),
            skips=_skips(report),
            package_version=__version__,
        )
    )


def _repositories(report: Report) -> list[dict[str, str]]:
    """One line per upstream repository of the pins."""
    found: dict[str, dict[str, str]] = {}
    for pin in report.pins:
        found.setdefault(pin["repository"], pin)
    return list(found.values())


def _skips(report: Report) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for skip in report.skipped:
        key = (skip.type_code, skip.reason)
        counts[key] = counts.get(key, 0) + 1
    return counts


def _environment() -> jinja2.Environment:
    folder = files("robustbench_tc.dataset_cards")
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: folder.joinpath(name).read_text()),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown, of our own text and our own numbers
    )
