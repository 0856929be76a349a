"""Calls per second of the training reward on one core, over the oracle vectors' own mix of answers.

    .venv/bin/python benchmarks/reward.py ../shared/vectors/toolrl_reward.jsonl
    .venv-train/bin/python benchmarks/reward.py ../shared/vectors/toolrl_reward.jsonl   # and verl's copy

verl ships a copy of ToolRL's reward without its variants; where verl is installed that copy is measured
side by side over the rows without a variant, its prints thrown away. The copy decodes a gold every time;
ours keeps decoded golds (a group asks for each n times), so the first pass, in which every gold is new, is
printed too.
"""

import contextlib
import importlib.util
import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from robustbench_tc.eval.score import reward


def rate(call: Callable[[dict[str, Any]], object], rows: list[dict[str, Any]], rounds: int) -> float:
    """Calls per second over `rounds` passes through `rows`."""
    started = time.perf_counter()
    for _ in range(rounds):
        for row in rows:
            call(row)
    return rounds * len(rows) / (time.perf_counter() - started)


def ours(row: dict[str, Any]) -> dict[str, float]:
    return reward.compute_score(
        "rlla", row["solution_str"], row["ground_truth"], step=row["step"], **row["variant"]
    )


def verl_copy() -> Callable[[dict[str, Any]], object] | None:
    """verl's own file of the reward, loaded without importing verl; None where verl is not installed."""
    found = importlib.util.find_spec("verl")
    if found is None or not found.submodule_search_locations:
        return None
    path = Path(found.submodule_search_locations[0]) / "utils/reward_score/rlla.py"
    spec = importlib.util.spec_from_file_location("verl_rlla", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def call(row: dict[str, Any]) -> object:
        info = {"experiment_name": row["env"]["EXPERIMENT_NAME"]}
        return module.compute_score("rlla", row["solution_str"], row["ground_truth"], info)

    return call


def main(vectors: Path, rounds: int = 20) -> None:
    """Print the figures."""
    rows = [json.loads(line) for line in vectors.read_bytes().splitlines()]
    rows = [row | {"variant": reward.variant_from_env(row["env"])} for row in rows]
    plain = [row for row in rows if set(row["env"]) == {"EXPERIMENT_NAME"} and not row["upstream_exception"]]
    result: dict[str, float] = {
        "rows": len(rows),
        "first_pass_per_s": round(rate(ours, rows, 1)),
        "per_s": round(rate(ours, rows, rounds)),
        "plain_rows": len(plain),
        "plain_per_s": round(rate(ours, plain, rounds)),
    }
    if copy := verl_copy():
        with contextlib.redirect_stdout(io.StringIO()):
            result["plain_per_s_verl_copy"] = round(rate(copy, plain, rounds))
    print(json.dumps(result))  # noqa: T201


if __name__ == "__main__":
    typer.run(main)
