
"""How often the gate and the words of a headline are right, with the product's own functions.

    make gate-check                                      # the tables of docs/gate.md
    .venv/bin/python -m benchmarks.gate --trials 200

Simulated runs: n cases with a row of every core type. `discordance` is the share of pairs whose two answers
differ; a net loss takes right answers away. In half of the cases the rows of a component flip together. A
baseline has an answer of its own for every row, a clean row is one answer for all rows of its case.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats import evidence, gate
from robustbench_tc.eval.stats.sides import Sides, drops
from robustbench_tc.eval.stats.values import codes_of

Bools = NDArray[np.bool_]
Random = np.random.Generator

SIZES = (20, 40, 60, 150, 300)
TOGETHER = 0.5


def before(n: int, rows: int, clean: float, own: bool, random: Random) -> Bools:
    """[n, rows] right answers of the side that a run is held against."""
    case = np.repeat(random.random((n, 1)) < clean, rows, axis=1)
    return case if own else case ^ (random.random((n, rows)) < 0.15)


def flipped(first: Bools, discordance: float, loss: float, random: Random) -> Bools:
    """Answers of which `discordance` differ from the first, `loss` of them net to the worse."""
    draw = random.random(first.shape)
    draw = np.where(random.random((len(first), 1)) < TOGETHER, draw[:, :1], draw)
    lost, gained = (discordance + loss) / 2, max(0.0, discordance - loss) / 2
    right = max(float(first.mean()), 1e-9)
    return np.where(first, draw >= lost / right, draw < gained / max(1 - right, 1e-9))


def sides(first: Bools, second: Bools) -> Sides:
    """Both sides by case."""
    sums = first.sum(axis=1), second.sum(axis=1), np.full(len(first), first.shape[1], np.int64)
    return Sides(*sums, int((2 * sums[0] > sums[2]).sum()))


def decided(
    n: int,
    discordance: float,
    losses: Mapping[str, float],
    random: Random,
    *,
    own: bool = True,
    clean: float = 0.7,
    components: tuple[str, ...] = taxonomy.COMPONENTS,
) -> tuple[gate.Line, ...]:
    """The gate's lines; `losses`: the net loss of components, and of types that are lost whole."""
    whole, types = {}, {}
    base = before(n, 1, clean, own=True, random=random)
    for name in components:
        codes = codes_of(name)
        first = np.repeat(base, len(codes), axis=1) if own else before(n, len(codes), clean, own, random)
        second = flipped(first, discordance, losses.get(name, 0.0), random)
        for at, code in enumerate(codes):
            if code in losses:
                second[:, at] &= random.random(n) >= losses[code]
        whole[name] = sides(first, second)
        types[name] = {code: sides(first[:, [at]], second[:, [at]]) for at, code in enumerate(codes)}
    return gate.decide(whole, types, dict.fromkeys(whole, gate.MAX_DROP))


def holds(n: int, clean: float, by_case: bool, trials: int, random: Random) -> float:
    """How often a component `holds` that lost 30 % of its right answers: of rows, or of whole cases."""
    found = []
    for _ in range(trials):
        first = before(n, 6, clean, own=True, random=random)
        kept = random.random((n, 1 if by_case else 6)) >= 0.3
        found.append(sides(first, first & kept))
    words = (evidence.word(one, drop, 1.0) for one, drop in zip(found, drops(found), strict=True))
    return sum(word == "holds" for word in words) / trials


def share(trials: int, outcome: gate.Outcome, lines: Iterator[tuple[gate.Line, ...]]) -> float:
    """How often the first `trials` verdicts have this outcome."""
    return sum(gate.outcome_of(next(lines)) == outcome for _ in range(trials)) / trials
