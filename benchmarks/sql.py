"""Table 2 over ten million prediction rows in Parquet, in a process of its own: seconds and peak memory.

    .venv/bin/python -m benchmarks.sql [--rows 10000000]

The rows are synthetic: ten runs, every row asked many times, in the columns of a scored run. Printed as JSON:
a bare group-by over the same files as yardstick, the mart alone, the check for doubled predictions that
`rbtc sql` makes before it, and both together as a user meets them.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import duckdb
import typer

from robustbench_tc import schema, taxonomy
from robustbench_tc.sql.query import FOLDER, Inputs, connect, query

RUNS = 10
SAMPLES = 170  # × 23 conditions = 3,910 rows of a run, about a full build


def make(folder: Path, rows: int) -> list[Path]:
    """Ten run folders with `rows` predictions in all."""
    repeats = max(1, round(rows / RUNS / SAMPLES / 23))
    codes = [taxonomy.CLEAN, *taxonomy.codes()]
    columns = {
        "id": "'apibank__level1_' || sample || '::' || type_code",
        "clean_id": "'apibank__level1_' || sample",
        "type_code": "type_code",
        "source": "'apibank'",
        "category": "'level1'",
        "mode": "'prompt'",
        "repeat": "repeat::integer",
        "sample_hash": "printf('%016x', sample)",
        "status": "'ok'",
        "raw_output": "'[f(a=' || (random() * 1000)::integer || ')]'",
        "prompt_tokens": "400 + sample",
        "completion_tokens": "(random() * 90)::bigint",
        "latency_s": "random()",
        "retries": "0::integer",
        "variant": "'B1'",
        "score": "right_answer::double",
        "correct": "right_answer::boolean",
        "error_mode": "case when right_answer = 0 then 'wrong_parameters' end",
    }
    fields = (*schema.Prediction.__struct_fields__, *schema.Verdict.__struct_fields__)
    made = []
    for number in range(RUNS):
        run = folder / f"run{number}"
        run.mkdir(parents=True)
        columns["model"] = f"'model{number}'"
        chosen = ", ".join(f"{columns.get(name, 'null::varchar')} as {name}" for name in fields)
        with duckdb.connect() as connection:
            connection.execute(f"select setseed({number / 10})")
            connection.execute(
                f"""
                copy (
                    select {chosen} from (
                        select sample, type_code, repeat, (random() < 0.6)::integer as right_answer
                        from range({SAMPLES}) as s(sample), unnest({codes!r}) as t(type_code),
                            range({repeats}) as r(repeat)
                    )
                ) to '{run}/scores.parquet' (format parquet, compression zstd)
                """
            )
        record = {"dataset_version": "1.0.0", "settings": {"fingerprint": "f" * 32}}
        (run / "run.json").write_text(json.dumps(record))
        made.append(run)
    return made


def measure(what: str, runs: list[str]) -> dict[str, float]:
    """One measurement, meant for a process of its own (peak memory is the process's)."""
    started = time.perf_counter()
    if what == "bare":
        with duckdb.connect() as connection:
            connection.execute(
                "select filename, type_code, count(*), count(*) filter (where correct) "
                "from read_parquet(?, filename = true) group by all",
                [[f"{run}/scores.parquet" for run in runs]],
            ).fetchall()
    elif what == "mart":
        with connect(Inputs(runs=runs), check=False) as connection:
            started = time.perf_counter()
            connection.execute((FOLDER / "table2.sql").read_text("utf-8")).fetchall()
    else:
        query("table2", Inputs(runs=runs))
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": round(seconds, 3), "peak_mib": round(peak)}


def main(measured: Annotated[list[str] | None, typer.Argument()] = None, rows: int = 10_000_000) -> None:
    """Print the figures; MEASURED: one measurement and its runs, in this process."""
    if measured:
        what, *its = measured
        sys.stdout.write(json.dumps(measure(what, its)) + "\n")
        return
    with tempfile.TemporaryDirectory() as scratch:
        runs = make(Path(scratch), rows)
        with duckdb.connect() as connection:
            ((count,),) = connection.execute(
                f"select count(*) from '{scratch}/run*/scores.parquet'"
            ).fetchall()
        found: dict[str, object] = {"rows": count}
        for what in ("bare", "mart", "with_check"):
            command = [sys.executable, "-m", "benchmarks.sql", what, *map(str, runs)]
            tries = [
                json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
                for _ in range(3)
            ]
            found[what] = min(tries, key=lambda one: float(one["seconds"]))
        sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
