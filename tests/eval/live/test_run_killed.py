"""A run whose process is killed again and again ends as one that nobody disturbed.

Four kills by day, twenty with RBTC_NIGHTLY=1 (a start takes seconds).
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc import api, schema
from robustbench_tc.eval import record
from robustbench_tc.eval.live.episodes import read_episodes
from robustbench_tc.worlds.find import BUNDLED, find, tasks

from ...commands import running
from ...conftest import NIGHTLY
from ...loopback import LoopbackServer, reply
from . import purses

KILLS, TASKS = (20, 4) if NIGHTLY else (4, 2)
CONCURRENCY = 2
FAULTS = (
    schema.Fault(schema.At(write=1), "silent_no_op"),
    schema.Fault(schema.At(write=1), "timeout_after_effect"),
    schema.Fault(schema.At(read=1), "transient_timeout"),
)


def rows() -> list[schema.LiveRow]:
    """Tasks of each bundled world, and each of them with every fault above."""
    clean = [purses.clean_row(task, world) for world in map(find, BUNDLED) for task in tasks(world)[:TASKS]]
    return [*clean, *(purses.faulted(row, fault) for fault in FAULTS for row in clean)]


class GoldModel:
    """Answers with gold's calls one by one, then with a text: what a request asks for alone decides.

    Requests wait while the journal is larger than `hold_at`, so that a process that a test is late to kill
    cannot end by itself.
    """

    def __init__(self, found: list[schema.LiveRow], journal: Path) -> None:
        self.rows = {row.turns[0].messages[0].content: row for row in found if row.clean}
        assert len(self.rows) == sum(row.clean for row in found)
        self.journal = journal
        self.hold_at = float("inf")

    async def __call__(self, body: dict[str, schema.Json]) -> dict[str, schema.Json]:
        while size(self.journal) >= self.hold_at:
            await asyncio.sleep(0.01)
        said: list[dict[str, schema.Json]] = body["messages"]
        users = [at for at, one in enumerate(said) if one["role"] == "user"]
        gold = self.rows[said[users[0]]["content"]].golden_calls[len(users) - 1]
        called = sum(one["role"] == "tool" for one in said[users[-1] :])
        if called == len(gold):
            return reply("Done.")
        call = gold[called]
        return reply("", [(call.name, schema.dumps(call.parameters))])


def size(journal: Path) -> int:
    return journal.stat().st_size if journal.is_file() else 0


def on_disk(journal: Path) -> Counter[str]:
    """The whole lines of a journal, without how long an answer took."""
    data = journal.read_bytes()
    found = map(schema.loads, data[: data.rfind(b"\n") + 1].splitlines())
    return Counter(schema.dumps({**line, "latency_s": None}) for line in found)


def answers(lines: Counter[str]) -> int:
    return sum('"status":' in line for line in lines.elements())


def episodes(run: Path) -> list[schema.Episode]:
    """A run's episodes, without how long their answers took."""
    return [
        msgspec.structs.replace(
            one, replies=tuple(msgspec.structs.replace(each, latency_s=None) for each in one.replies)
        )
        for one in read_episodes(run)
    ]


def test_kills_change_nothing_and_nothing_on_disk_is_asked_again(
    tmp_path: Path, record_testsuite_property: Callable[[str, object], None]
) -> None:
    found = rows()
    dataset = purses.write(tmp_path / "data", found)
    whole, out = tmp_path / "whole", tmp_path / "killed"
    journal = out / "journal.jsonl"
    model = GoldModel(found, journal)
    lost: list[int] = []
    """For each kill, the requests that had no line in the journal: they are asked again."""
    with LoopbackServer(model, delay_s=0.01) as server:
        words: dict[str, Any] = {"model": "tiny", "base_url": server.url, "mode": "fc", "temperature": 0.5}
        command = (
            "eval", dataset, "--no-score", "--model", "tiny", "--base-url", server.url, "--mode", "fc",
            "--temperature", 0.5, "--concurrency", CONCURRENCY, "--out", out,
        )  # fmt: skip
        api.evaluate(dataset, **words, concurrency=CONCURRENCY, out=whole)
        undisturbed = on_disk(whole / "journal.jsonl")
        assert server.count == answers(undisturbed)
        step = size(whole / "journal.jsonl") / (KILLS + 1)
        asked, there = server.count, 0
        for kill in range(1, KILLS + 1):
            model.hold_at = step * (kill + 0.5)
            with running(tmp_path / "said", *command) as run:
                run.until(lambda point=step * kill: size(journal) >= point)  # type: ignore[misc]
                run.kill()
            time.sleep(0.2)  # requests that it had sent are counted
            left = on_disk(journal)
            assert answers(left) > there and left <= undisturbed
            lost.append(server.count - asked - (answers(left) - there))
            asked, there = server.count, answers(left)
        model.hold_at = float("inf")
        with running(tmp_path / "said", *command) as run:
            run.end()
        assert server.count - asked == answers(undisturbed) - there
        assert server.at_once <= CONCURRENCY
    assert on_disk(journal) == undisturbed
    assert episodes(out) == episodes(whole)
    assert sorted(one.id for one in episodes(out)) == sorted(row.id for row in found)
    sessions = record.open_run(out).record.sessions
    assert [one.seconds is None for one in sessions] == [True] * KILLS + [False]
    record_testsuite_property("answers", answers(undisturbed))
    record_testsuite_property("asked again", lost)
    assert min(lost) >= 0 and max(lost) <= CONCURRENCY, lost
