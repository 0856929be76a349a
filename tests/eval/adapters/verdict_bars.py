"""Every verdict through inspect_ai and lm-eval beside `rbtc eval`'s, over a whole dataset and eight agents.

A log that is there already is not made again, so the command goes on where it stopped. It takes an hour.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

from robustbench_tc import api, taxonomy

from .harnesses import asked_by_inspect, asked_by_lm_eval, verdicts

AGENTS = (
    "thinks-the-gold",
    "silent",
    "oracle",
    "gives-up-on-error",
    "retries-with-a-changed-argument",
    "name-biased",
    "typo-copier",
    "quotes-the-gold",
)
STATIC = (taxonomy.CLEAN, *taxonomy.COMPONENTS[:3])
QUICK = ("--max-samples", "50", "--max-connections", "32", "--no-log-realtime", "--no-log-model-api")


def own_run(dataset: Path, agent: str, out: Path, *types: str) -> Path:
    if not (out / "scores.parquet").is_file():
        api.evaluate(dataset, agent=agent, mode="prompt", types=types, out=out)
    return out


def figures(dataset: Path, out: Path) -> Iterator[str]:
    """A line for each agent and harness, and for each harness's comparisons."""
    runs: dict[str, tuple[Path, Path, Path, Path]] = {}
    for agent in AGENTS:
        place = out / agent
        place.mkdir(parents=True, exist_ok=True)
        whole, static = (
            own_run(dataset, agent, place / "own"),
            own_run(dataset, agent, place / "static", *STATIC),
        )
        inspected = next((place / "logs").glob("*.eval"), None) or asked_by_inspect(
            dataset, agent, place, *QUICK
        )
        measured = next((place / "out").glob("*/results_*.json"), None) or asked_by_lm_eval(
            dataset, agent, place
        )
        runs[agent] = whole, inspected, static, measured
        for name, ours, theirs in (("inspect_ai", whole, inspected), ("lm-eval", static, measured)):
            left, right = (verdicts(one, "injected")[1] for one in (ours, theirs))
            equal = sum(left[one] == right.get(one) for one in left)
            yield (
                f"{agent}, {name}: {equal} of {len(left)} verdicts are rbtc eval's ({len(right)} in the log)"
            )
    for name, at in (("inspect_ai", 0), ("lm-eval", 2)):
        same = 0
        for a, b in pairwise(AGENTS):
            of_runs = statistics(runs[a][at], runs[b][at])
            same += statistics(runs[a][at + 1], runs[b][at + 1]) == of_runs
        yield (
            f"{name}: {same} of {len(AGENTS) - 1} comparisons of logs equal those of runs to the last digit"
        )


def statistics(a: Path, b: Path) -> bytes:
    """A comparison without the names of its runs."""
    found = api.compare(a, b)
    return msgspec.json.encode(
        (found.overall, found.deltas, found.types, found.overall_holm, found.deltas_holm)
    )
