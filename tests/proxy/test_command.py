"""`rbtc proxy` and `rbtc proxy run` as they are typed."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest

from robustbench_tc import api, taxonomy

from ..conftest import Done
from ..refusals import refuses
from .wire import Answer, Seen, send, serving as server_of


def test_the_command_serves_until_it_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("version: 1\ntypes: [same_name_A]\n")
    code = "from robustbench_tc.cli import main; main()"
    with server_of(lambda seen: Answer()) as server:
        words = ["proxy", "--upstream", server.url, "--plan", "plan.yaml", "--journal", "j.jsonl"]
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(
                signal.SIGINT, signal.SIG_DFL
            ),  # shells ignore it in the background
        )
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1].replace("CASE.REPEAT", "refund-1.0")
        tools = [{"type": "function", "function": {"name": "refund", "parameters": {
            "type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}}}]  # fmt: skip
        body = {"model": "m", "messages": [{"role": "user", "content": "Refund 7."}], "tools": tools}
        key = {"Authorization": "Bearer sk-1"}
        assert send(f"{url}/chat/completions", json.dumps(body).encode(), key).body == b"{}"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        _, err = process.communicate()
    assert err.splitlines()[-1] == "rbtc: interrupted: the door is closed; its journal is j.jsonl"
    sent = json.loads(server.seen[0].body)["tools"]
    assert [tool["function"]["name"] for tool in sent] == ["refund", "refund"]
    kept = (tmp_path / "j.jsonl").read_text()
    assert json.loads(kept)["session"] == "refund-1.0" and "sk-1" not in kept


def test_mistakes_are_one_line(
    rbtc: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = tmp_path / "plan.yaml"
    plan.write_text("version: 1\nfault: []\n")
    door = ("proxy", "--upstream", "http://127.0.0.1:9/v1", "--plan", plan)
    assert rbtc(*door).refusal == (f"rbtc: {plan}:2: unknown key 'fault' of the plan: did you mean faults?\n")
    plan.write_text("version: 1\nbench: nowhere\ntypes: [CD]\n")
    assert "nowhere" in rbtc(*door).refusal
    plan.write_text("version: 1\n")
    done = rbtc(*door[:2], "http://me:pw@x/v1", *door[3:])
    assert done.code == 1 and "pw" not in done.err and done.err.count("\n") == 1
    assert [*tmp_path.iterdir()] == [plan]  # no journal of a door that never was
    assert "choose another --journal" in rbtc(*door, "--journal", tmp_path).refusal


# --- `rbtc proxy run`: a program that owns its loop, once for each row behind the door


PROGRAM = """
import json, os, sys, urllib.request
asked = json.load(sys.stdin)
messages = asked["messages"]
if "break" in messages[-1]["content"]:
    sys.exit("the agent broke")
for _ in range(4):
    body = json.dumps({"model": "m", "messages": messages, "tools": asked["tools"]}).encode()
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    message = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
    if not message.get("tool_calls"):
        break
    messages = [*messages, message]
    for call in message["tool_calls"]:
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": '{"status": "ok"}'})
"""
TOOLS = [{"type": "function", "function": {"name": "refund", "description": "Pays back.", "parameters": {
    "type": "object", "properties": {"order_id": {"type": "integer"}},
    "required": ["order_id"]}}}]  # fmt: skip
CASES = """
version: 1
tools: [tools.json]
read_only: [refund]
cases:
- {id: refund, request: "Refund order 7.", expect: [{call: refund, arguments: {order_id: 7}}]}
- {id: thanks, request: "Thanks!", expect: no_call}
- {id: broken, request: "Refund order 7 and break.", expect: [{call: refund, arguments: {order_id: 7}}]}
"""


def model(seen: Seen) -> Answer:
    """Refunds, and again after an error."""
    last = json.loads(seen.body)["messages"][-1]
    wanted = "Refund" in last["content"] or last["content"] == taxonomy.injected_error("transient_timeout")
    call = {"id": "c", "type": "function", "function": {"name": "refund", "arguments": '{"order_id": 7}'}}
    message: dict[str, Any] = {"role": "assistant", "content": None if wanted else "Done."}
    if wanted:
        message["tool_calls"] = [call]
    reply = {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [
        {"index": 0, "message": message, "finish_reason": "tool_calls" if wanted else "stop"}]}  # fmt: skip
    return Answer([json.dumps(reply).encode()])


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    (tmp_path / "cases.yaml").write_text(CASES)
    (tmp_path / "agent.py").write_text(PROGRAM)
    types = ("same_name_A", "transient_timeout")
    api.build(cases=tmp_path / "cases.yaml", out=tmp_path / "bench", types=types)
    return tmp_path / "bench"


def test_a_loop_of_its_own_is_run_for_each_row_and_scored(
    bench: Path, tmp_path: Path, rbtc: Callable[..., Any]
) -> None:
    words = ("proxy", "run", bench, "--command", f"{sys.executable} {tmp_path / 'agent.py'}")
    kept = ("--journal", tmp_path / "j.jsonl", "--out", tmp_path / "run", "--model", "mine")
    with server_of(model) as server:
        done = rbtc(*words, "--upstream", server.url, *kept)
        assert done.code == 0, done.err
        asked = len(server.seen)
        again = rbtc(*words, "--upstream", server.url, *kept)
    assert "3 × " in done.err and "the agent broke" in done.err
    verdicts = {
        one["id"]: one["correct"] for one in pq.read_table(tmp_path / "run/scores.parquet").to_pylist()
    }
    assert verdicts == {
        "own__refund::clean": True,
        "own__refund::same_name_A": True,
        "own__refund::transient_timeout": True,
        "own__thanks::clean": True,
    }
    # Only what has no line in the journal is run again: the broken ones, which ask nobody.
    assert again.code == 0 and len(server.seen) == asked
    assert "4 sessions were in" in again.err


def test_mistakes_of_a_program_are_one_line(bench: Path, tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    refuses(
        "unknown type of the dataset 'same_name_B'",
        api.proxy_run,
        bench,
        "true",
        "http://127.0.0.1:9/v1",
        types=["same_name_B"],
        journal=journal,
    )
    refuses(
        "there is no program 'no-such-program'",
        api.proxy_run,
        bench,
        "no-such-program x",
        "http://127.0.0.1:9/v1",
        journal=journal,
    )
    refuses("holds no exchange yet", api.proxy_run, bench, "true", "http://127.0.0.1:9/v1", journal=journal)


# --- Clients that leave, and what a door refuses


def test_a_client_that_leaves_leaves_no_traceback(tmp_path: Path) -> None:
    """In its request, before a reply, in a stream that passes and in one that is rewritten; of MCP too."""
    (tmp_path / "plan.yaml").write_text("version: 1\ntypes: [same_name_A]\n")
    code = "from robustbench_tc.cli import main; main()"
    tools = [{"type": "function", "function": {"name": "a", "parameters": {"type": "object"}}}]
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi."}], "stream": True}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
             "choices": [{"index": 0, "delta": {"content": "x" * 1000}, "finish_reason": None}]}  # fmt: skip
    event = b"data: " + json.dumps(chunk).encode() + b"\n\n"
    endless = Answer([event] * 400, headers={"Content-Type": "text/event-stream"}, pause_s=0.02)
    with server_of(lambda seen: endless) as server:
        for name, place in (("--upstream", "v1/chat/completions"), ("--mcp-url", "mcp")):
            process = subprocess.Popen(
                [sys.executable, "-c", code, "proxy", name, server.url, "--plan", "plan.yaml"],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
            assert process.stderr is not None
            parts = urlsplit(process.stderr.readline().split()[-1])
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}}
            for body in (asked, {**asked, "tools": tools}, call):
                data = json.dumps(body).encode()
                head = f"POST /s/a.0/{place} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                head += f"Content-Length: {len(data)}\r\n\r\n"
                for sent, heard in ((data[:9], 0), (data, 0), (data, 2000)):
                    with socket.create_connection((parts.hostname or "", parts.port or 0), 20) as client:
                        client.sendall(head.encode() + sent)
                        while heard > 0 and (got := client.recv(heard)):
                            heard -= len(got)
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            err = process.communicate()[1]
            assert "Traceback" not in err and "exception" not in err.lower(), err
