"""`rbtc eval --batch`: two batches for two passes, nothing paid twice, failures with their reasons."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.eval import predictions
from robustbench_tc.llm import batch, batch_book

from ..batch_server import BatchServer
from ..conftest import ROOT
from ..loopback import Fault, LoopbackServer, error_body, reply
from . import small
from .test_eval_command import Rbtc, rbtc

__all__ = ["rbtc"]

ROWS = small.rows()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"QUIET_S": 0.3, "FIRST_POLL_S": 0.02, "POLL_S": 0.05, "BACKOFF_S": 0.01}.items():
        monkeypatch.setattr(batch, name, value)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.write(tmp_path_factory.mktemp("release") / "small", ROWS)


def model(body: dict[str, Any]) -> Any:
    return reply('<tool_call>{"name": "ping", "parameters": {"a": 1}}</tool_call>')


def command(release: Path, server: LoopbackServer, *more: object, out: str = "run") -> tuple[object, ...]:
    return ("eval", release, "--model", "tiny", "--base-url", server.url, "--out", out, "--batch", *more)


def found(run: str = "run") -> list[Any]:
    return predictions.read(Path(run, "predictions.parquet"))


def sessions(run: str = "run") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(Path(run, "run.json").read_text())["sessions"]
    return found


def test_a_run_takes_one_batch_a_pass_and_equals_the_run_without(rbtc: Rbtc, release: Path) -> None:
    injected = sum(row.injected_error is not None for row in ROWS)
    with BatchServer(model) as server:
        said = rbtc(*command(release, server, "--repeat", 2))
        assert said.code == 0, said.err
        assert len(server.batches) == 2 and len(server.paid) == 2 * (len(ROWS) + injected)
        assert max(Counter(server.paid).values()) == 1
        again = rbtc(*command(release, server, "--repeat", 2))
        assert again.code == 0 and len(server.batches) == 2
        assert rbtc(*command(release, server, "--repeat", 2, out="alone")[:-3], "--repeat", 2).code == 0
    assert "batch batch_0: in_progress" in said.err
    assert f"batch batch_0: completed, {2 * len(ROWS)} of {2 * len(ROWS)} answered" in said.err
    assert sessions()[0]["batches"] == ["batch_0", "batch_1"] and sessions()[1]["batches"] == []
    there, alone = found(), found("alone")
    same = (
        "id",
        "repeat",
        "status",
        "raw_output",
        "injected",
        "first_output",
        "finish_reason",
        "prompt_tokens",
    )
    assert [[getattr(p, name) for name in same] for p in there] == [
        [getattr(p, name) for name in same] for p in alone
    ]
    assert {p.latency_s for p in there if not p.injected} == {60.0}


def test_failures_have_their_reason_and_are_asked_again_next_time(rbtc: Rbtc, release: Path) -> None:
    sick = iter(
        [
            {"code": "batch_expired", "message": "This request could not be executed in time."},
            "missing",
        ]
    )
    broken = Fault(500, error_body("The server had an error"))
    answers = iter([broken])
    with BatchServer(
        lambda body: next(answers, None) or model(body), fault=lambda *_: next(sick, None)
    ) as server:
        said = rbtc(*command(release, server, "--types", "clean"))
        assert said.code == 1 and "3 could not be had (request_error)" in said.err
        errors = sorted(p.error for p in found() if p.status == "request_error")
        assert errors == [
            "server_error: HTTP 500: The server had an error",
            "server_error: batch_expired: This request could not be executed in time.",
            "server_error: the batch is completed and has no answer to it",
        ]
        assert rbtc(*command(release, server, "--types", "clean")).code == 0
        assert max(Counter(server.paid).values()) == 1 and len(server.paid) == 5
        assert len(server.bodies) == 5 + 3
    assert {p.status for p in found()} == {"ok"}


def test_what_the_server_refuses_is_left_out_of_a_second_batch(rbtc: Rbtc, release: Path) -> None:
    def picky(body: dict[str, Any]) -> Any:
        if "top_k" in body:
            return Fault(400, error_body("Unrecognized request argument supplied: top_k"))
        return model(body)

    with BatchServer(picky) as server:
        said = rbtc(*command(release, server, "--types", "clean", "--top-k", 5))
    assert said.code == 0, said.err
    assert sessions()[0]["left_out"] == ["top_k"] and len(server.batches) == 2


def test_a_lost_reply_makes_no_second_batch(rbtc: Rbtc, release: Path) -> None:
    with BatchServer(model) as server:
        server.lose_create = 1
        assert rbtc(*command(release, server, "--types", "clean")).code == 0
        assert len(server.batches) == 1 and len(server.paid) == 5


KILLED = """
import sys
from robustbench_tc.llm import batch
batch.QUIET_S, batch.FIRST_POLL_S, batch.POLL_S = 0.3, 0.02, 0.05
from robustbench_tc import cli
sys.argv = ["rbtc", *sys.argv[1:]]
cli.main()
"""


def test_a_killed_run_waits_for_the_batch_that_it_paid_for(rbtc: Rbtc, release: Path) -> None:
    """Killed while the first batch is under way, and again while the second is."""
    injected = sum(row.injected_error is not None for row in ROWS)
    with BatchServer(model) as server:
        for number in (0, 1):
            server.hold_from = number
            words = [sys.executable, "-c", KILLED, *map(str, command(release, server))]
            env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
            process = subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            deadline = time.monotonic() + 60
            while not is_booked(number):
                assert time.monotonic() < deadline and process.poll() is None
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.wait()
        server.hold_from = None
        refused = rbtc(*command(release, server)[:-1])
        assert refused.code == 1 and "answers are under way in batch_1: say --batch" in refused.err
        said = rbtc(*command(release, server))
        assert said.code == 0, said.err
        assert len(server.batches) == 2
        assert len(server.paid) == len(ROWS) + injected and max(Counter(server.paid).values()) == 1
    assert len(found()) == len(ROWS) and {p.status for p in found()} == {"ok"}


def is_booked(number: int) -> bool:
    """Whether the run's book has the batch with its name."""
    book = Path("run/batches.jsonl")
    return book.exists() and f'"batch":"batch_{number}"' in book.read_text()


def test_a_batch_that_is_gone_is_made_again(rbtc: Rbtc, release: Path) -> None:
    with BatchServer(model) as server:
        server.status = "cancelled"
        server.fault = lambda *_: "missing"
        said = rbtc(*command(release, server, "--types", "clean"))
        assert said.code == 1 and "5 could not be had" in said.err
        assert "the batch is cancelled and has no answer to it" in str(found()[0].error)
        server.batches.clear()
        server.status, server.fault = "completed", lambda *_: None
        said = rbtc(*command(release, server, "--types", "clean"))
        assert said.code == 0, said.err
        assert len(server.paid) == 5


def test_a_batch_whose_name_was_never_written_down_is_found_by_its_file(rbtc: Rbtc, release: Path) -> None:
    """Killed between making the batch and the note of it."""
    with BatchServer(model) as server:
        assert rbtc(*command(release, server, "--types", "clean")).code == 0
        book = Path("run/batches.jsonl")
        first = book.read_text().splitlines()[0]
        assert '"batch":null' in first
        for gone in ("journal.jsonl", "predictions.parquet", "scores.parquet"):
            Path("run", gone).unlink()
        book.write_text(first + "\n")
        said = rbtc(*command(release, server, "--types", "clean"))
        assert said.code == 0, said.err
        assert len(server.batches) == 1 and len(server.paid) == 5
    assert "batch batch_0: goes on, 5 requests wait for it" in said.err


def test_a_run_with_batches_can_be_thrown_away(rbtc: Rbtc, release: Path) -> None:
    with BatchServer(model) as server:
        assert rbtc(*command(release, server, "--types", "clean")).code == 0
        assert rbtc(*command(release, server, "--types", "clean", "--fresh")).code == 0
        assert len(server.batches) == 2


def test_what_a_user_gets_wrong_is_one_line(rbtc: Rbtc, release: Path) -> None:
    refusal = {"data": [{"code": "model_not_found", "message": "The model `tiny` does not exist."}]}
    with LoopbackServer(model) as plain, BatchServer(model, status="failed") as failing:
        failing.fault = lambda *_: "missing"
        end = failing._end

        async def ended(one: dict[str, Any]) -> None:
            await end(one)
            one["errors"] = refusal

        failing._end = ended  # type: ignore[method-assign]
        for words, line in (
            (
                command(release, plain, out="a"),
                "has no Batch API (HTTP 404: 404: Not Found): leave --batch out",
            ),
            (command(release, failing, out="b"), "batch batch_0 failed: The model `tiny` does not exist."),
            (
                ("eval", release, "--agent", "oracle", "--batch"),
                "--batch: one address of an OpenAI-compatible",
            ),
            (("eval", release, "--model", "anthropic:x", "--batch"), "--batch: one address of an OpenAI"),
            (command(release, plain, "--base-url", "http://b", out="c"), "--batch: one address"),
            (
                ("eval", release, "--model", "m@http://127.0.0.1:9/v1", "--batch", "--out", "d"),
                "nothing answers at http://127.0.0.1:9/v1",
            ),
        ):
            said = rbtc(*words)
            last = said.err.strip().splitlines()[-1]
            assert said.code == 1 and line in last, (words, said.err)
            assert "Traceback" not in said.err


def test_hostile_results_are_failures_of_single_rows(rbtc: Rbtc, release: Path) -> None:
    with BatchServer(model) as server:
        end = server._end

        async def spoil(one: dict[str, Any]) -> None:
            await end(one)
            lines = server.files[one["output_file_id"]].splitlines()
            first = json.loads(lines[0])
            hostile = [
                b"[" * 100_000, b"\xff\xfe", b"null", b'{"custom_id": 3}', lines[1],
                json.dumps({**first, "response": {"status_code": 200, "body": [1]}}).encode(),
            ]  # fmt: skip
            server.files[one["output_file_id"]] = b"\n".join([*hostile, *lines[2:], lines[0], lines[1]])

        server._end = spoil  # type: ignore[method-assign]
        said = rbtc(*command(release, server, "--types", "clean"))
    assert said.code == 1 and "1 could not be had" in said.err, said.err
    [bad] = [p for p in found() if p.status == "request_error"]
    assert str(bad.error).startswith("not_a_completion: ")


def test_files_are_cut_where_the_server_takes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_book, "MAX_REQUESTS", 3)

    def waiting(*keys: str, size: int = 1) -> list[Any]:
        return [batch_book.Waiting(key, "d", {"x": "y" * size}, asyncio.Future(loop=loop)) for key in keys]

    loop = asyncio.new_event_loop()
    parts = [[one.key for one in part] for part in batch_book.in_files(waiting("a", "b", "c", "d", "a"))]
    assert parts == [["a", "b", "c"], ["d", "a"]]
    assert [len(part) for part in batch_book.in_files(waiting("a", "a"))] == [1, 1]
    monkeypatch.setattr(batch_book, "MAX_BYTES", 1000)
    assert [len(part) for part in batch_book.in_files(waiting("a", "b", size=700))] == [1, 1]
    loop.close()


def test_errors_that_come_again_take_a_batch_a_pass(rbtc: Rbtc, tmp_path: Path) -> None:
    small.write(tmp_path / "release", small.rows("transient_timeout_x2", "transient_timeout_x1"))
    with BatchServer(model) as server:
        assert rbtc(*command(tmp_path / "release", server)).code == 0
        assert len(server.batches) == 3 and len(server.paid) == 15 + 10 + 5
    tries = {p.type_code: p.attempts for p in found()}
    assert tries == {"clean": None, "transient_timeout_x1": 1, "transient_timeout_x2": 2}
