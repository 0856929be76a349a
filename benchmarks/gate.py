# ruff: noqa: T201 - a report for the terminal
"""How often the gate stops an agent that did not change, and how often it finds one that did.

    python -m benchmarks.gate              # the tables of docs/gate.md (minutes)
    python -m benchmarks.gate --trials 200 --json

Simulated: n cases with rows of four components (as many types as the core has). Each case has a difficulty
for each run, its rows share it. An unchanged agent answers twice with the same chances, so that both runs
differ as often as the wanted discordance says. A net loss takes right answers away on top.
"""

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats import gate

Bools = NDArray[np.bool_]

ROWS = {name: sum(kind.component == name for kind in taxonomy.types()) for name in taxonomy.COMPONENTS}


def pair(
    n: int, rows: int, discordance: float, loss: float, together: float, rng: np.random.Generator
) -> tuple[Bools, Bools]:
    """[n, rows] right answers before and after.

    `discordance`: the share of rows whose two answers differ; `loss` of them net to the worse. `together`:
    the share of cases whose rows all flip alike; the rest flip on their own.
    """
    base = np.repeat(rng.random((n, 1)) < 0.7, rows, axis=1) ^ (rng.random((n, rows)) < 0.15)
    lost, gained = (discordance + loss) / 2, (discordance - loss) / 2
    draw = rng.random((n, rows))
    shared = rng.random((n, 1)) < together
    draw = np.where(shared, draw[:, :1], draw)
    # Right rows are lost and wrong ones gained, each so often that both shares hold over all rows.
    right = max(float(base.mean()), 1e-9)
    after = np.where(base, draw >= lost / right, draw < gained / max(1 - right, 1e-9))
    return base, after


def trial(n: int, discordance: float, loss: float, together: float, rng: np.random.Generator) -> bool:
    """Whether the gate fails, with all components asked for, one of which (or none) lost."""
    sides = {}
    for place, (name, rows) in enumerate(ROWS.items()):
        before, after = pair(n, rows, discordance, loss if place == 0 else 0.0, together, rng)
        sides[name] = gate.Sides(
            before.sum(axis=1).astype(float),
            after.sum(axis=1).astype(float),
            np.full(n, rows, np.int64),
            float((before ^ after).sum()),
        )
    lines = gate.decide(sides, dict.fromkeys(sides, gate.MAX_DROP))
    if loss:
        return lines[0].outcome == "fail"
    return gate.outcome_of(lines) == "fail"


def rates(trials: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Both tables, a row at a time."""
    for loss in (0.0, 0.10):
        for n in (50, 150, 300):
            for discordance in (0.10, 0.14, 0.18, 0.25, 0.35):
                for together in (0.5, 1.0):
                    rng = np.random.default_rng([seed, n, round(discordance * 100), round(loss * 100)])
                    failed = sum(trial(n, discordance, loss, together, rng) for _ in range(trials))
                    yield {
                        "loss": loss,
                        "cases": n,
                        "discordance": discordance,
                        "together": together,
                        "failed": failed / trials,
                    }


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=1_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = []
    for row in rates(given.trials):
        found.append(row)
        if not given.json:
            print(
                f"loss {row['loss']:.2f}  cases {row['cases']:>3}  discordance {row['discordance']:.2f}  "
                f"together {row['together']:.1f}  failed {row['failed']:.3f}",
                flush=True,
            )
    if given.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
