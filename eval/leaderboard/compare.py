"""Up to six models of one board beside one another: every two tested in a focus, and the rows that tell them
apart."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.significance import holm
from robustbench_tc.eval.stats.values import codes_of

from .board import differences
from .row import CONDITIONS, Row
from .samples import Rows, verdicts


class Pair(NamedTuple):
    """Two of the models, b − a."""

    a: Row
    b: Row
    difference: Interval
    p: float
    p_holm: float
    """Corrected for every pair of the page."""
    only_a: int | None
    """Rows that a alone has right; None where samples are not known."""
    only_b: int | None


def pairs(models: Sequence[Row], focus: str) -> list[Pair]:
    """Every two models in one of `board.TESTED`; those that lack it are left out."""
    found = {}
    for a, b in combinations(models, 2):
        for one in differences(a.figures, b.figures, [focus]):
            found[a.id, b.id] = (a, b, one)
    corrected = holm({f"{a} {b}": one.p for (a, b), (_, _, one) in found.items()})
    return [
        Pair(a, b, one.difference, one.p, corrected[f"{a.id} {b.id}"], *_alone(a, b, focus))
        for a, b, one in found.values()
    ]


def _alone(a: Row, b: Row, focus: str) -> tuple[int | None, int | None]:
    sides = [verdicts(one.figures) for one in (a, b)]
    if sides[0] is None or sides[1] is None or sides[0].shape != sides[1].shape:
        return None, None
    where = [CONDITIONS.index(code) for code in codes_of(focus)]
    mine, theirs = (side[where] for side in sides if side is not None)
    return int((mine > theirs).sum()), int((theirs > mine).sum())


class Split(NamedTuple):
    """A type by how often the models are not all right or all wrong."""

    type_code: str
    differ: int
    rows: int


def splits(models: Sequence[Row], rows: Rows) -> list[Split]:
    """Clean and every core type, most first; nothing where a model's samples are not the dataset's."""
    sides = [found for one in models if (found := verdicts(one.figures, rows)) is not None]
    if len(sides) < 2 or len(sides) < len(models):
        return []
    right = np.sum(sides, axis=0)
    differ = (right > 0) & (right < len(sides))
    there = models[0].figures.columns()[1]
    made = [Split(code, int(differ[at].sum()), int(there[at].sum())) for at, code in enumerate(CONDITIONS)]
    return sorted(made, key=lambda one: -one.differ)
