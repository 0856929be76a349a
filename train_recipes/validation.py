"""What validation during training says: accuracy by component, and how much of each gap training has closed.

    component        clean, observation, action, reward, perturbed (the three together), retry
    delta            accuracy under perturbation less that of the clean rows of the same clean ids
    gap_closure      1 - delta / the first validation's delta; only where that was a loss

An answer is right if it earns all that its gold can earn.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from robustbench_tc import taxonomy

CLEAN, PERTURBED, RETRY = taxonomy.CLEAN, "perturbed", "retry"

BASELINE = "validation_baseline.json"
"""The first validation of a run, beside its checkpoints."""

SLACK = 1e-6
"""Rewards come back as 32-bit numbers."""


class Row(NamedTuple):
    """What is known of a validation row before it is answered."""

    clean_id: str
    component: str
    best: float
    """The most that an answer to it can earn."""


class Scored(NamedTuple):
    """One answer."""

    clean_id: str
    component: str
    reward: float
    correct: bool


def row(extra_info: Mapping[str, Any], ground_truth: str) -> Row:
    """A row by its columns; one that meets an error inside the rollout is of the component `retry`."""
    most = 4.0 if extra_info.get("live_row") else best(ground_truth)
    return Row(str(extra_info["clean_id"]), component(extra_info), most)


def component(extra_info: Mapping[str, Any]) -> str:
    """What a row is perturbed in; of a task in a world its fault."""
    fault = RETRY if extra_info.get("retry") else extra_info.get("type_code")
    return str(extra_info.get("component") or fault or CLEAN)


def best(ground_truth: str) -> float:
    """The most that an answer to this gold can earn: 4 with a call, 1 with a response only."""
    return 4.0 if "<tool_call>" in ground_truth else 1.0


def scored(about: Row, reward: float) -> Scored:
    """An answer to a row."""
    return Scored(about.clean_id, about.component, reward, reward >= about.best - SLACK)


def summary(answers: Iterable[Scored], baseline: Mapping[str, float] | None = None) -> dict[str, float]:
    """The metrics of one validation. `baseline`: what this returned for the first one of the run.

    `val-core/<component>/accuracy`, `delta`, `gap_closure`; `val-aux/<component>/reward`, `pairs` (clean ids
    behind delta). Several answers to a row count with their mean; a component without rows has no key.
    """
    by_component: dict[str, dict[str, list[Scored]]] = defaultdict(lambda: defaultdict(list))
    for one in answers:
        by_component[one.component][one.clean_id].append(one)
        if one.component not in (CLEAN, RETRY):
            by_component[PERTURBED][one.clean_id].append(one)
    found: dict[str, float] = {}
    right = {
        component: {name: fmean([one.correct for one in group]) for name, group in groups.items()}
        for component, groups in by_component.items()
    }
    clean = right.get(CLEAN, {})
    for component, groups in sorted(by_component.items()):
        accuracy = right[component]
        found[f"val-core/{component}/accuracy"] = fmean(list(accuracy.values()))
        found[f"val-aux/{component}/reward"] = fmean(
            [fmean([one.reward for one in group]) for group in groups.values()]
        )
        pairs = [accuracy[name] - clean[name] for name in accuracy if name in clean]
        if component == CLEAN or not pairs:
            continue
        delta = found[f"val-core/{component}/delta"] = fmean(pairs)
        found[f"val-aux/{component}/pairs"] = float(len(pairs))
        first = (baseline or {}).get(f"val-core/{component}/delta", 0.0)
        if first < 0:
            found[f"val-core/{component}/gap_closure"] = 1 - delta / first
    return found


def compared(answers: Sequence[Scored], folder: Path, step: int) -> dict[str, float]:
    """The summary of a validation at `step` against the run's first one, which is kept in `folder`.

    A run that was resumed goes on comparing with it; one that begins at step 0 writes its own."""
    path = folder / BASELINE
    if step == 0 or not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"step": step, "metrics": summary(answers)}, indent=1) + "\n")
    return summary(answers, json.loads(path.read_text())["metrics"])
