"""Validation: seconds and memory of every suite over 100,000 rows of at least 3 KB and their clean rows.

    python -m benchmarks.validation

The rows are made of the bundled starter samples: each clean row is repeated under ids of its own, with a
tool more that brings it over 3 KB, and perturbed by all 22 types. The scorers' self-check and the units'
own checks run too, as in `rbtc audit`; the judge does not. Writing the build is not measured. Memory is the
peak of the process tree, shared pages counted once; CPU seconds are those of all its processes.
"""

import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import typer

from robustbench_tc import schema, taxonomy
from robustbench_tc.builders.perturb import Text, TextRequest
from robustbench_tc.builders.plain import published
from robustbench_tc.builders.plan import Plan, Skip, text_requests
from robustbench_tc.builders.sources import BUNDLED, read_pool
from robustbench_tc.io import parquet
from robustbench_tc.schema import Sample, Tool, arrow_schema, dumps

from .scale import measured

BYTES = 3_000


def main(folder: Path | None = None, rows: int = 100_000) -> None:
    """Print the figures of at least so many perturbed rows; FOLDER: of one pass over it, in this process."""
    if folder is not None:
        json.dump(validate(folder), sys.stdout)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "robustbench-tc"
        about = write(folder, rows)
        taken = measured([sys.executable, "-m", "benchmarks.validation", "--folder", str(folder)])
    found = about | json.loads(taken["said"])
    found |= {"cpu_s": taken["cpu_seconds"], "peak_mib": taken["peak_mib"]}
    found |= {"whole_process_s": taken["seconds"], "target": "60 s, 2,048 MiB"}
    json.dump(found, sys.stdout, indent=1)
    print()  # noqa: T201


def validate(folder: Path) -> dict[str, Any]:
    """One pass over the rows, then every suite."""
    from robustbench_tc.audits.expectations import benchmark
    from robustbench_tc.audits.folder import Folder
    from robustbench_tc.audits.scan import Scan

    start = time.perf_counter()
    build = Folder(folder)
    scan = Scan(build)
    scanned = time.perf_counter()
    checks = [
        *benchmark.columns_suite(build),
        *benchmark.configs_suite(scan),
        *benchmark.rows_suite(scan),
        *benchmark.texts_suite(scan),
    ]
    end = time.perf_counter()
    red = [c.id for c in checks if c.status == "failed" and c.id.startswith("rows.")]
    return {
        "checks": len(checks),
        "row_checks_failed": red,
        "seconds": round(end - start, 1),
        "of_them_reading_and_row_checks_s": round(scanned - start, 1),
        "of_them_great_expectations_s": round(end - scanned, 1),
        "rows_per_s": round(sum(scan.counts.values()) / (end - start)),
        "processes": len(os.sched_getaffinity(0)),
    }


def write(folder: Path, wanted: int) -> dict[str, Any]:
    """A build with at least `wanted` perturbed rows."""
    starters = read_pool(BUNDLED, "bundled").samples
    plan = Plan(samples=starters, seed=0, texts=texts(starters))
    context = plan.context()
    every = (row for code in taxonomy.codes() for row in plan.rows(code, context))
    per_round = sum(isinstance(row, Sample) for row in every)
    samples = tuple(larger(sample, n) for n in range(-(-wanted // per_round)) for sample in starters)
    counts: dict[str, dict[str, int]] = {}
    skipped: list[dict[str, str]] = []
    size = smallest = 0
    plan = Plan(samples=samples, seed=0, texts=texts(samples))
    context = plan.context()
    for code in (taxonomy.CLEAN, *taxonomy.codes()):
        made = [*plan.rows(code, context)]
        skipped += [msgspec.to_builtins(one) for one in made if isinstance(one, Skip)]
        rows = [one for one in made if isinstance(one, Sample)]
        sizes = [len(dumps(row)) for row in rows]
        size, smallest = size + sum(sizes), min([*sizes, smallest or sizes[0]])
        counts[code] = Counter(row.source for row in rows)
        tables = (
            schema.arrow_table(map(published, batch), schema.PublishedSample)
            for batch in parquet.batches(rows)
        )
        parquet.write_shards(tables, folder / code, "test", arrow_schema(schema.PublishedSample))
    report = {"profile": "bench", "seed": 0, "rows": counts, "skipped": skipped}
    (folder / "build_report.json").write_bytes(msgspec.json.encode(report))
    total = sum(sum(by_source.values()) for by_source in counts.values())
    return {
        "rows": total - len(samples),
        "clean_rows": len(samples),
        "bytes_per_row": round(size / total),
        "smallest_row_bytes": smallest,
    }


def larger(sample: Sample, number: int) -> Sample:
    """The sample under an id of its own, with one tool more whose description fills it up to `BYTES`."""
    clean_id = f"{sample.clean_id}_{number}"
    missing = BYTES - len(dumps(sample))
    words = (
        f"Keeps log {number} of the harbour. " + "It lists arrivals, berths and tides, hour by hour. " * 60
    )
    filler = Tool(f"harbour_log_{number}", words[: max(60, missing)].strip() + ".", {"type": "object"})
    return msgspec.structs.replace(
        sample, id=f"{clean_id}::clean", clean_id=clean_id, tools=(*sample.tools, filler)
    )


def texts(samples: tuple[Sample, ...]) -> dict[str, Text | str]:
    """Every text that the model-written types need, made by rule."""
    wanted = text_requests(samples, taxonomy.codes())
    return {r.key: Text(written(r), "recorded") for requests in wanted.values() for r in requests}


def written(request: TextRequest) -> Any:
    if request.kind != "redundant":
        return f"{request.input.strip().removesuffix('.')}, as said."
    return [
        {
            "name": f"{request.tool}_{word}",
            "description": f"Tells the {word} of things that {request.tool} knows nothing of.",
            "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
        }
        for word in ("colour", "weight")
    ]


if __name__ == "__main__":
    typer.run(main)
