# ruff: noqa: T201 - a report for the terminal
"""How often the interval of `rbtc cases import --faults` holds the rate of the plan that a log was made with.

    python -m benchmarks.ground               # the table of docs/ground.md (minutes)
    python -m benchmarks.ground --logs 200

Each log is made as a door makes it: every call asks the plan which fault it meets (`decide_one`), two faults
beside each other; conversations have one call or more, five on average. The last rows are worse than any
plan: calls of a conversation fail together (a beta-binomial with correlation 0.05 and 0.2).
"""

import argparse

import numpy as np
from robustbench_tc.proxy.decide import decide_one
from robustbench_tc.proxy.session import Session

from robustbench_tc.proxy.ground import rate
from robustbench_tc.proxy.plan import Fault, Plan

RATES = (0.005, 0.02, 0.1, 0.3)
SIZES = (60, 200, 800)
FIRST, SECOND = "transient_timeout", "transient_rate_limit"


def of_a_plan(plan: Plan, log: int, sizes: list[int]) -> dict[str, list[tuple[int, int]]]:
    """(met, calls) of each conversation, by kind."""
    found: dict[str, list[tuple[int, int]]] = {FIRST: [], SECOND: []}
    for number, size in enumerate(sizes):
        session = Session(f"{log}-{number}", 0)
        met = [decide_one(plan, session, call, "tool") for call in range(1, size + 1)]
        for kind, clusters in found.items():
            clusters.append((sum(one is not None and one.kind == kind for one in met), size))
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=1_000)
    logs = parser.parse_args().logs
    print(f"| rate | {' | '.join(f'{size} conversations' for size in SIZES)} |")
    print("|---|" + "---:|" * len(SIZES))
    rng = np.random.default_rng(0)
    for share in RATES:
        cells = []
        for size in SIZES:
            plan = Plan(seed=size, faults=(Fault(kind=FIRST, rate=share), Fault(kind=SECOND, rate=share)))
            held = [0, 0]
            for log in range(logs):
                sizes = [int(one) for one in rng.geometric(0.2, size=size)]
                met = of_a_plan(plan, log, sizes)
                for place, (kind, true) in enumerate(((FIRST, share), (SECOND, share * (1 - share)))):
                    low, high = rate(met[kind])
                    held[place] += low <= true <= high
            cells.append(", ".join(f"{one / logs:.3f}" for one in held))
        print(f"| {share:.1%} | {' | '.join(cells)} |", flush=True)
    for together in (0.05, 0.2):
        for share in RATES:
            cells = []
            for size in SIZES:
                held = [0]
                for _ in range(logs):
                    sizes = rng.geometric(0.2, size=size)
                    a, b = (part * (1 - together) / together for part in (share, 1 - share))
                    met = rng.binomial(sizes, rng.beta(a, b, size=size))
                    low, high = rate([(int(x), int(n)) for x, n in zip(met, sizes, strict=True)])
                    held[0] += low <= share <= high
                cells.append(f"{held[0] / logs:.3f}")
            print(f"| {share:.1%}, failing together ({together}) | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
