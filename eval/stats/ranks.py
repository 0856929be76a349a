"""Which places of a ranking the data allow: every two models tested against each other.

And whether two values rank models alike.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .lattice import Floats, Ints
from .significance import LEVEL, fisher_p, holm_of, paired_p

MOST = 100
"""Models that are tested against each other: among more, the first ones are."""


class Places(NamedTuple):
    """The ranks of one model that no test rules out, at 95 % for all models together."""

    first: int
    """1 + how many are significantly better."""
    last: int
    """All models, less those that are significantly worse."""


class Pairs(NamedTuple):
    """Every two models of a ranking, [models, models]."""

    p: Floats
    """Two-sided, of "equally good"; 1 on the diagonal."""
    better: NDArray[np.bool_]
    """Whether the row's model is significantly better than the column's: Holm over all pairs."""


def of_samples(right: Sequence[Ints] | Ints, repeats: Sequence[int]) -> Pairs:
    """Models over the same samples: `right` is each one's number of right answers per clean_id; the exact
    paired cluster test."""
    common = int(np.lcm.reduce(np.array(repeats, np.int64))) if len(repeats) else 1
    scores = np.asarray(right) * (common // np.array(repeats, np.int64)[:, None])
    return _tested(scores.sum(axis=1), lambda i, j: paired_p(scores[i] - scores[j]))


def of_counts(counts: Sequence[tuple[int, int]]) -> Pairs:
    """Models of which only (right, rows) is known: Fisher's exact test of every two."""
    rates = np.array([right / n if n else 0.0 for right, n in counts])
    return _tested(rates, lambda i, j: fisher_p(counts[i], counts[j]))


def places(pairs: Pairs, models: int | None = None) -> list[Places]:
    """The compatible ranks of every model in `pairs`, among `models` in all: one that was not tested against
    it may stand on either side."""
    n = len(pairs.p) if models is None else models
    ahead, behind = pairs.better.sum(axis=0).tolist(), pairs.better.sum(axis=1).tolist()
    return [Places(1 + better, n - worse) for better, worse in zip(ahead, behind, strict=True)]


def _tested(scores: NDArray[Any], p_of: Callable[[int, int], float]) -> Pairs:
    p, apart = np.ones((len(scores), len(scores))), np.zeros((len(scores), len(scores)), bool)
    upper = np.triu_indices(len(scores), 1)
    p[upper] = [p_of(i, j) for i, j in zip(*upper, strict=True)]
    apart[upper] = holm_of(p[upper]) < LEVEL
    return Pairs(np.minimum(p, p.T), (apart | apart.T) & (scores[:, None] > scores[None, :]))


def rank_correlation(x: Floats, y: Floats) -> float | None:
    """Spearman's ρ of two values of the same models, ties at their mean rank; None where one never varies."""
    ranks = []
    for values in (x, y):
        distinct, place, times = np.unique(values, return_inverse=True, return_counts=True)
        if len(distinct) < 2:
            return None
        ranks.append((np.cumsum(times) - (times - 1) / 2)[place] - (len(values) + 1) / 2)
    a, b = ranks
    return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))
