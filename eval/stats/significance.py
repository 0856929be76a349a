"""Is the difference real: exact paired and unpaired tests, and Holm's correction for many types."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from robustbench_tc import seeding

from .intervals import t_upper
from .lattice import Floats, Ints, sign_flips


def paired_p(differences: Ints, *, one_sided: bool = False) -> float:
    """Exact p-value of a paired comparison, one summed difference per cluster; `one_sided`: of "not above 0".

    Under the null hypothesis the two sides of a cluster could be swapped: every sign pattern is as likely,
    and the whole null distribution is known. With clusters of one row this is McNemar's exact test.
    """
    total = int(differences.sum())
    observed = total if one_sided else abs(total)
    if observed <= 0:
        return 1.0
    null = sign_flips(differences)
    return min(1.0, (2 - one_sided) * float(null.p[observed - null.start :].sum()))


SIGNS = 20_000
"""Sign patterns that `signs_p` looks at."""

MANY = 500
"""With more clusters that differ the sum is taken as normal."""


def signs_p(differences: Sequence[Ints]) -> list[float]:
    """`paired_p` of differences too large for their null distribution to be worked out: seeded sign
    patterns, the same for every entry. All entries are of the same clusters.

    Off by at most 0.004 at p = 0.05, at 99 % confidence. Never 0: a simulation cannot know that.
    """
    columns = np.stack(differences, axis=1).astype(np.float64)
    observed = np.abs(columns.sum(axis=0))
    used = columns[(columns != 0).any(axis=1)] if len(columns) > MANY else columns
    if len(used) > MANY:
        spread = np.sqrt(2 * (used**2).sum(axis=0)).tolist()
        return [
            math.erfc(one / of) if one else 1.0 for one, of in zip(observed.tolist(), spread, strict=True)
        ]
    # Single precision is exact for sums of whole numbers below 2**24.
    exact = np.float32 if np.abs(used).sum(axis=0).max(initial=0) < 2**24 else np.float64
    sums = np.abs(_signs(len(used)).astype(exact, copy=False) @ used.astype(exact))
    reached = (sums >= observed).sum(axis=0).tolist()
    return [(n + 1) / (SIGNS + 1) if one else 1.0 for n, one in zip(reached, observed.tolist(), strict=True)]


@lru_cache(maxsize=2)
def _signs(clusters: int) -> NDArray[np.float32]:
    """[SIGNS, clusters] of ±1."""
    generator = np.random.default_rng(seeding.rng(0, "signs of clusters").getrandbits(128))
    found = generator.integers(0, 2, size=(SIGNS, clusters), dtype=np.int8)
    return found.astype(np.float32) * 2 - 1


def fisher_p(a: tuple[int, int], b: tuple[int, int]) -> float:
    """Fisher's exact two-sided p-value for two independent accuracies, each (correct, n).

    For models over different rows, where nothing can be paired.
    """
    total, right = a[1] + b[1], a[0] + b[0]
    low, high = max(0, right - b[1]), min(right, a[1])
    k = np.arange(low, high + 1)
    factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, total + 1)))))
    log_p = (
        factorial[a[1]] - factorial[k] - factorial[a[1] - k]
        + factorial[b[1]] - factorial[right - k] - factorial[b[1] - right + k]
        - (factorial[total] - factorial[right] - factorial[total - right])
    )  # fmt: skip
    p = np.exp(log_p)
    return min(1.0, float(p[p <= p[a[0] - low] * (1 + 1e-7)].sum()))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's adjusted p-values, under the same keys in the same order."""
    return dict(zip(p_values, holm_of(np.array([*p_values.values()], np.float64)).tolist(), strict=True))


def holm_of(p_values: Floats) -> Floats:
    """Holm's adjusted p-values, in the same order."""
    order = np.argsort(p_values, kind="stable")
    weights = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.maximum.accumulate(np.minimum(weights * p_values[order], 1.0))
    return adjusted


def holm_by(family: Callable[[str], str], p_values: Mapping[str, float]) -> dict[str, float]:
    """`holm` within each family of keys, so that no test of one family weakens those of another."""
    families = {family(key) for key in p_values}
    parts = [holm({key: p for key, p in p_values.items() if family(key) == one}) for one in families]
    return {key: next(part[key] for part in parts if key in part) for key in p_values}


LEVEL = 0.05
"""A corrected p below it is called significant."""


class Loss(msgspec.Struct, frozen=True):
    """Anchored pairs of some rows together."""

    pairs: int
    lost: int
    gained: int
    delta_matched: float
    """(lost − gained) / pairs: positive is a loss."""
    p: float
    """Exact paired test of "as many lost as gained"."""
    p_holm: float
    """The same, corrected for every other cell of the table (types beyond the core: of their pack in it)."""

    @property
    def significant(self) -> bool:
        """A loss or a gain that the corrected test tells from none."""
        return self.p_holm < LEVEL


def corrected(
    found: Mapping[str, tuple[int, int, int, float]], family: Callable[[str], str] = lambda name: ""
) -> dict[str, Loss]:
    """Cells of a table, (pairs, lost, gained, p) by name, with p corrected by Holm within each family."""
    p_holm = holm_by(family, {name: p for name, (*_, p) in found.items()})
    return {
        name: Loss(pairs, lost, gained, (lost - gained) / pairs, p, p_holm[name])
        for name, (pairs, lost, gained, p) in found.items()
    }


def stars(p: float | None) -> int:
    """1: p < 0.05, 2: p < 0.01, 3: p < 0.001, as the paper marks."""
    return 0 if p is None else sum(p < level for level in (0.05, 0.01, 0.001))


class Trend(NamedTuple):
    """A line through values over the logarithm of model size, and how sure its slope is."""

    intercept: float
    """Value at a billion parameters."""
    slope: float
    """Change of the value per tenfold size."""
    low: float
    """95 % interval of the slope: Student's t with n − 2 degrees of freedom, models as independent draws."""
    high: float
    n: int


TREND_FROM = 5
"""Models that a trend is drawn from, at least: with fewer its interval says nothing."""


def log_linear(sizes: Sequence[float], values: Sequence[float]) -> Trend | None:
    """Least squares of value on log10(size); None below TREND_FROM points or two sizes."""
    n = len(sizes)
    if n < TREND_FROM or len(set(sizes)) < 2:
        return None
    x, y = np.log10(np.array(sizes, np.float64)), np.array(values, np.float64)
    across = x - x.mean()
    spread = float(across @ across)
    slope = float(across @ y) / spread
    intercept = float(y.mean() - slope * x.mean())
    rest = y - intercept - slope * x
    reach = t_upper(0.025, n - 2) * math.sqrt(float(rest @ rest) / (n - 2) / spread)
    return Trend(intercept, slope, slope - reach, slope + reach, n)


MOST_RANKED = 100
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


def told_apart(right: Sequence[Ints] | Ints, repeats: Sequence[int]) -> Pairs:
    """Models over the same samples: `right` is each one's number of right answers per clean_id; the exact
    paired cluster test."""
    common = int(np.lcm.reduce(np.array(repeats, np.int64))) if len(repeats) else 1
    scores = np.asarray(right) * (common // np.array(repeats, np.int64)[:, None])
    return _tested(scores.sum(axis=1), lambda i, j: paired_p(scores[i] - scores[j]))


def told_apart_by_counts(counts: Sequence[tuple[int, int]]) -> Pairs:
    """Models of which only (right, rows) is known: Fisher's exact test of every two."""
    rates = np.array([right / n if n else 0.0 for right, n in counts])
    return _tested(rates, lambda i, j: fisher_p(counts[i], counts[j]))


def compatible_ranks(pairs: Pairs, models: int | None = None) -> list[Places]:
    """The compatible ranks of every model in `pairs`, among `models` in all: one that was not tested against
    it may stand on either side."""
    n = len(pairs.p) if models is None else models
    ahead, behind = pairs.better.sum(axis=0).tolist(), pairs.better.sum(axis=1).tolist()
    return [Places(1 + better, n - worse) for better, worse in zip(ahead, behind, strict=True)]


def _tested(scores: NDArray[Any], p_of: Callable[[int, int], float]) -> Pairs:
    p, apart = np.ones((len(scores), len(scores))), np.zeros((len(scores), len(scores)), bool)
    upper = np.triu_indices(len(scores), 1)
    p[upper] = [p_of(int(i), int(j)) for i, j in zip(*upper, strict=True)]
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
