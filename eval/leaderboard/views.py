"""Which page stands at which address: every view of a board is made from the boards and a query alone."""

from collections.abc import Callable, Sequence

import msgspec

from . import places
from .about import about_page
from .board import Board
from .board_page import board_page
from .heatmap import heatmap_page
from .matrix import matrix_page
from .plots import plots_page
from .progress import progress_page
from .query import Query, paged, select
from .site import Boards
from .types_page import types_page

Ignored = tuple[str, ...]
Made = Callable[[Boards, Board, Query, Ignored], str]


def _others(boards: Boards) -> tuple[Sequence[Board], str]:
    """Every board, and the version that an address without one means."""
    every = boards.all()
    return list(every.values()), next(iter(every))


def _board(boards: Boards, board: Board, query: Query, ignored: Ignored) -> str:
    shown = select(board, query, ignored)
    return board_page(shown, board, *_others(boards), places.of(board, query.focus))


def _plots(boards: Boards, board: Board, query: Query, ignored: Ignored) -> str:
    every = select(board, query, ignored, whole=True, marks=False)
    return plots_page(paged(every), every.rows, board, *_others(boards))


def _heatmap(boards: Boards, board: Board, query: Query, ignored: Ignored) -> str:
    return heatmap_page(select(board, query, ignored, marks=False), board, *_others(boards))


def _matrix(boards: Boards, board: Board, query: Query, ignored: Ignored) -> str:
    shown = select(board, msgspec.structs.replace(query, page=1), ignored, marks=False)
    return matrix_page(shown, board, *_others(boards), places.of(board, query.focus))


def _types(boards: Boards, board: Board, query: Query, ignored: Ignored) -> str:
    return types_page(board, *_others(boards))


def _progress(boards: Boards, board: Board, query: Query, ignored: Ignored) -> str:
    return progress_page(board, *_others(boards), query.page)


def _about(boards: Boards, board: Board, query: Query, ignored: Ignored) -> str:
    return about_page(*_others(boards), boards.origin)


VIEWS: dict[str, Made] = {
    "/": _board,
    "/plots": _plots,
    "/heatmap": _heatmap,
    "/matrix": _matrix,
    "/types": _types,
    "/progress": _progress,
    "/about": _about,
}
"""Path → what makes its page. One that is added also needs its line in `tabs.TABS`."""
