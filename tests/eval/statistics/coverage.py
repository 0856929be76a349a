"""How often the intervals hold the true value, on a grid of accuracies, samples and intraclass correlations.

A sample has an ability, drawn from a Beta distribution whose mean is the accuracy p and whose parameters
give the intraclass correlation (ICC): the correlation of two rows of one sample. Its rows are coins of that
ability; a perturbed row keeps 1 − loss of it.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from robustbench_tc.eval.stats.intervals import (
    Estimate,
    combined,
    difference,
    paired_difference,
    quotient,
    shares,
)
from robustbench_tc.eval.stats.lattice import Floats, Ints

P = (0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.985, 0.99)
SAMPLES = (33, 60, 100, 148, 199)
ICC = (0.1, 0.3, 0.6, 0.9)
LOSSES = (0.0, 0.1)
RUNS = 2_000
"""Simulated runs of a cell: a coverage of 0.95 is then measured to ± 0.0125, at 99 % confidence."""

AT_LEAST = 0.93
"""What every cell of OURS has to reach."""

SEED = 20261122

Shape = Callable[[int], Ints]

SHAPES: dict[str, Shape] = {
    "1 row a sample": lambda n: np.ones(n, np.int64),
    "6 rows": lambda n: np.full(n, 6),
    "6 rows, a quarter has none": lambda n: np.where(np.arange(n) < 0.75 * n, 6, 0),
    "22 rows, a quarter has 13": lambda n: np.where(np.arange(n) < 0.75 * n, 22, 13),
}
"""Rows per sample of a type or of clean, of transition, of reward, and of all perturbed rows of a full
build."""


class Cell(NamedTuple):
    p: float
    samples: int
    icc: float


class Found(NamedTuple):
    """One kind of interval in one cell."""

    what: str
    cell: Cell
    coverage: float
    width: float
    said: float = 1.0
    """Share of runs of which the value can be said."""


def cells(p: Sequence[float] = P, samples: Sequence[int] = SAMPLES, icc: Sequence[float] = ICC) -> list[Cell]:
    return [Cell(*one) for one in itertools.product(p, samples, icc)]


def generator(cell: Cell, what: str) -> np.random.Generator:
    """Of its own for every cell, so that cells can be simulated in any order."""
    return np.random.default_rng(
        [SEED, round(cell.p * 1000), cell.samples, round(cell.icc * 10), sum(what.encode())]
    )


def abilities(cell: Cell, runs: int, random: np.random.Generator) -> Floats:
    """[runs, samples]"""
    known = (1 - cell.icc) / cell.icc
    return random.beta(cell.p * known, (1 - cell.p) * known, (runs, cell.samples))


def levels(cell: Cell, runs: int = RUNS) -> Iterator[Found]:
    """Accuracies, Δ and Δ matched of one cell."""
    random = generator(cell, "levels")
    ability = abilities(cell, runs, random)
    right = random.random(ability.shape) < ability
    clean = shares(right, np.ones(cell.samples))
    for name, shape in SHAPES.items():
        rows = shape(cell.samples)
        for loss in LOSSES:
            accuracy = shares(random.binomial(rows, ability * (1 - loss)), rows)
            if not loss:
                yield _found(f"accuracy, {name}", cell, accuracy, cell.p)
            yield _found(f"Δ, {name}", cell, difference(clean, accuracy), cell.p * loss)
            anchors = shares(right * rows, rows)
            yield _found(f"Δ matched, {name}", cell, difference(anchors, accuracy), cell.p * loss)


def _found(what: str, cell: Cell, made: Estimate, true: float) -> Found:
    held = (made.low <= true + 1e-12) & (true - 1e-12 <= made.high)
    return Found(what, cell, float(held.mean()), float((made.high - made.low).mean()))


def of_two(cell: Cell, runs: int = RUNS) -> Iterator[Found]:
    """Two models of one ability on 6 rows a sample: differences, and the share that b closes of a's Δ."""
    for losses in ((0.2, 0.1), (0.1, 0.1)):
        random = generator(cell, f"two {losses}")
        ability = abilities(cell, runs, random)
        rows = np.full(cell.samples, 6)
        levels, deltas = [], []
        for loss in losses:
            clean = shares(random.random(ability.shape) < ability, np.ones(cell.samples))
            levels.append(shares(random.binomial(rows, ability * (1 - loss)), rows))
            deltas.append(difference(clean, levels[-1]))
        ahead = cell.p * (losses[0] - losses[1])
        yield _found("B − A, 6 rows", cell, difference(levels[1], levels[0]), ahead)
        yield _found("Δ of A − Δ of B, 6 rows", cell, combined(deltas, (1.0, -1.0), 2.0), ahead)
        sets = [quotient(deltas[1].at(i), deltas[0].at(i)) for i in range(runs)]
        kept, said = losses[1] / losses[0], [one for one in sets if one is not None]
        held = sum(low <= kept <= high for _, low, high in said)
        width = float(np.median([high - low for _, low, high in said])) if said else 0.0
        # A set without ends is not shown, so nothing wrong is said either.
        yield Found("gap closure, 6 rows", cell, (held + runs - len(said)) / runs, width, len(said) / runs)


def retention(cell: Cell, runs: int = RUNS) -> Iterator[Found]:
    """Three components of 4, 6 and 6 rows a sample, each of which loses a tenth."""
    random = generator(cell, "retention")
    ability = abilities(cell, runs, random)
    clean = shares(random.random(ability.shape) < ability, np.ones(cell.samples))
    parts = [shares(random.binomial(n, ability * 0.9), np.full(cell.samples, n)) for n in (4, 6, 6)]
    above = combined(parts, [1 / 3] * 3)
    sets = [quotient(above.at(i), clean.at(i)) for i in range(runs)]
    ends = np.array([one[1:] for one in sets if one is not None])
    held = ((ends[:, 0] <= 0.9) & (ends[:, 1] >= 0.9)).mean()
    yield Found("retention", cell, float(held), float(np.median(ends[:, 1] - ends[:, 0])))


PAPER_CELLS = cells((0.5, 0.8, 0.9, 0.95), (148, 199), (0.1, 0.3, 0.6, 0.9))


def papers(cell: Cell, runs: int = 1_000) -> Iterator[Found]:
    """Δ matched in the paper's convention: the pairs of a component resampled as if they were independent."""
    for name, per in (("1 row a sample", 1), ("4 rows", 4), ("6 rows", 6)):
        random = generator(cell, f"paper {name}")
        ability = abilities(cell, runs, random)
        right = random.random(ability.shape) < ability
        perturbed = random.binomial(per, ability * 0.9)
        lost, gained = (right * (per - perturbed)).sum(axis=1), (~right * perturbed).sum(axis=1)
        made = [_paired(int(a), int(b), per * cell.samples) for a, b in zip(lost, gained, strict=True)]
        held = sum(low - 1e-12 <= 0.1 * cell.p <= high + 1e-12 for low, high in made)
        width = float(np.mean([high - low for low, high in made]))
        yield Found(f"Δ matched, {name}, --ci paper", cell, held / runs, width)


@lru_cache(maxsize=200_000)
def _paired(lost: int, gained: int, pairs: int) -> tuple[float, float]:
    found = paired_difference(lost, gained, pairs)
    return found.low, found.high


def tables(found: Sequence[Found]) -> Iterator[str]:
    """Per kind and p the lowest coverage over samples and ICC, and the lowest of all."""
    p = sorted({one.cell.p for one in found})
    yield f"| interval | {' | '.join(f'p = {one:g}' for one in p)} | lowest | mean width |"
    yield f"|---|{'---:|' * (len(p) + 2)}"
    for what in dict.fromkeys(one.what for one in found):
        of = [one for one in found if one.what == what]
        low = [min((one.coverage for one in of if one.cell.p == at), default=None) for at in p]
        width = float(np.mean([one.width for one in of]))
        shown = " | ".join("–" if one is None else f"{one:.3f}" for one in low)
        yield f"| {what} | {shown} | {min(one.coverage for one in of):.3f} | {width:.3f} |"
