"""The tab of the packs: what each asks, and the tables of the models that hold it. They move no place."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, get_args

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats import packs
from robustbench_tc.eval.stats.levels import COLUMNS
from robustbench_tc.eval.stats.packs import Cell, Table

from . import pages
from .board import Board
from .query import Query
from .records import Entry
from .row import Row
from .sample_pages import part

MODELS = 20
"""Models of a page: their whole entries are read."""

PACKS: tuple[str, ...] = tuple(name for name in get_args(taxonomy.Pack) if name != "core")

_PACK = COLUMNS.index("pack")


class OfModel(NamedTuple):
    """The lines of one model in a table."""

    row: Row
    lines: Sequence[tuple[Cell, ...]]


class Shown(NamedTuple):
    """A table over models."""

    title: str
    columns: Sequence[str]
    models: Sequence[OfModel]
    note: str


def packs_page(
    board: Board,
    boards: Sequence[Board],
    default: str,
    pack: str,
    page: int,
    entry_of: Callable[[str], Entry | None],
) -> str:
    """`pack`: empty for the first that a model holds. `entry_of`: everything that is known of a row's run."""
    found = part(board.rows, page, MODELS)
    entries = [(row, entry) for row in found.rows if (entry := entry_of(row.id)) is not None]
    held = {name: sum(name in entry.packs for _, entry in entries) for name in PACKS}
    chosen = pack or next((name for name, n in held.items() if n), PACKS[0])
    return pages.render(
        "packs.html.j2",
        title=f"Packs, {pages.label(board)}",
        here="packs",
        board=board,
        boards=boards,
        default=default,
        query=Query(version=board.version),
        found=found,
        packs=held,
        chosen=chosen,
        asks=[one for one in taxonomy.types("all") if one.pack == chosen],
        tables=tables(entries, chosen),
        label=pages.label,
        spelled=packs.typeset,
    )


def tables(entries: Sequence[tuple[Row, Entry]], pack: str) -> list[Shown]:
    """What the models' entries say of a pack, a table at a time; the lines by level stand first."""
    found: dict[str, tuple[Table, list[OfModel]]] = {}
    for row, entry in entries:
        for table in entry.tables:
            if table.name == "levels":
                lines = tuple(line for line in table.rows if line[_PACK] == pack)
            else:
                lines = table.rows if table.pack == pack else ()
            if lines:
                found.setdefault(table.name, (table, []))[1].append(OfModel(row, lines))
    return [Shown(one.title, one.columns, models, one.note) for one, models in found.values()]
