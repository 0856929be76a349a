"""One agent with two servers, each behind a door of its own, both writing one journal."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from robustbench_tc import api
from robustbench_tc.credentials import NONE
from robustbench_tc.proxy.journal import MCP, Called, Exchange, Journal
from robustbench_tc.proxy.scored import score as score_journal
from robustbench_tc.proxy.summary import as_replies

from ...conftest import NIGHTLY
from .conftest import DOOR

SERVER = """
import json, sys, time
name = sys.argv[1]
for line in sys.stdin:
    m = json.loads(line)
    result = {}
    if m.get("method") == "tools/list":
        schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        result = {"tools": [{"name": name, "description": "Looks up.", "inputSchema": schema}]}
    if m.get("method") == "tools/call":
        time.sleep(0.2)
        result = {"content": [{"type": "text", "text": "fine"}], "isError": False}
    if "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
"""
TOOL = {
    "description": "Looks up.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CASES = """
version: 1
tools: [tools.json]
read_only: [weather, traffic]
cases:
- id: both
  request: "Weather and traffic in Oslo, please."
  expect:
  - {call: weather, arguments: {city: Oslo}}
  - {call: traffic, arguments: {city: Oslo}}
"""


class Server:
    """One server of an agent's, behind a door."""

    def __init__(self, folder: Path, tool: str) -> None:
        words = ["proxy", "--plan", "plan.yaml", "--session", "both.0", "--", sys.executable]
        self.process = subprocess.Popen(
            [sys.executable, "-c", DOOR, *words, "-c", SERVER, tool],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.tool = tool
        self.ask(0, "initialize", {})
        self.read()

    def ask(self, number: int, method: str, params: Any) -> None:
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def call(self, number: int) -> None:
        self.ask(number, "tools/call", {"name": self.tool, "arguments": {"city": "Oslo"}})

    def close(self) -> None:
        self.process.communicate(timeout=60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tools = [{"name": name, **TOOL} for name in ("weather", "traffic")]
    (tmp_path / "tools.json").write_text(json.dumps({"tools": tools}))
    (tmp_path / "cases.yaml").write_text(CASES)
    api.build(cases=tmp_path / "cases.yaml", out=tmp_path / "bench", types=("transient_timeout",))
    (tmp_path / "plan.yaml").write_text("version: 1\nbench: bench\ntypes: [clean]\n")
    return tmp_path


def verdicts(folder: Path, out: str) -> list[bool]:
    scored = score_journal(folder / "journal.jsonl", out=folder / out)
    assert scored.predictions == 1
    return [one["correct"] for one in pq.read_table(folder / out / "scores.parquet").to_pylist()]


def test_calls_of_two_servers_at_once_are_one_reply_and_right(folder: Path) -> None:
    servers = [Server(folder, "weather"), Server(folder, "traffic")]
    for one in servers:
        one.call(1)
    assert [one.read()["result"]["isError"] for one in servers] == [False, False]
    for one in servers:
        one.close()
    assert verdicts(folder, "run") == [True]
    assert str(folder) not in (folder / "journal.jsonl").read_text()


@pytest.mark.parametrize("first", [2, 1])
def test_doors_that_are_started_again_begin_the_session_again(folder: Path, first: int) -> None:
    for number in (first, 3 - first):
        servers = [Server(folder, "weather"), Server(folder, "traffic")]
        for one in servers[:number]:
            one.call(1)
        for one in servers[:number]:
            one.read()
        for one in servers:
            one.close()
    assert verdicts(folder, "run") == [first == 2]  # of several attempts under one name the first counts


def test_a_server_without_a_door_is_named(folder: Path) -> None:
    server = Server(folder, "weather")
    server.call(1)
    server.read()
    server.close()
    scored = score_journal(folder / "journal.jsonl", out=folder / "run")
    assert any("no door stood before the server of traffic" in note for note in scored.folder.notes)


def line(by: str, opening: float, began: float, ended: float, number: int = 1) -> Exchange:
    call: Called = {"id": "1", "name": by, "arguments": "{}"}
    return Exchange(
        door=MCP, session="a.0", repeat=0, number=number, by=by, opening=opening, began=began,
        ended=ended, replies=[{"text": "", "tool_calls": [call]}],
    )  # fmt: skip


def batches(lines: Sequence[Exchange]) -> list[list[list[str]]]:
    """Names of the tools, by attempt and reply."""
    found: list[list[list[str]]] = []
    for one in as_replies(lines):
        if one.turn == 0:
            found.append([])
        names = [call["name"] for call in one.replies[0]["tool_calls"] or ()]
        if names:
            found[-1].append(names)
    return found


@given(st.data())
def test_attempts_and_batches_do_not_depend_on_numbers_or_the_order_of_lines(data: st.DataObject) -> None:
    doors = data.draw(st.integers(1, 4))
    wanted: list[list[list[str]]] = []
    lines, now = [], 0.0
    for _ in range(data.draw(st.integers(1, 3))):  # attempts, one after the other
        openings = {f"d{door}": now + door / 100 for door in range(doors)}
        lines += [
            msgspec.structs.replace(line(by, at, at, at, 0), replies=[], lists=[by])
            for by, at in openings.items()
        ]
        now += 1.0
        replies = data.draw(st.lists(st.lists(st.sampled_from(sorted(openings)), min_size=1), min_size=1))
        for reply in replies:
            begins = [now + place / 1000 for place in range(len(reply))]
            ends = [now + 0.5 + data.draw(st.floats(0, 0.4)) for _ in reply]
            lines += [
                line(by, openings[by], begin, end) for by, begin, end in zip(reply, begins, ends, strict=True)
            ]
            now += 1.0
        wanted.append(replies)
    assert batches(data.draw(st.permutations(lines))) == wanted


def test_many_doors_share_a_large_journal(tmp_path: Path) -> None:
    doors = 40 if NIGHTLY else 12
    path = tmp_path / "journal.jsonl"
    one = line("x", 0.0, 1.0, 2.0)
    big = Journal(path)
    for _ in range(1000):
        big.write(msgspec.structs.replace(one, replies=[{"text": "x" * 99_000}]), NONE)
    big.close()
    before = path.stat().st_size
    assert before > 99_000_000
    with path.open("ab") as file:
        file.write(b'{"v":2,"session":"cut')  # a door that was killed
    writes = (
        "import sys; from pathlib import Path; from robustbench_tc.proxy.journal import *\n"
        "from robustbench_tc.credentials import NONE\n"
        f"kept = Journal(Path({str(path)!r}))\n"
        "for n in range(30): kept.write(Exchange(session=sys.argv[1], repeat=0, number=n), NONE)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    async def all_at_once() -> None:
        slots = asyncio.Semaphore(8)

        async def door(number: int) -> None:
            async with slots:
                words = (sys.executable, "-c", writes, f"s{number}.0")
                process = await asyncio.create_subprocess_exec(*words, env=env)
                assert await process.wait() == 0

        await asyncio.gather(*map(door, range(doors)))

    begun = time.monotonic()
    asyncio.run(all_at_once())
    with path.open("rb") as written:
        written.seek(before)
        found = [msgspec.json.decode(added, type=Exchange) for added in written]
    assert len(found) == len({(added.session, added.number) for added in found}) == 30 * doors
    assert time.monotonic() - begun < 300
