"""The two consoles and the few tables that several verbs print."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from ..schema import SOURCES

if TYPE_CHECKING:
    from ..builders.report import BuildReport

# A pipe has no width of its own: enough for the widest table.
out = Console(width=None if sys.stdout.isatty() else 110)
err = Console(stderr=True)


@contextmanager
def status(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner with a changing line on standard error; silent where that is no terminal."""
    with err.status(what) as spinner:

        def tell(line: str) -> None:
            spinner.update(line)

        yield tell


def build_table(report: "BuildReport") -> Table:
    """Rows per type and source of a build."""
    table = Table(title=f"profile {report.profile}, seed {report.seed}", title_justify="left", box=SIMPLE)
    table.add_column("type", no_wrap=True)
    sources = [s for s in SOURCES if any(s in by_source for by_source in report.rows.values())]
    for source in (*sources, "rows"):
        table.add_column(source, justify="right")
    for code, by_source in report.rows.items():
        counts = [by_source.get(source, 0) for source in sources]
        table.add_row(code, *map(str, counts), str(sum(counts)))
    return table
