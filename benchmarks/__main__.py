"""`make bench`: every benchmark in a process of its own, in turn, into results.json and results.md.

    python -m benchmarks                 # all of them
    python -m benchmarks build scoring   # some; the other results stay as they were

A benchmark that fails or lacks its input is recorded as such with its last line; the others still run. Each
has one thread of linear algebra; the browser of the pages is that of `.venv-leaderboard`
(`make env-leaderboard`).
"""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from robustbench_tc.io import templates

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("RBTC_SHARED", HERE.parents[1] / "shared"))

PLAN: dict[str, list[str]] = {
    "build": ["--sources", str(SHARED / "sources")],
    "harness": ["--sources", str(SHARED / "sources")],
    "scoring": ["--vectors", str(SHARED / "vectors")],
    "statistics": [],
    "sql": [],
    "validation": [],
    "reward": [str(SHARED / "vectors" / "toolrl_reward.jsonl")],
    "scale": ["--sources", str(SHARED / "sources")],
    "board": [],
    "report": ["--sources", str(SHARED / "sources")],
    "doors": [],
}
"""Module → arguments."""

IN_A_BROWSER = ("board", "report")

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""numpy reads these when it is imported."""

PACKAGES = ("datasets", "pyarrow", "duckdb", "openai", "msgspec", "great-expectations", "huggingface-hub")


def main(names: Annotated[list[str] | None, typer.Argument(help=", ".join(PLAN))] = None) -> None:
    """Measure, and write results.json and results.md."""
    if unknown := set(names or ()) - set(PLAN):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: choose from {', '.join(PLAN)}")
    results_file = HERE / "results.json"
    results: dict[str, Any] = json.loads(results_file.read_text())["results"]
    for name in names or PLAN:
        sys.stderr.write(f"{name} …\n")
        # Each with its own day and machine: the others may be older.
        results[name] = {
            "measured_on": datetime.now(UTC).date().isoformat(),
            "machine": machine(),
            "figures": run(name, PLAN[name]),
        }
        found = {"results": {one: results[one] for one in PLAN if one in results}}
        results_file.write_text(json.dumps(found, indent=1) + "\n")
        (HERE / "results.md").write_text(page(found))
    sys.stdout.write((HERE / "results.md").read_text())


def run(name: str, arguments: list[str]) -> dict[str, Any]:
    """One benchmark's figures, or why there are none."""
    start = time.perf_counter()
    python = str(HERE.parent / ".venv-leaderboard/bin/python") if name in IN_A_BROWSER else sys.executable
    command, env = [python, "-m", f"benchmarks.{name}", *arguments], os.environ | ONE_THREAD
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent, env=env)
    if done.returncode:
        return {"not_run": (done.stderr.strip().splitlines() or ["failed without a word"])[-1][:300]}
    figures: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return {**figures, "whole_run_s": round(time.perf_counter() - start, 1)}


def machine() -> dict[str, Any]:
    """What the figures were measured on: no host name, no path."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def page(found: dict[str, Any]) -> str:
    """The figures as Markdown."""
    template = templates.environment("benchmarks").get_template("results.md.j2")
    drawn = [path.stem for path in HERE.glob("*.svg")]
    return template.render(found=found, drawn=drawn, flat=_flat, shown=_shown)


def _flat(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [row for key, inner in value.items() for row in _flat(inner, f"{path}.{key}" if path else key)]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [row for i, inner in enumerate(value) for row in _flat(inner, f"{path}[{i}]")]
    return [(path, value)]


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


if __name__ == "__main__":
    typer.run(main)
