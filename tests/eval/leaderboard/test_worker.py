"""The process that reads uploads: what it answers, and what becomes of an upload that is too much for it."""

import math
import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from robustbench_tc.eval.leaderboard import child, worker
from robustbench_tc.eval.leaderboard.limits import MB, Limits
from robustbench_tc.eval.leaderboard.reading import Line, NativeCall
from robustbench_tc.eval.leaderboard.serve import load_asked, worker_command
from robustbench_tc.eval.leaderboard.worker import Job, Pool

from .bad_files import BAD
from .conftest import RunOf


def job(folder: Path, run: Path) -> Job:
    folder.mkdir(exist_ok=True)
    shutil.copyfile(run / "predictions.parquet", folder / worker.UPLOAD)
    shutil.copyfile(run / "run.json", folder / worker.RECORD)
    return Job(folder=str(folder), user="ann", now="2026-11-20T10:00:00+00:00")


@pytest.fixture(scope="module")
def pool(release: Path) -> Iterator[Pool]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_TOKEN", "hf_secret_of_the_server")
        patch.setenv("OAUTH_CLIENT_SECRET", "another secret")
        made = Pool(worker_command(release, Limits()), size=1)
        made.warm()
        yield made
    made.close()


def test_one_warm_process_answers_good_and_bad_uploads_in_turn(
    pool: Pool, run_of: RunOf, tmp_path: Path
) -> None:
    good = pool.run(job(tmp_path / "good", run_of("oracle")))
    assert good.refused is None and good.entry is not None
    assert good.entry.counts["perturbed"][0] == good.entry.counts["perturbed"][1]
    for bad in (bad for bad in BAD if bad.name in ("pickle", "Parquet cut off", "rows missing")):
        made = tmp_path / bad.name
        made.mkdir()
        upload = bad.make(run_of("oracle"), made)
        folder = tmp_path / f"job {bad.name}"
        asked = job(folder, run_of("oracle"))
        shutil.copyfile(upload.predictions, folder / worker.UPLOAD)
        refused = pool.run(asked).refused
        assert refused is not None and refused.code == bad.step and bad.says in refused.text
    assert pool.run(job(tmp_path / "again", run_of("oracle"))) == good


def test_the_process_sees_no_token_and_a_dead_one_is_replaced(
    pool: Pool, run_of: RunOf, tmp_path: Path
) -> None:
    process = pool._alive()
    environment = Path(f"/proc/{process.pid}/environ")
    if environment.exists():
        assert b"PATH=" in environment.read_bytes() and b"secret" not in environment.read_bytes()
    process.kill()
    process.wait()
    assert pool.run(job(tmp_path / "job", run_of("oracle"))).refused is None


def test_uploads_are_read_side_by_side(pool: Pool, run_of: RunOf, tmp_path: Path) -> None:
    jobs = [job(tmp_path / str(number), run_of("oracle")) for number in range(3)]
    with ThreadPoolExecutor(3) as together:
        answers = list(together.map(pool.run, jobs))
    assert answers[0] == answers[1] == answers[2] and answers[0].entry is not None


def test_a_process_that_cannot_start_is_one_line(run_of: RunOf, tmp_path: Path) -> None:
    pool = Pool(worker_command(tmp_path / "no release", Limits()), size=1)
    refused = pool.run(job(tmp_path / "job", run_of("oracle"))).refused
    assert refused is not None and "could not be read" in refused.text


def _hungry() -> None:
    bytearray(600 * MB)


def _endless() -> None:
    while True:
        pass


def _sleepy() -> None:
    import time

    time.sleep(60)


def _writes() -> None:
    with Path(os.environ["RBTC_TEST_FILE"]).open("wb") as file:
        for _ in range(64):
            file.write(b"x" * MB)


def test_memory_time_and_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RBTC_TEST_FILE", str(tmp_path / "written"))
    tight = Limits(memory_bytes=300 * MB, cpu_s=1, wall_per_cpu=20.0, decoded_bytes=8 * MB)
    assert child.in_child(lambda: None, tight, 0) == "done"
    assert child.in_child(_hungry, tight, 0) == "memory"
    assert child.in_child(_endless, tight, 0) == "time"
    assert child.in_child(_sleepy, Limits(cpu_s=1, text_cpu_s=0, wall_per_cpu=0.2), 0) == "time"
    assert child.in_child(_writes, tight, 0) == "crash"
    assert (tmp_path / "written").stat().st_size <= 16 * MB
    assert child.in_child(lambda: os.kill(os.getpid(), signal.SIGTERM), tight, 0) == "crash"


def test_a_child_that_hangs_before_it_has_a_group_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "setsid", _sleepy)
    assert child.in_child(lambda: None, Limits(cpu_s=1, text_cpu_s=0, wall_per_cpu=0.2), 0) == "time"


def test_children_can_be_begun_at_once() -> None:
    """filelock, which the dataset's reading imports, lets no fork begin while another is under way."""
    import filelock  # noqa: F401

    with ThreadPoolExecutor(8) as together:
        endings = together.map(lambda _: child.in_child(lambda: None, Limits(), 0), range(200))
    assert set(endings) == {"done"}


def test_whatever_breaks_around_a_child_is_answered(release: Path, run_of: RunOf, tmp_path: Path) -> None:
    """A worker whose `in_child` raises: the upload is refused, nobody waits for ever."""
    command = worker_command(release, Limits())
    at = command.index("-c") + 1
    broken = "from robustbench_tc.eval.leaderboard import worker; worker.in_child = None; "
    pool = Pool([*command[:at], broken + command[at], *command[at + 1 :]])
    refused = pool.run(job(tmp_path / "job", run_of("oracle"))).refused
    pool.close()
    assert refused is not None and "could not be read" in refused.text


def test_long_replies_have_more_processor_time_and_all_together_a_bound(
    run_of: RunOf, release: Path, tmp_path: Path
) -> None:
    limits, asked = Limits(), load_asked(str(release))
    seen: list[Sequence[Line]] = []
    folder = tmp_path / "job"
    worker.examine(job(folder, run_of("oracle")), asked, limits, complete=seen.append)
    [lines] = seen
    assert len(lines) == len(asked.by_id)
    short = child.cpu_for(lines, limits)
    assert short <= limits.cpu_of(len(lines)) + 1
    thought = "I think. " * 8_000_000
    for longer in (
        {"raw_output": thought},
        {"first_output": thought},
        {"tool_calls": [NativeCall("f", thought)]},
        {"first_tool_calls": [NativeCall("f", thought)]},
    ):
        most = [msgspec.structs.replace(lines[0], **longer), *lines[1:]]
        assert child.cpu_for(most, limits) == limits.cpu_of(len(lines), math.inf) > short
    little = [msgspec.structs.replace(lines[0], raw_output="I think. " * 400_000), *lines[1:]]
    assert short + 3 <= child.cpu_for(little, limits) <= short + 4
    missing = tmp_path / "missing"
    [bad] = [bad for bad in BAD if bad.name == "rows missing"]
    missing.mkdir()
    upload = bad.make(run_of("oracle"), missing)
    asked_for = job(tmp_path / "bad", run_of("oracle"))
    shutil.copyfile(upload.predictions, Path(asked_for.folder) / worker.UPLOAD)
    assert worker.examine(asked_for, asked, limits, complete=seen.append).refused is not None
    assert seen == [lines]  # who sends other rows has no more time
