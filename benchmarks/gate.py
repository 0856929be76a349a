# ruff: noqa: T201 - tables for docs/gate.md
"""How often the gate and the headline's words are right, with the product's own functions.

    make gate-check                        # the tables of docs/gate.md (minutes)
    .venv/bin/python -m benchmarks.gate --trials 200

Simulated runs: n cases, each with a clean row and a row of every core type. `discordance` is the share of pairs
whose two answers differ; in half of the cases all rows flip together. A net loss is on top of that.
"""

import argparse
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats import gate

from robustbench_tc.eval.stats.runs import Outcomes
from robustbench_tc.eval.stats.sides import Sides, own_clean
from robustbench_tc.eval.stats.values import codes_of

Bools = NDArray[np.bool_]
Random = np.random.Generator

TYPES = (taxonomy.CLEAN, *taxonomy.codes())


def outcomes(clean: Bools, perturbed: Bools) -> Outcomes:
    """A run of [cases] clean answers and [cases, types] perturbed ones."""
    right = np.column_stack([clean, perturbed]).astype(np.int64)
    one = np.ones_like(right)
    pair = one * (np.arange(len(TYPES)) > 0)
    return Outcomes(
        clean_ids=tuple(map(str, range(len(clean)))),
        types=TYPES,
        correct=right,
        n=one,
        missing=0 * one,
        pairs=pair,
        kept=pair * (right[:, :1] & right),
        lost=pair * (right[:, :1] > right),
        gained=pair * (right[:, :1] < right),
        repeats=1,
    )


def flipped(
    clean: Bools, rows: int, discordance: float, loss: float, together: float, random: Random
) -> Bools:
    """[cases, rows] answers of which `discordance` differ from the clean ones, `loss` net to the worse."""
    draw = random.random((len(clean), rows))
    draw = np.where(random.random((len(clean), 1)) < together, draw[:, :1], draw)
    share = float(clean.mean())
    lost, gained = (discordance + loss) / 2, (discordance - loss) / 2
    drops = draw < min(1.0, lost / max(share, 1e-9))
    rises = draw < min(1.0, max(0.0, gained) / max(1 - share, 1e-9))
    return np.where(clean[:, None], ~drops, rises)


def run(n: int, clean: float, discordance: float, losses: dict[str, float], random: Random) -> Outcomes:
    """A run in which the types of `losses` lose so much."""
    first = random.random(n) < clean
    parts = []
    for name in taxonomy.COMPONENTS:
        codes = codes_of(name)
        part = flipped(first, len(codes), discordance, losses.get(name, 0.0), 0.5, random)
        for at, code in enumerate(codes):
            if code in losses:
                part[:, at] = first & (random.random(n) < 1 - losses[code])
        parts.append(part)
    return outcomes(first, np.concatenate(parts, axis=1))


def decided(found: Outcomes, components: Iterable[str] = taxonomy.COMPONENTS) -> tuple[gate.Line, ...]:
    """The gate's lines, over these components."""
    sides, types = {}, {}
    for name in components:
        sides[name] = own_clean(found, codes_of(name))
        types[name] = {code: own_clean(found, [code]) for code in codes_of(name)}
    return gate.decide(sides, types, dict.fromkeys(sides, gate.MAX_DROP))  # type: ignore[arg-type]
