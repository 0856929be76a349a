"""Which ranks the data allow every model of a board, and who is told apart from whom."""

from collections.abc import Sequence
from functools import lru_cache

from robustbench_tc.eval.stats import ranks
from robustbench_tc.eval.stats.ranks import Pairs, Places

from .board import Board
from .row import Figures, Row, right_values


def pairs(rows: Sequence[Row], focus: str) -> Pairs:
    """Every two models: paired over the same samples where their answers are known, else from counts."""
    return _pairs([row.figures for row in rows], focus)


def _pairs(models: Sequence[Figures], focus: str) -> Pairs:
    samples = {one.samples for one in models}
    if len(samples) == 1 and 0 not in samples:
        right = right_values(models, focus)
        return ranks.of_samples(right, [one.repeats for one in models])
    return ranks.of_counts([one.counts(focus) or (0, 0) for one in models])


def of(board: Board, focus: str) -> dict[str, Places]:
    """`places`, worked out once for each state of the board."""
    return board.once(("places", focus), lambda: places(board, focus))


def places(board: Board, focus: str) -> dict[str, Places]:
    """Row id → its compatible ranks, of the first `ranks.MOST` models that have a rank."""
    there = [row for row in board.in_order(focus) if row.rank]
    tested = there[: ranks.MOST]
    if len(tested) < 2:
        return {}
    found = _places(tuple(row.figures for row in tested), focus, len(there))
    return {row.id: one for row, one in zip(tested, found, strict=True)}


@lru_cache(maxsize=32)  # most additions have no rank and change nothing here
def _places(tested: tuple[Figures, ...], focus: str, ranked: int) -> tuple[Places, ...]:
    return tuple(ranks.places(_pairs(tested, focus), ranked))
