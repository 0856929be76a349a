"""The same work on Ray: same bytes, whoever is killed meanwhile.

Those that need Ray run in an environment of their own: `make env-scale test-scale`.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from robustbench_tc.api.building import build_release
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.compute import cluster, parallel
from robustbench_tc.eval import inputs, record, request_settings, session, verdicts, who
from robustbench_tc.io import parquet
from tests.agent_server import serving

from .builders.test_generate import obedient
from .conftest import ROOT, Done, Rbtc, nightly
from .eval import answered, small
from .eval.test_vllm_backend import CALL
from .loopback import TOO_LONG, LoopbackServer
from .refusals import refuses
from .test_parallel import checksums, fails, part

RAY = parallel.Workers(num_proc=2, engine="ray")


# --- without Ray --------------------------------------------------------------------------------------


def test_engines_are_checked(rbtc: Rbtc, tmp_path: Path) -> None:
    def refused(done: Done, *words: str, code: int = 1) -> None:
        assert done.code == code
        [line] = done.err.strip().splitlines()
        assert all(word in line for word in words), line

    command = ["build", "--profile", "bundled", "--out", tmp_path / "o"]
    refused(rbtc(*command, "--engine", "rai"), "rai", "ray", code=2)
    refused(rbtc(*command, "--address", "auto"), "--engine ray")
    try:
        import ray  # noqa: F401
    except ImportError:
        refused(rbtc(*command, "--engine", "ray"), "pip install -e '.[scale]'")
    else:
        refused(rbtc(*command, "--engine", "ray", "--address", "127.0.0.1:9"), "127.0.0.1:9")
    assert list(tmp_path.iterdir()) == []


# --- with Ray -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Ray of two processors on this machine; what stands in for vLLM is installed there."""
    ray = pytest.importorskip("ray", reason="Ray is not installed here: make env-scale test-scale")
    packages = tmp_path_factory.mktemp("packages")
    stand_in = "from tests.eval.test_vllm_backend import Engine as LLM, SimpleNamespace as SamplingParams\n"
    (packages / "vllm.py").write_text(stand_in)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{packages}{os.pathsep}{ROOT}")
        with cluster.session(RAY.num_proc, RAY.address):
            assert ray.is_initialized()
            yield


def test_results_come_in_order_from_other_processes(running: None) -> None:
    found = list(parallel.map_ordered(part, range(30), RAY))
    assert [table for table, _ in found] == [part(n)[0] for n in range(30)]
    assert os.getpid() not in {process for _, process in found}


def test_what_the_work_raises_comes_out_as_it_was(running: None) -> None:
    refuses(r"^row 3 is broken$", list, parallel.map_ordered(fails, range(8), RAY))


def test_a_lost_worker_costs_its_part_only(running: None, tmp_path: Path) -> None:
    def dies_once(number: int) -> tuple[pa.Table, int]:
        with (tmp_path / "done").open("a") as file:
            file.write(f"{number}\n")
        if number == 5 and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return part(number)

    found = list(parallel.map_ordered(dies_once, range(20), RAY))
    assert [table for table, _ in found] == [part(n)[0] for n in range(20)]
    times = [int(line) for line in (tmp_path / "done").read_text().split()]
    assert times.count(5) == 2
    assert len(times) <= 20 + 2  # its own part, and one that the worker had been handed already


def test_the_bundled_release_is_the_same_bytes(running: None, tmp_path: Path) -> None:
    made = []
    for workers in (parallel.SERIAL, RAY):
        out = tmp_path / workers.engine / "robustbench-tc"
        build_release(BuildSpec(profile="bundled", workers=workers), out)
        made.append(checksums(out))
        assert [path.name for path in out.parent.iterdir()] == [out.name]
    assert made[0] == made[1]


def test_scores_are_the_same_bytes(
    running: None, bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "BATCH_ROWS", 250)
    folder = answered.run(tmp_path / "run", bundled)
    made = []
    for workers in (parallel.SERIAL, RAY):
        verdicts.score_file(folder, inputs.load_samples(str(bundled)), workers)
        made.append((folder.scores_path.read_bytes(), folder.record.flagged))
    assert made[0] == made[1]


# --- asking -------------------------------------------------------------------------------------------


def test_texts_are_written_by_actors_and_kept_here(running: None, rbtc: Rbtc, tmp_path: Path) -> None:
    types = "query_paraphrase,paraphrase_tool_description"
    made: dict[str, Any] = {}
    with LoopbackServer(obedient) as one, LoopbackServer(obedient) as two:
        for engine in ("local", "ray", "ray"):
            before = one.count, two.count
            out = tmp_path / engine / "robustbench-tc"
            command = ["build", "--profile", "bundled", "--types", types, "--out", out, "--force"]
            command += ["--generator", f"openai:tiny@{one.url},{two.url}", "--engine", engine]
            done = rbtc(*command, "--store", tmp_path / f"{engine}.jsonl")
            assert done.code == 0, done.err
            asked = one.count - before[0], two.count - before[1]
            if engine in made:
                assert asked == (0, 0), "the store here has them all"
            else:
                assert min(asked) > 10
            made[engine] = {name: hashed for name, hashed in checksums(out).items() if "parquet" in name}
    assert made["local"] == made["ray"] and len(made["ray"]) >= 3


def test_an_address_that_is_down_ends_a_build_on_ray_too(running: None, rbtc: Rbtc, tmp_path: Path) -> None:
    gone = "http://127.0.0.1:9/v1"
    command = ["build", "--profile", "bundled", "--types", "query_paraphrase", "--out", tmp_path / "o"]
    assert (
        "127.0.0.1:9"
        in rbtc(*command, "--generator", f"openai:tiny@{gone},{gone}", "--engine", "ray").refusal
    )
    assert not (tmp_path / "o").exists()


def asked(run: Path) -> list[dict[str, Any]]:
    """A run's predictions, less what is measured."""
    rows = parquet.read_rows([run / "predictions.parquet"])
    return [{k: v for k, v in row.items() if k not in ("latency_s", "retries")} for row in rows]


def keys(run: Path) -> list[str]:
    """The journal's addresses of answers."""
    return [json.loads(line)["key"] for line in (run / "journal.jsonl").read_text().splitlines()]


def test_requests_are_dealt_out_over_endpoints(running: None, rbtc: Rbtc, tmp_path: Path) -> None:
    release = small.write(tmp_path / "robustbench-tc", small.rows())
    rows = inputs.load_samples(str(release)).rows
    with serving("name-biased", rows) as one, serving("name-biased", rows) as two:
        command = ["eval", release, "--no-probe", "--model", "m", "--base-url", one]
        alone, dealt = tmp_path / "alone", tmp_path / "dealt"
        assert rbtc(*command, "--out", alone).code == 0
        here = tmp_path / "here"
        assert rbtc(*command, "--base-url", two, "--out", here).code == 0
        done = rbtc(*command, "--base-url", two, "--engine", "ray", "--out", dealt)
        assert done.code == 0, done.err
    assert asked(dealt) == asked(here) == asked(alone)
    session = record.open_run(dealt).record.sessions[-1]
    assert session.endpoint == f"m@{one}, m@{two}"
    assert session.requests + session.shared == len(keys(dealt)) == len(set(keys(dealt)))


def test_an_endpoint_that_is_down_is_one_line_on_ray_too(running: None, rbtc: Rbtc, tmp_path: Path) -> None:
    release = small.write(tmp_path / "robustbench-tc", small.rows("CD"))
    gone = "http://127.0.0.1:9/v1"
    command = ["eval", release, "--no-probe", "--model", "m", "--max-retries", 0, "--out", tmp_path / "run"]
    done = rbtc(*command, "--base-url", gone, "--engine", "ray")
    assert done.code == 1
    assert "127.0.0.1:9" in done.err and "Traceback" not in done.err


def test_a_refusal_comes_back_from_an_actor_as_it_was(running: None, rbtc: Rbtc, tmp_path: Path) -> None:
    release = small.write(tmp_path / "robustbench-tc", small.rows("CD"))
    with LoopbackServer(lambda _: TOO_LONG) as server:
        command = ["eval", release, "--no-probe", "--model", "m", "--base-url", server.url]
        rbtc(*command, "--engine", "ray", "--out", tmp_path / "run")
    found = asked(tmp_path / "run")
    assert {row["status"] for row in found} == {"too_long"} and server.count == len(found)
    assert all("maximum context length" in row["error"] for row in found)


def test_an_actor_that_is_killed_is_asked_again_and_nothing_else_is(
    running: None, rbtc: Rbtc, tmp_path: Path
) -> None:
    release = small.write(tmp_path / "robustbench-tc", small.rows())
    rows = inputs.load_samples(str(release)).rows
    killed: list[int] = []

    def kill() -> None:
        deadline = time.monotonic() + 120
        while not killed and time.monotonic() < deadline:
            journal = tmp_path / "run" / "journal.jsonl"
            if journal.exists() and journal.stat().st_size > 0:
                found = descendants(os.getpid())
                for pid in [pid for pid, name in found.items() if name.startswith("ray::Sender")][:1]:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
            time.sleep(0.005)

    with serving("oracle", rows) as url:
        killer = threading.Thread(target=kill)
        killer.start()
        command = [
            "eval",
            release,
            "--no-probe",
            "--model",
            "m",
            "--base-url",
            url,
            "--repeat",
            20,
            "--concurrency",
            2,
        ]
        done = rbtc(*command, "--engine", "ray", "--out", tmp_path / "run")
        killer.join()
    assert done.code == 0, done.err
    assert killed
    found = asked(tmp_path / "run")
    assert len(found) == 20 * len(rows) and {row["status"] for row in found} == {"ok"}
    assert len(keys(tmp_path / "run")) == len(set(keys(tmp_path / "run")))


def test_a_vllm_is_opened_where_its_actor_runs(running: None, tmp_path: Path) -> None:
    data = inputs.Dataset(name="small", rows=tuple(small.rows()))
    decoding = {"temperature": 0.0, "max_tokens": 16}
    settings = small.settings(fingerprint=data.fingerprint(), model="tiny", backend="vllm", decoding=decoding)
    run = record.start(tmp_path / "run", data, settings, len(data.rows))
    effort = who.Effort(concurrency=16, workers=RAY, gpus=2)
    opened = who.vllm("tiny", request_settings.RequestSettings(decoding=decoding), effort, gpus_each=0)
    session.run(run, data, opened)
    found = asked(run.path)
    assert [row["id"] for row in found] == [row.id for row in data.rows]
    assert {row["raw_output"] for row in found} == {f"Well.\n{CALL}"}
    assert run.record.sessions[-1].endpoint == "vllm in process: tiny, vllm in process: tiny"


def test_gpus_that_are_not_there_are_not_waited_for(running: None, rbtc: Rbtc, tmp_path: Path) -> None:
    release = small.write(tmp_path / "robustbench-tc", small.rows("CD"))
    command = ["eval", release, "--model", "tiny", "--backend", "vllm", "--engine", "ray", "--gpus", 2]
    done = rbtc(*command, "--out", tmp_path / "run")
    assert done.code == 1
    assert "has 0 GPUs, but 2 are requested" in done.err


# --- the command, and who may be killed under it ----------------------------------------------------------


def descendants(pid: int) -> dict[int, str]:
    """Process ids below `pid` with what they call themselves."""
    found: dict[int, str] = {}
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has ended
            for child in map(int, children.read_text().split()):
                found |= descendants(child)
                found[child] = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


@nightly  # by day the bundled samples, and a worker that is killed over rows of its own
def test_the_full_profile_is_the_same_bytes_though_a_worker_is_killed(shared: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed here: make env-scale test-scale")

    def command(engine: str) -> list[str]:
        words = ["build", "--profile", "full", "--sources", str(shared / "sources"), "--generator", "none"]
        words += ["--engine", engine, "--num-proc", "2", "--out", str(tmp_path / engine)]
        return [sys.executable, "-c", "from robustbench_tc.cli import main; main()", *words]

    subprocess.run(command("local"), check=True, capture_output=True)
    with subprocess.Popen(
        command("ray"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as build:
        while not (
            at_work := [pid for pid, name in descendants(build.pid).items() if name.startswith("ray::_do")]
        ):
            assert build.poll() is None, "the build ended before the kill"
            time.sleep(0.01)
        os.kill(at_work[0], signal.SIGKILL)
        _, complaint = build.communicate()
    assert build.returncode == 0, complaint
    assert checksums(tmp_path / "ray") == checksums(tmp_path / "local")
