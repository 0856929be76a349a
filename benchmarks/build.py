"""The build: seconds and peak memory of the paper and the full profile, and perturbed rows per second of the
rule types, on one core.

    python -m benchmarks.build --sources ../shared/sources

The yardstick is `Dataset.map` of the installed `datasets` doing the edit of same_name_A (decode the registry,
add a tool, encode it) on the same rows and writing the same Parquet, in the same run.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import typer

from robustbench_tc import schema, taxonomy
from robustbench_tc.builders.plain import published
from robustbench_tc.builders.plan import Plan
from robustbench_tc.builders.sources import read_pool
from robustbench_tc.io import marker, parquet
from robustbench_tc.schema import Sample, arrow_schema

from .scale import command

RUNS = 3


def main(sources: Path = Path("../shared/sources")) -> None:
    """Print the figures."""
    datasets.disable_progress_bars()
    datasets.disable_caching()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        results = {
            "paper_profile_build": whole_process(sources, out, "paper", RUNS),
            "full_profile_build": whole_process(sources, out, "full", 1),
            **rows_per_second(sources, out),
        }
    json.dump(results, sys.stdout, indent=1)
    print()  # noqa: T201


def whole_process(sources: Path, out: Path, profile: str, runs: int) -> dict[str, float]:
    """The command as a user runs it, texts checked and files written: seconds (median), peak memory, and rows
    per CPU second."""
    folder = out / profile
    words = ("--profile", profile, "--allow-missing", "--sources", sources, "--force", "--out", folder)
    taken = [command("build", *words) for _ in range(runs)]
    cpu = statistics.fmean(one["cpu_seconds"] for one in taken)
    counted = json.loads((folder / marker.BUILD).read_bytes())["rows"]
    rows = sum(sum(by_source.values()) for by_source in counted.values())
    return {
        "seconds": statistics.median(one["seconds"] for one in taken),
        "cpu_seconds": cpu,
        "peak_mib": max(one["peak_mib"] for one in taken),
        "rows_per_cpu_second": rows / cpu,
    }


def rows_per_second(sources: Path, out: Path) -> dict[str, Any]:
    """Rows per CPU second on one core, ours and `Dataset.map`'s, in turn."""
    pool = read_pool(sources, "full")
    plan = Plan(samples=pool.samples, seed=0)
    context = plan.context()
    rule_types = [t.code for t in taxonomy.types() if t.method == "rule"]
    clean = out / "clean"
    _write(iter(plan.samples), clean)
    source = datasets.Dataset.from_parquet([str(p) for p in parquet.shards(clean)], cache_dir=str(out))

    def ours(codes: list[str]) -> int:
        return sum(
            _write((r for r in plan.rows(code, context) if isinstance(r, Sample)), out / f"ours-{code}")
            for code in codes
        )

    def mapped() -> int:
        made = source.map(_add_a_tool, load_from_cache_file=False)
        made.to_parquet(str(out / "mapped.parquet"))
        return int(made.num_rows)

    turns = [(_rate(ours, rule_types), _rate(ours, ["same_name_A"]), _rate(mapped)) for _ in range(RUNS)]
    every, same_name, mapping = map(statistics.median, zip(*turns, strict=True))
    return {
        "rule_types_rows_per_second": every,
        "same_name_A_rows_per_second": same_name,
        "dataset_map_rows_per_second": mapping,
        "ratio_rule_types_to_map": every / mapping,
        "ratio_same_edit_to_map": same_name / mapping,
    }


def _rate(work: Callable[..., int], *given: object) -> float:
    start = time.process_time()
    rows = work(*given)
    return rows / (time.process_time() - start)


def _write(rows: Iterator[Sample], folder: Path) -> int:
    arrow = arrow_schema(schema.PublishedSample)
    tables = (
        schema.arrow_table(map(published, batch), schema.PublishedSample) for batch in parquet.batches(rows)
    )
    return parquet.write_shards(tables, folder, "test", arrow)


def _add_a_tool(row: dict[str, Any]) -> dict[str, Any]:
    tools = json.loads(row["tools"])
    name = tools[row["gold_tool_index"] or 0]["name"]
    tools.insert(1, {"name": name, "description": "", "parameters": {"type": "object", "properties": {}}})
    return {
        "id": f"{row['clean_id']}::same_name_A",
        "type_code": "same_name_A",
        "component": "action",
        "tools": json.dumps(tools, ensure_ascii=False, separators=(",", ":")),
    }


if __name__ == "__main__":
    typer.run(main)
