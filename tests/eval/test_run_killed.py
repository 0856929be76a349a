"""A run that is killed again and again against an endpoint that fails one request in five loses nothing."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

from robustbench_tc import schema
from robustbench_tc.eval import inputs, predictions, record

from ..commands import journaled, running
from ..conftest import nightly
from ..loopback import HTML, SERVER_ERROR, Fault, LoopbackServer, rate_limit, reply
from . import small


def unreliable(seed: int) -> Any:
    """Every fifth request meets a 429, a 500, a hang, or garbage; the others get a call."""
    draw = random.Random(seed)
    faults = [rate_limit("0"), SERVER_ERROR, HTML, Fault(200, "late", hang_s=5.0), Fault(200, "{]")]

    def handler(body: dict[str, Any]) -> Any:
        if draw.random() < 0.2:
            return draw.choice(faults)
        if body.get("tools"):
            return reply("", [(body["tools"][0]["function"]["name"], "{}")])
        return reply("[ping()]")

    return handler


def killed_and_finished(
    release: Path, out: Path, rows: int, mode: str, *, kills: int, concurrency: int, patience_s: float
) -> None:
    said = out.with_name("said")
    with LoopbackServer(unreliable(7), delay_s=0.02) as server:
        words = (
            "eval", release, "--no-probe", "--no-score", "--model", "tiny", "--base-url", server.url,
            "--mode", mode, "--timeout", 0.5, "--max-retries", 5, "--concurrency", concurrency, "--out", out,
        )  # fmt: skip
        for number in range(1, kills + 1):
            enough = rows * number // (kills + 1)
            with running(said, *words) as run:
                run.until(lambda enough=enough: journaled(out) >= enough, patience_s)  # type: ignore[misc]
                run.kill()
        for _ in range(3):  # what failed for good is asked again by the next session
            with running(said, *words) as run:
                failed = "request_error" in run.end(patience_s)
            if not failed:
                break

    dataset = inputs.load_samples(str(release))
    found = predictions.read_predictions(out / "predictions.parquet")
    assert [one.id for one in found] == [row.id for row in dataset.rows]
    assert {one.status for one in found} == {"ok"}
    answered = Counter(
        line["key"]
        for line in map(schema.loads, (out / "journal.jsonl").read_bytes().splitlines())
        if line["status"] == "ok"
    )
    assert set(answered.values()) == {1}  # nothing that was answered is asked twice
    assert len(answered) == len(found) + Counter(one.injected for one in found)[True]
    assert sum(one.seconds is None for one in record.open_run(out).record.sessions) == kills


def test_kills_and_a_fifth_of_failures_lose_nothing(tmp_path: Path) -> None:
    release = small.write(tmp_path / "release", small.rows())
    killed_and_finished(
        release, tmp_path / "run", len(small.rows()), "fc", kills=2, concurrency=2, patience_s=60
    )


@nightly
def test_five_kills_over_the_real_build_lose_nothing(paper: Path, tmp_path: Path) -> None:
    rows = len(inputs.load_samples(str(paper)).rows)
    killed_and_finished(paper, tmp_path / "run", rows, "prompt", kills=5, concurrency=32, patience_s=600)
