"""Any number of processes, any size of parts: the same results in the same order, the same bytes."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustbench_tc import schema
from robustbench_tc.api.building import build_release
from robustbench_tc.builders import build, toolrl_dr, toolrl_spec, toolrl_versions
from robustbench_tc.builders.report import BuildReport
from robustbench_tc.compute import parallel
from robustbench_tc.dataset_cards.training import training_card
from robustbench_tc.errors import UserError
from robustbench_tc.eval import record
from robustbench_tc.eval.score.reward import earns_maximum
from robustbench_tc.io import parquet

from .builders import rlla_rows
from .conftest import NIGHTLY, Rbtc, nightly
from .eval import answered
from .refusals import refuses

NUMBERS = (1, 2, 3) if NIGHTLY else (1, 3)
"""Of processes."""

FIELDS: list[tuple[str, pa.DataType]] = [("n", pa.int64()), ("text", pa.string())]
SCHEMA = pa.schema(FIELDS, metadata={b"kind": b"test"})


def part(number: int) -> tuple[pa.Table, int]:
    """A table, and who made it."""
    rows = range(10 * number, 10 * number + number % 4)
    return pa.table({"n": list(rows), "text": [f"row {n}" for n in rows]}, schema=SCHEMA), os.getpid()


def checksums(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# --- work in order ------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(processes: int) -> None:
    found = list(parallel.map_ordered(part, range(40), parallel.Workers(num_proc=processes)))
    assert [table for table, _ in found] == [part(n)[0] for n in range(40)]
    assert {process == os.getpid() for _, process in found} == {processes == 1}


def test_only_a_few_items_are_taken_before_their_results_are_wanted() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    results = parallel.map_ordered(part, items(), parallel.Workers(num_proc=2))
    next(results)
    assert len(taken) <= 5
    results.close()  # type: ignore[attr-defined]


def fails(number: int) -> tuple[pa.Table, int]:
    if number == 3:
        raise UserError("row 3 is broken")
    return part(number)


@pytest.mark.parametrize("processes", [1, 2])
def test_what_the_work_raises_comes_out(processes: int) -> None:
    refuses(
        "row 3 is broken", list, parallel.map_ordered(fails, range(8), parallel.Workers(num_proc=processes))
    )


def test_a_killed_process_is_one_line_and_says_what_to_do() -> None:
    def dies(number: int) -> tuple[pa.Table, int]:
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return part(number)

    refuses(r"killed.*--num-proc", list, parallel.map_ordered(dies, range(8), parallel.Workers(num_proc=2)))


def test_workers_end_with_a_parent_that_is_killed() -> None:
    program = (
        "import os, time\n"
        "from robustbench_tc.compute import parallel\n"
        "pids = parallel.map_ordered(lambda _: os.getpid(), range(9), parallel.Workers(num_proc=2))\n"
        "print(next(pids), flush=True)\n"
        "time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = Path("/proc", parent.stdout.readline().strip())
        assert worker.is_dir()
        parent.kill()
    deadline = time.monotonic() + 10
    while worker.is_dir() and "Z" not in (worker / "stat").read_text().split()[2]:
        assert time.monotonic() < deadline, "a worker outlived its parent"
        time.sleep(0.02)


# --- fixed shards -------------------------------------------------------------------------------------


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BATCH_ROWS", 10)
    monkeypatch.setattr(parquet, "SHARD_ROWS", 20)


def tables(rows: int, size: int) -> Iterator[pa.Table]:
    for start in range(0, rows, size):
        numbers = range(start, min(start + size, rows))
        texts = [f"row {n}" for n in numbers]
        yield pa.table({"n": list(numbers), "text": texts}, schema=SCHEMA)


@pytest.mark.parametrize("rows", [0, 1, 10, 19, 20, 21, 45, 60])
def test_shards_depend_on_the_rows_and_not_on_the_tables_they_come_in(
    rows: int, small_shards: None, tmp_path: Path
) -> None:
    made = []
    for size in (1, 7, 10, 33, 100):
        folder = tmp_path / str(size)
        assert parquet.write_shards(tables(rows, size), folder, "test", SCHEMA) == rows
        files = parquet.shards(folder)
        assert len(files) == max(1, -(-rows // 20))
        assert [row["n"] for row in parquet.read_rows(files)] == list(range(rows))
        made.append(checksums(folder))
    assert made == made[:1] * len(made)


def test_a_missing_shard_is_noticed(small_shards: None, tmp_path: Path) -> None:
    parquet.write_shards(tables(45, 45), tmp_path, "test", SCHEMA)
    parquet.shards(tmp_path)[1].unlink()
    refuses("2 of 3 shards", parquet.shards, tmp_path)


# --- builds -------------------------------------------------------------------------------------------


def test_a_release_in_many_shards_streams_and_loads(
    small_shards: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    out = tmp_path / "robustbench-tc"
    build_release(build.BuildSpec(profile="bundled", codes=("CD", "transient_timeout")), out)
    datasets.disable_progress_bars()
    for config in ("clean", "CD"):
        files = parquet.shards(out / config)
        assert len(files) > 2
        published = list(parquet.read_rows(files))
        loaded = datasets.load_dataset(str(out), config, split="test", cache_dir=str(tmp_path / "cache"))
        assert loaded.features == schema.features(schema.PublishedSample)
        assert loaded.to_list() == published
        streamed = datasets.load_dataset(str(out), config, split="test", streaming=True)
        assert streamed.num_shards == len(files)
        assert list(streamed) == published


def test_the_bundled_release_is_the_same_bytes_on_any_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robustbench_tc.builders.build.PART_SAMPLES", 7)
    made = []
    for number in NUMBERS:
        out = tmp_path / str(number) / "robustbench-tc"
        build_release(build.BuildSpec(profile="bundled", workers=parallel.Workers(num_proc=number)), out)
        made.append(checksums(out))
    assert made == made[:1] * len(NUMBERS)


def full_build(out: Path, sources: Path, processes: int) -> BuildReport:
    workers = parallel.Workers(num_proc=processes)
    spec = build.BuildSpec(profile="full", sources=sources, generators=("none",), workers=workers)
    return build_release(spec, out)


@pytest.fixture(scope="module")
def full(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BuildReport]:
    """The full pools with their rule types, built by two processes."""
    out = tmp_path_factory.mktemp("full") / "robustbench-tc"
    return out, full_build(out, shared / "sources", 2)


@nightly  # a build of minutes; plans of the full pools are looked at by day
def test_the_full_pools_build_with_rule_types(
    full: tuple[Path, BuildReport], record_property: Callable[[str, object], None]
) -> None:
    out, report = full
    written = json.loads((out / "build_report.json").read_text())["rows"]
    found = {code: sum(by_source.values()) for code, by_source in written.items()}
    record_property("clean samples", found["clean"])
    record_property("rows", report.total)
    assert found["clean"] > 3000
    assert report.total > 50_000
    assert found["realistic_typos"] == 0
    assert {s.reason for s in report.skipped if s.type_code == "realistic_typos"} == {"not_generated"}


@nightly  # by day the bundled samples, in parts of seven
def test_the_full_profile_is_the_same_bytes_on_two_processes(
    full: tuple[Path, BuildReport], shared: Path, tmp_path: Path
) -> None:
    out = tmp_path / "robustbench-tc"
    assert full_build(out, shared / "sources", 1).total > 50_000
    assert checksums(out) == checksums(full[0])


def training_build(source: Path, out: Path, workers: parallel.Workers) -> dict[str, str]:
    """Checksums of a training build of all four configs."""
    spec = toolrl_spec.TrainingSpec(rlla=source, copies=2, workers=workers)
    toolrl_dr.build(spec, out, checks=toolrl_versions.Checks(earns_maximum=earns_maximum), card=training_card)
    return checksums(out)


def test_training_data_is_the_same_bytes_on_any_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_shards: None
) -> None:
    monkeypatch.setattr("robustbench_tc.builders.toolrl_versions.BATCH", 13)
    train = [rlla_rows.dialogue_row() if n % 9 == 0 else rlla_rows.ferry_row(n) for n in range(100)]
    held = [rlla_rows.ferry_row(10_000 + n) for n in range(5)]
    source = rlla_rows.write(tmp_path / "rlla", train, held)
    made = [training_build(source, tmp_path / str(n), parallel.Workers(num_proc=n)) for n in NUMBERS]
    assert made == made[:1] * len(NUMBERS)
    indices = [
        json.loads(row["extra_info"])["index"]
        for row in parquet.read_rows(parquet.shards(tmp_path / "1" / "full", "train"))
    ]
    assert len(set(indices)) == len(indices) == 200 and indices == sorted(indices)
    assert len(parquet.shards(tmp_path / "1" / "full", "train")) == 10


# --- scores -------------------------------------------------------------------------------------------


def test_scores_are_the_same_bytes_on_any_number_of_processes(
    bundled: Path, tmp_path: Path, rbtc: Rbtc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "BATCH_ROWS", 250)
    made = []
    for processes in NUMBERS:
        folder = answered.run(tmp_path / str(processes), bundled, repeats=2)
        assert rbtc("score", folder.path, "--num-proc", processes).code == 0
        again = record.open_run(folder.path)
        made.append((folder.scores_path.read_bytes(), again.record.flagged))
        assert again.record.flagged["history_names_distractor"]["CD_AB"]["n"] > 0
    assert made == made[:1] * len(NUMBERS)
    scores = pq.ParquetFile(folder.scores_path)
    assert set(scores.read(["correct"])["correct"].to_pylist()) == {None, True, False}
    assert {scores.metadata.row_group(g).num_rows for g in range(scores.num_row_groups - 1)} == {250}


def test_a_damaged_row_is_one_line_whoever_meets_it(bundled: Path, tmp_path: Path, rbtc: Rbtc) -> None:
    folder = answered.run(tmp_path / "run", bundled)
    table = pq.read_table(folder.answers_path)
    at = table.column_names.index("tool_calls")
    broken = table.set_column(at, "tool_calls", pa.array(["{"] * table.num_rows, pa.string()))
    pq.write_table(broken, folder.answers_path)
    for processes in (1, 2):
        done = rbtc("score", folder.path, "--num-proc", processes)
        assert done.code == 1
        [line] = done.err.strip().splitlines()
        assert "predictions.parquet is damaged" in line
        assert not folder.scores_path.exists()
