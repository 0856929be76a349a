"""The two consoles and the few tables that several verbs print."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from .. import taxonomy
from ..schema import SOURCES

if TYPE_CHECKING:
    from ..builders.report import BuildReport

out = Console()
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
    table = Table(title=f"profile {report.profile}, seed {report.seed}", title_justify="left")
    table.add_column("type", no_wrap=True)
    table.add_column("component")
    sources = [s for s in SOURCES if any(s in by_source for by_source in report.rows.values())]
    for source in (*sources, "rows"):
        table.add_column(source, justify="right")
    for code, by_source in report.rows.items():
        counts = [by_source.get(source, 0) for source in sources]
        component = taxonomy.component_of(code) or ""
        table.add_row(code, component, *map(str, counts), str(sum(counts)))
    return table
