"""Simulates how often the intervals hold and how often a sentence claims what is not there; writes both
tables.

`make statistics-check`, or python -m tests.eval.statistics.check: under 10 minutes on 2 cores. Exit code 1
where a cell or a sentence misses its bound; the tables go into docs/statistics.md either way.
"""

import re
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from robustbench_tc.io.files import atomic_file

from . import alarms, coverage
from .coverage import Cell, Found

DOCS = Path("docs/statistics.md")


def main(
    docs: Annotated[Path, typer.Option(help="The page that holds the tables.")] = DOCS,
    workers: Annotated[int, typer.Option(min=1)] = 2,
) -> None:
    """Simulates everything and writes it."""
    started = time.perf_counter()
    with ProcessPoolExecutor(workers) as pool:
        rates = dict(zip(alarms.MODELS, pool.map(_rates, alarms.MODELS), strict=True))
        ours = list(
            _simulated(pool, (coverage.levels, coverage.of_two, coverage.retention), coverage.cells())
        )
        papers = list(_simulated(pool, (coverage.papers,), coverage.PAPER_CELLS))
    write(docs, "coverage", [*coverage.tables(ours), "", *worst(ours)])
    write(docs, "paper coverage", coverage.tables(papers))
    write(docs, "alarms", alarms.table(rates))
    low = [one for one in ours if one.coverage < coverage.AT_LEAST]
    high = [(model, name) for model, of in rates.items() for name, n in of.items() if n > alarms.AT_MOST]
    for one in (*low, *high):
        sys.stdout.write(f"misses its bound: {one}\n")
    wall, busy = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = busy.ru_utime + busy.ru_stime
    sys.stdout.write(f"{len(ours)} cells of intervals, {wall:.0f} s, {cpu:.0f} s of processors\n")
    raise typer.Exit(1 if low or high else 0)


def _rates(model: str) -> dict[str, float]:
    return alarms.rates(alarms.alarms(model))


def _simulated(
    pool: ProcessPoolExecutor, kinds: Sequence[Callable[[Cell], Iterable[Found]]], cells: Sequence[Cell]
) -> Iterator[Found]:
    for kind in kinds:
        for found in pool.map(partial(_listed, kind), cells):
            yield from found


def _listed(kind: Callable[[Cell], Iterable[Found]], cell: Cell) -> list[Found]:
    return list(kind(cell))


def worst(found: Sequence[Found]) -> Iterator[str]:
    """The cell with the lowest coverage, in words."""
    one = min(found, key=lambda each: each.coverage)
    cell = f"p = {one.cell.p:g}, {one.cell.samples} samples, ICC {one.cell.icc:g}"
    yield f"Lowest of all {len(found)} cells: {one.coverage:.3f} ({one.what}; {cell})."


def write(docs: Path, name: str, lines: Iterable[str]) -> None:
    """Prints a table and puts it in its place on the page."""
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text + "\n")
    place = re.compile(rf"(<!-- {name}: [^>]*-->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    page, times = place.subn(lambda match: match.group(1) + text + match.group(2), docs.read_text())
    assert times == 1, f"no place for the table {name} in {docs}"
    with atomic_file(docs, replace=True) as path:
        path.write_text(page)


if __name__ == "__main__":
    typer.run(main)
