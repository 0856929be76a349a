"""Checks and decode-and-checks per second on BFCL's Python vectors, one core, and the slowest hostile text.

    python -m benchmarks.scoring [--vectors ../shared/vectors]

The yardstick is what upstream's own checker and decoder (`bfcl-eval`) do a second; the best turn counts.
"""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import typer
from tests.eval.texts import TOOLS, hostile

from robustbench_tc.eval.parse import ORDERS, parse
from robustbench_tc.eval.prompts.calls import python_calls
from robustbench_tc.eval.prompts.json_schema import normalise
from robustbench_tc.eval.score import score
from robustbench_tc.schema import Call, Tool

FILES = ("bfcl_nonlive.jsonl", "bfcl_live.jsonl")
SECONDS = 2.0
"""How long each is measured at least."""

TARGETS = {"checks": 56_000, "decode_and_checks": 23_000}
"""Per second on one core, as measured for upstream's programs on a machine like this."""


def main(vectors: Path = Path("../shared/vectors")) -> None:
    """Print the figures."""
    rows = [
        msgspec.json.decode(line)
        for name in FILES
        for line in (vectors / name).read_bytes().splitlines()
        if b'"underscore_to_dot":true' not in line.replace(b" ", b"")
    ]
    found: dict[str, Any] = {"rows": len(rows)}
    for name, work in _ours(rows).items():
        rate = len(rows) / _best(work)
        target = TARGETS[name]
        found[name] = {
            "per_second": round(rate),
            "target_per_second": target,
            "ratio": round(rate / target, 2),
        }
    found["slowest_hostile_ms"] = _slowest()
    print(json.dumps(found, indent=2))  # noqa: T201 - it is the output


def _best(work: Callable[[], None]) -> float:
    """Seconds of the best of several turns."""
    turns: list[float] = []
    while sum(turns) < SECONDS:
        started = time.perf_counter()
        work()
        turns.append(time.perf_counter() - started)
    return min(turns)


def _slowest() -> dict[str, float]:
    """The three slowest hostile texts of 1 MB, in milliseconds of processor time (best of three each)."""
    found: dict[str, float] = {}
    for kind, text in hostile().items():
        for source in ORDERS:
            best = float("inf")
            for _ in range(3):
                started = time.thread_time()
                parse(text, source=source, tools=TOOLS)
                best = min(best, time.thread_time() - started)
            found[kind] = max(found.get(kind, 0.0), round(best * 1_000, 1))
    return dict(sorted(found.items(), key=lambda item: -item[1])[:3])


def _ours(rows: Sequence[dict[str, Any]]) -> dict[str, Callable[[], None]]:
    prepared = [
        (
            [Call(item["name"], item["parameters"]) for item in row["prediction"]],
            row["category"],
            (tuple(Call(name, values) for item in row["ground_truth"] for name, values in item.items()),),
            tuple(Tool(tool["name"], "", normalise(tool["parameters"])) for tool in row["tools"]),
        )
        for row in rows
    ]
    texts = [python_calls(calls) for calls, _, _, _ in prepared]

    def checks() -> None:
        for calls, category, golden, tools in prepared:
            score(calls, source="bfcl_v3", category=category, golden_answers=golden, tools=tools)

    def decode_and_checks() -> None:
        for text, (_, category, golden, tools) in zip(texts, prepared, strict=True):
            calls = parse(text, source="bfcl_v3", tools=tools).calls
            score(calls, source="bfcl_v3", category=category, golden_answers=golden, tools=tools)

    return {"checks": checks, "decode_and_checks": decode_and_checks}


if __name__ == "__main__":
    typer.run(main)
