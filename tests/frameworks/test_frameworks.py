"""The agents that `rbtc init --framework` writes: each in its own environment, against a scripted model."""

import json
import os
import shlex
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from robustbench_tc import api, taxonomy
from robustbench_tc.api.proxy import proxied
from robustbench_tc.own.desk import FRAMEWORKS, framework
from tests.conftest import ROOT
from tests.proxy.wire import Answer, Seen, serving as server_of

TOOLS = [
    {"type": "function", "function": {
        "name": "get_order", "description": "Reads an order.",
        "parameters": {
            "type": "object", "properties": {"order_id": {"type": "integer"}}, "required": ["order_id"]}}},
    {"type": "function", "function": {
        "name": "refund_order", "description": "Pays an order back.",
        "parameters": {"type": "object", "properties": {
            "order_id": {"type": "integer"}, "reason": {"type": "string", "enum": ["damaged", "late"]}},
            "required": ["order_id", "reason"]}}},
]  # fmt: skip
CASES = """
version: 1
tools: [tools.json]
read_only: [get_order, refund_order]
cases:
- id: late
  system: You are a support desk.
  messages:
  - {role: user, content: "What is order 7?"}
  - role: assistant
    tool_calls: [{id: c1, type: function, function: {name: get_order, arguments: '{"order_id": 7}'}}]
  - {role: tool, tool_call_id: c1, content: '{"total": 9}'}
  - {role: assistant, content: "It cost 9."}
  - {role: user, content: "It came late: refund it."}
  expect: [{call: refund_order, arguments: {order_id: 7, reason: late}}]
- {id: thanks, request: "Thank you!", expect: no_call}
"""
TYPES = ("same_name_A", "transient_timeout")
GOLD = {"name": "refund_order", "arguments": json.dumps({"order_id": 7, "reason": "late"})}


class Model:
    """Answers as a right model does, in chat completions. `gives_up`: not after an error."""

    def __init__(self, *, gives_up: bool = False) -> None:
        self.gives_up = gives_up
        self.seen: list[Any] = []

    def __call__(self, seen: Seen) -> Answer:
        body = json.loads(seen.body)
        self.seen.append(body)
        last = body["messages"][-1]
        text = last["content"] if isinstance(last["content"], str) else last["content"][0]["text"]
        failed = last["role"] == "tool" and text == taxonomy.injected_error("transient_timeout")
        calls = "refund it" in text or (failed and not self.gives_up)
        message: dict[str, Any] = {"role": "assistant", "content": None if calls else "You are welcome."}
        if calls:
            message["tool_calls"] = [{"id": f"c{len(self.seen)}", "type": "function", "function": GOLD}]
        reply = {
            "id": "r", "object": "chat.completion", "created": 1, "model": "scripted",
            "choices": [
                {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
            ],
            "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
        }  # fmt: skip
        return Answer([json.dumps(reply).encode()])


@pytest.fixture(params=FRAMEWORKS)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The words that run a framework's agent, in a folder with a small dataset beside it."""
    python = ROOT / f".venv-{request.param}/bin/python"
    if not python.exists():
        pytest.skip(f"no environment of {request.param}: make env-frameworks")
    for name, data in framework(request.param).items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    (tmp_path / "cases.yaml").write_text(CASES)
    api.build(cases=tmp_path / "cases.yaml", out=tmp_path / "bench", types=TYPES)
    prefix = request.param.replace("-", "_")
    return [str(python), str(tmp_path / f"{prefix}_agent.py")]


def env(url: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return kept | {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-test", "MODEL": "scripted"}


def verdicts(run: Path) -> dict[str, bool]:
    asked = pq.read_table(run / "predictions.parquet").to_pylist()
    assert all(one["error"] is None for one in asked), [one["error"] for one in asked]
    return {one["id"]: one["correct"] for one in pq.read_table(run / "scores.parquet").to_pylist()}


def test_under_eval(agent: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late, thanks = "own__late", "own__thanks"
    for gives_up in (False, True):
        model = Model(gives_up=gives_up)
        with server_of(model) as server:
            for name, value in env(server.url).items():
                monkeypatch.setenv(name, value)
            run = tmp_path / f"run-{gives_up}"
            api.evaluate(str(tmp_path / "bench"), command=shlex.join(agent), out=run)
        found = verdicts(run)
        assert found[f"{late}::clean"] and found[f"{thanks}::clean"] and found[f"{late}::same_name_A"]
        assert found[f"{late}::transient_timeout"] is not gives_up
        # Earlier calls and their results reach the model as calls and results.
        roles = [Counter(message["role"] for message in body["messages"]) for body in model.seen]
        assert Counter(system=1, user=2, assistant=2, tool=1) in roles


def test_behind_the_door(agent: list[str], tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(
        "version: 1\nbench: bench\ntypes: [clean, same_name_A, transient_timeout]\n"
    )
    asked = {
        "session": "s", "turn": 1, "seed": 0, "tools": TOOLS,
        "messages": [{"role": "system", "content": "You are a support desk."}, *HISTORY],
    }  # fmt: skip
    model = Model()
    journal = tmp_path / "journal.jsonl"
    with (
        server_of(model) as server,
        proxied(tmp_path / "plan.yaml", upstream=server.url, journal=journal) as door,
    ):
        for repeat in range(3):
            url = door.replace("/v1", f"/s/late.{repeat}/v1")
            done = subprocess.run(
                [*agent, "--loop"],
                input=json.dumps(asked),
                env=env(url),
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["calls"][0]["name"] == "refund_order"
            assert json.loads(done.stdout)["usage"] == {"prompt_tokens": 11, "completion_tokens": 3}
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    types = {line["repeat"]: line.get("type", "clean") for line in lines}
    assert types == {0: "clean", 1: "same_name_A", 2: "transient_timeout"}
    met = [one["kind"] for line in lines for one in line.get("replaced", ())]
    assert met == ["transient_timeout"]
    sizes = {line.get("type", "clean"): line for line in lines}
    assert all("skipped" not in line for line in sizes.values())


HISTORY: list[Any] = [
    {"role": "user", "content": "What is order 7?"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": 7}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"total": 9}'},
    {"role": "assistant", "content": "It cost 9."},
    {"role": "user", "content": "It came late: refund it."},
]  # fmt: skip


def test_a_model_that_is_down_is_a_failed_agent(agent: list[str]) -> None:
    asked = {"session": "s", "turn": 1, "seed": 0, "tools": [], "messages": HISTORY[:1]}
    done = subprocess.run(
        agent,
        input=json.dumps(asked),
        env=env("http://127.0.0.1:9/v1"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0 and done.stdout == ""
