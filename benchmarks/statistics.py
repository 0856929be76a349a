"""Seconds of the report's statistics, on one core, next to `scipy.stats.bootstrap` on the same cells.

    OPENBLAS_NUM_THREADS=1 .venv/bin/python -m benchmarks.statistics [--scipy-cells 21]

Printed as JSON. unpaired: every interval of the paper's 21 models × 23 conditions and Table 2, from counts.
clustered: 21 synthetic runs over the rows of a full build: intervals, Δ, retention, flips with Holm.
marks: 20 of them against the first, in Table 2 and per type.
scipy: percentile bootstraps at B = 10,000 of the accuracies alone, on some cells, scaled to all of them.
Seconds of the processor stand beside the wall's: on a busy machine only they say what the work costs.
"""

import json
import sys
import time
from collections.abc import Callable

import numpy as np
import typer

from robustbench_tc import taxonomy
from robustbench_tc.eval import paper
from robustbench_tc.eval.stats import intervals, paired
from robustbench_tc.eval.stats.outcomes import Outcomes
from robustbench_tc.eval.stats.significance import holm
from robustbench_tc.eval.stats.summary import from_counts, summarise
from robustbench_tc.eval.stats.values import codes_of

MODELS = 21


def synthetic(seed: int) -> Outcomes:
    """A run over the rows that the paper profile builds: 199 samples, ToolEyes without most types."""
    generator = np.random.default_rng(seed)
    types = (taxonomy.CLEAN, *taxonomy.codes())
    n = np.ones((199, len(types)), np.int64)
    for at, code in enumerate(types):
        if code.startswith("same_name") or code in ("CD", "TD", "CD_NT", "TD_NT"):
            n[148:, at] = 0
        elif code in ("CD_AB", "TD_AB"):
            n[144:, at] = 0
    n[:3, types.index("paraphrase_parameter_description")] = 0
    n[:2, types.index("paraphrase_tool_description")] = 0
    n[140:148, types.index("same_name_B")] = 0
    ability = generator.beta(2, 1.2, size=(199, 1))
    right = (generator.random(n.shape) < ability * generator.uniform(0.5, 1, len(types))) * n
    correct = right.astype(np.int64)
    pairs = n * (np.arange(len(types)) > 0)
    return Outcomes(
        clean_ids=tuple(f"s{i}" for i in range(199)),
        types=types,
        correct=correct,
        n=n,
        missing=np.zeros_like(n),
        pairs=pairs,
        kept=pairs * (correct[:, :1] & correct),
        lost=pairs * (correct[:, :1] > correct),
        gained=pairs * (correct[:, :1] < correct),
        unmet=np.zeros_like(n),
        repeats=1,
    )


def unpaired(_: list[Outcomes]) -> None:
    for model in paper.models():
        from_counts(paper.counts(model))


def clustered(runs: list[Outcomes]) -> None:
    for run in runs:
        summarise(run)


def marks(runs: list[Outcomes]) -> None:
    base = runs[0]
    levels = {name: codes_of(name) for name in ("clean", "perturbed")}
    deltas: dict[str, tuple[str, ...]] = {name: codes_of(name) for name in taxonomy.COMPONENTS}
    for run in runs[1:]:
        paired.compare_lines(base, run, levels)
        paired.compare_delta_lines(base, run, deltas)
        pairs = paired.compare_lines(base, run, {code: [code] for code in taxonomy.codes()})
        holm({code: pair.p for code, pair in pairs.items()})


def accuracies(_: list[Outcomes]) -> None:
    for cell in paper.cells():
        intervals.accuracy(cell.correct, cell.n)


def taken(work: Callable[[list[Outcomes]], None], runs: list[Outcomes]) -> tuple[float, float]:
    """Seconds of a piece of work: the wall's, the processor's."""
    wall, cpu = time.perf_counter(), time.process_time()
    work(runs)
    return time.perf_counter() - wall, time.process_time() - cpu


def seconds_of_scipy(count: int) -> float:
    """Seconds per cell of scipy's percentile bootstrap."""
    from scipy.stats import bootstrap

    cells = paper.cells()[:count]
    started = time.perf_counter()
    for cell in cells:
        data = np.repeat([1.0, 0.0], [cell.correct, cell.n - cell.correct])
        bootstrap((data,), np.mean, n_resamples=10_000, method="percentile", vectorized=True)
    return (time.perf_counter() - started) / len(cells)


def main(scipy_cells: int = 21) -> None:
    """Print the figures."""
    runs = [synthetic(seed) for seed in range(MODELS)]
    found: dict[str, object] = {"models": MODELS, "cells": len(paper.cells())}
    for work in (unpaired, clustered, marks):
        wall_s, cpu_s = min(taken(work, runs) for _ in range(3))
        found |= {f"{work.__name__}_s": round(wall_s, 3), f"{work.__name__}_cpu_s": round(cpu_s, 3)}
    ours, _ = taken(accuracies, runs)
    found["accuracies_only_s"] = round(ours, 3)
    every = seconds_of_scipy(scipy_cells) * len(paper.cells())
    found |= {"scipy_accuracies_s": round(every, 2), "times_faster_than_scipy": round(every / ours)}
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
