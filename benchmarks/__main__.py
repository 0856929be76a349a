"""`make bench`: every benchmark in a process of its own, in turn, into results.json and results.md.

    python -m benchmarks                 # all of them
    python -m benchmarks build scoring   # some; the other results stay as they were
    python -m benchmarks --list

A benchmark that fails or lacks its input is recorded as such with its last line; the others still run.
What scoring is compared with comes from `.venv-peers` (`make env-peers`).
"""

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from robustbench_tc.io import templates

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("RBTC_SHARED", HERE.parents[1] / "shared"))

PLAN: dict[str, list[str]] = {
    "build": ["--sources", str(SHARED / "sources")],
    "harness": [],
    "scoring": [
        "--vectors",
        str(SHARED / "vectors"),
        "--peer",
        str(HERE.parent / ".venv-peers" / "bfcl-eval"),
    ],
    "statistics": [],
    "sql": [],
    "validation": [],
    "reward": [str(SHARED / "vectors" / "toolrl_reward.jsonl")],
    "scale": ["--sources", str(SHARED / "sources")],
    "board": [],
    "report": ["--sources", str(SHARED / "sources")],
    "doors": [],
}
"""Module → arguments. One that is not in this checkout is left out of the run and said so."""

PACKAGES = ("datasets", "pyarrow", "duckdb", "openai", "msgspec", "great-expectations", "huggingface-hub")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PLAN))
    parser.add_argument("--list", action="store_true", help="print the names and end")
    options = parser.parse_args()
    if options.list:
        sys.stdout.write("\n".join(PLAN) + "\n")
        return
    if unknown := set(options.names) - set(PLAN):
        parser.error(f"unknown benchmark {', '.join(sorted(unknown))}: choose from {', '.join(PLAN)}")
    results_file = HERE / "results.json"
    kept = json.loads(results_file.read_text()) if results_file.exists() else {"results": {}}
    results: dict[str, Any] = kept["results"]
    for name in options.names or PLAN:
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
    if not (HERE / f"{name}.py").exists():
        return {"not_run": "no such benchmark in this checkout"}
    start = time.perf_counter()
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent)
    if done.returncode:
        return {"not_run": (done.stderr.strip().splitlines() or ["failed without a word"])[-1][:300]}
    text = done.stdout.strip()
    try:
        figures: dict[str, Any] = json.loads(text[text.index("{") :])
    except ValueError:
        figures = json.loads(text.splitlines()[-1])
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
    return (
        templates.environment("benchmarks")
        .get_template("results.md.j2")
        .render(
            found=found,
            drawn=[path.stem for path in HERE.glob("*.svg")],
            flat=_flat,
            shown=_shown,
        )
    )


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
    main()
