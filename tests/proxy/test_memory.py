"""A server that never ends its reply: what each door holds of it meanwhile."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from itertools import product, repeat
from pathlib import Path
from typing import Any

import pytest

from ..conftest import NIGHTLY
from .wire import Answer, Seen, serving

DOOR = "from robustbench_tc.cli import main; main()"
SECONDS, PAUSE_S = 20.0 if NIGHTLY else 10.0, 0.002
MOST_KB = 200_000

CHUNK = json.dumps({"id": "1", "choices": [{"index": 0, "delta": {"content": "ab"}}]})
CALLS = json.dumps(
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "x" * 60}}]}}]}
)
ENDLESS = {
    "deltas": ("text/event-stream", f"data: {CHUNK}\n\n".encode()),
    "arguments": ("text/event-stream", f"data: {CALLS}\n\n".encode()),
    "no choices": ("text/event-stream", b'data: {"a":{"b":{}}}\n\n'),
    "comments": ("text/event-stream", b": \n\n"),
    "comments that end": ("text/event-stream", b": \n\n"),
    "one event": ("text/event-stream", b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\ndata:"),
    "one body": ("application/json", b'{"a":{"b":{}},"x":[1,2,3,'),
}
"""What a server says over and over."""


def endless(kind: str, seen: Seen) -> Answer:
    content_type, said = ENDLESS[kind]
    asked = json.loads(seen.body)
    if isinstance(asked, dict) and asked.get("method") == "tools/list":
        return Answer([json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"tools": []}}).encode()])
    seconds = 2.0 if kind.endswith("end") else SECONDS
    pieces = repeat(said * (65536 // len(said)), int(seconds / PAUSE_S))  # 30 MB a second
    return Answer(pieces, headers={"Content-Type": content_type}, pause_s=PAUSE_S)


def asked(port: int, path: str, body: dict[str, object]) -> None:
    """Asks once, and reads as long as something comes."""
    raw = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS + 30) as client, suppress(OSError):
        client.sendall(f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and client.recv(2**20):
            pass


def peak_kb(folder: Path, door: str, kind: str, plan: str) -> int:
    """The most memory that a door took, in kilobytes."""
    (folder / "plan.yaml").write_text(plan)
    with serving(partial(endless, kind)) as server:
        address = ["--upstream" if door == "llm" else "--mcp-url", server.url]
        words = ["proxy", "--plan", "plan.yaml", *address]
        process = subprocess.Popen(
            [sys.executable, "-c", DOOR, *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stderr=subprocess.PIPE,
        )
        try:
            assert process.stderr is not None
            where = re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline().decode())
            assert where is not None
            port = int(where[1])
            if door == "llm":
                tool = {"type": "function", "function": {"name": "a", "parameters": SCHEMA}}
                body: dict[str, Any] = {"model": "m", "stream": True, "tools": [tool]}
                asked(
                    port,
                    "/s/a.0/v1/chat/completions",
                    {**body, "messages": [{"role": "user", "content": "x"}]},
                )
            else:
                call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "a"}}
                asked(port, "/s/a.0/mcp", call)
            said = Path(f"/proc/{process.pid}/status").read_text()
        finally:
            process.kill()
            process.wait()
    found = re.search(r"VmHWM:\s+(\d+) kB", said)
    assert found is not None
    return int(found[1])


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PLANS = {
    "faults": "version: 1\nfaults:\n- {kind: transient_timeout, at: [9]}\n",
    "types": "version: 1\ntypes: [same_name_A]\n",
}
REWRITTEN = ("deltas", "arguments", "one event")
"""By day these meet the plan of types, which a stream is rewritten for, and the others that of faults."""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_an_endless_reply_takes_no_more_than_200_mb(tmp_path: Path) -> None:
    found: dict[tuple[str, str, str], int] = {}
    failed: list[BaseException] = []

    def measure(door: str, kind: str, name: str, plan: str) -> None:
        folder = tmp_path / f"{door}-{kind}-{name}".replace(" ", "-")
        folder.mkdir()
        try:
            found[door, kind, name] = peak_kb(folder, door, kind, plan)
        except BaseException as error:  # raised by the test, behind the threads
            failed.append(error)

    for door in ("llm", "mcp"):
        threads = [
            threading.Thread(target=measure, args=(door, kind, name, plan))
            for kind, (name, plan) in product(ENDLESS, PLANS.items())
            if NIGHTLY or (name == "types") == (kind in REWRITTEN)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed
    assert {what: kb for what, kb in found.items() if kb > MOST_KB} == {}
