"""The tab of the defended runs."""

from collections.abc import Callable, Sequence

from robustbench_tc.eval.defend import DEFENCES

from . import pages
from .board import Board
from .defended import group, keys
from .query import Query
from .records import Entry
from .sample_pages import part

GROUPS = 20
"""Models of a page: every defended run of each is tested against its plain run."""


def defences_page(
    board: Board,
    boards: Sequence[Board],
    default: str,
    page: int,
    entry_of: Callable[[str], Entry | None],
) -> str:
    """The groups of a page."""
    found = part(keys(board), page, GROUPS)
    return pages.render(
        "defences.html.j2",
        title=f"Defences, {pages.label(board)}",
        here="defences",
        board=board,
        boards=boards,
        default=default,
        query=Query(version=board.version),
        found=found,
        groups=[group(board, key, entry_of) for key in found.rows],
        kinds=list(DEFENCES.values()),
        label=pages.label,
    )
