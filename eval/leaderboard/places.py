"""Which ranks the data allow every model of a board, and who is told apart from whom."""

from collections.abc import Sequence

from robustbench_tc.eval.stats import ranks
from robustbench_tc.eval.stats.ranks import Pairs, Places

from .board import Board
from .row import Row


def pairs(rows: Sequence[Row], focus: str) -> Pairs:
    """Every two models: paired over the same samples where their answers are known, else from counts."""
    samples = {row.figures.samples for row in rows}
    if len(samples) == 1 and 0 not in samples:
        right = [row.figures.right(focus) for row in rows]
        return ranks.of_samples(right, [row.figures.repeats for row in rows])
    return ranks.of_counts([row.figures.counts(focus) or (0, 0) for row in rows])


def of(board: Board, focus: str) -> dict[str, Places]:
    """`places`, worked out once for each state of the board."""
    return board.once(("places", focus), lambda: places(board, focus))


def places(board: Board, focus: str) -> dict[str, Places]:
    """Row id → its compatible ranks, of the first `ranks.MOST` models that have a rank."""
    there = [row for row in board.in_order(focus) if row.rank]
    tested = there[: ranks.MOST]
    if len(tested) < 2:
        return {}
    found = ranks.places(pairs(tested, focus), len(there))
    return {row.id: one for row, one in zip(tested, found, strict=True)}
