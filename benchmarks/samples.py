# ruff: noqa: T201 - a table for README.md
"""What a run of so many samples costs and sees: the table of README.md.

    .venv/bin/python -m benchmarks.samples robustbench-tc

Requests are the most that `rbtc eval --dry-run` counts: those of a model that retries after every fault.
The smallest drop is simulated with the functions of the summary: clean accuracy 0.7, 14 % of the pairs of a
component flip (more where more are lost), and one of four components loses so many points net. It is seen
where, in four runs of five, the component's interval is above 0 and its p at most 0.05 after Holm's
correction.
"""

import numpy as np
import typer

from robustbench_tc import api, taxonomy
from robustbench_tc.eval.stats.evidence import drops
from robustbench_tc.eval.stats.significance import LEVEL, holm
from robustbench_tc.eval.stats.summary import SEEN
from robustbench_tc.eval.stats.values import codes_of
from robustbench_tc.schema import Component

from .gate import before, flipped, sides

SIZES = (20, 60, 199)
CLEAN, FLIPPING = 0.7, 0.14
LOST: Component = "reward"


def requests(dataset: str, samples: int) -> int:
    """At most so many, where each fault is retried once."""
    plan = api.evaluate(dataset, agent="oracle", samples=samples, dry_run=True).planned
    assert plan is not None
    return plan.requests[1]


def is_seen(n: int, loss: float, random: np.random.Generator) -> bool:
    """Whether one simulated run shows the loss."""
    base = before(n, 1, CLEAN, own=True, random=random)
    found = []
    for name in taxonomy.COMPONENTS:
        first = np.repeat(base, len(codes_of(name)), axis=1)
        lost = loss if name == LOST else 0.0
        found.append(sides(first, flipped(first, max(FLIPPING, lost), lost, random)))
    drop = dict(zip(taxonomy.COMPONENTS, drops(found), strict=True))
    corrected = holm({name: one.p for name, one in drop.items() if one.p is not None})
    return drop[LOST].low > 0 and corrected[LOST] <= LEVEL


def smallest(n: int, trials: int) -> int:
    """Points that are seen four times out of five."""
    for points in range(1, 100):
        random = np.random.default_rng([n, points])
        if sum(is_seen(n, points / 100, random) for _ in range(trials)) >= SEEN * trials:
            return points
    return 100


def main(dataset: str, trials: int = 500) -> None:
    """Print the table."""
    print("| samples | requests | smallest drop seen |\n|---|---|---|")
    for n in SIZES:
        size = "all 199" if n == SIZES[-1] else n
        print(f"| {size} | {requests(dataset, n):,} | {smallest(n, trials)} points |", flush=True)


if __name__ == "__main__":
    typer.run(main)
