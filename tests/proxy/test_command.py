"""`rbtc proxy llm` as it is typed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ..conftest import Done
from .wire import Answer, send
from .wire import serving as server_of


def test_the_command_serves_until_it_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("version: 1\ntypes: [same_name_A]\n")
    code = "from robustbench_tc.cli import main; main()"
    with server_of(lambda seen: Answer()) as server:
        words = ["proxy", "llm", "--upstream", server.url, "--plan", "plan.yaml", "--journal", "j.jsonl"]
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(
                signal.SIGINT, signal.SIG_DFL
            ),  # shells ignore it in the background
        )
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1].replace("CASE.REPEAT", "refund-1.0")
        tools = [{"type": "function", "function": {"name": "refund", "parameters": {
            "type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}}}]  # fmt: skip
        body = {"model": "m", "messages": [{"role": "user", "content": "Refund 7."}], "tools": tools}
        key = {"Authorization": "Bearer sk-1"}
        assert send(f"{url}/chat/completions", json.dumps(body).encode(), key).body == b"{}"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        _, err = process.communicate()
    assert err.strip() == "rbtc: interrupted: the door is closed; its journal is j.jsonl"
    sent = json.loads(server.seen[0].body)["tools"]
    assert [tool["function"]["name"] for tool in sent] == ["refund", "refund"]
    kept = (tmp_path / "j.jsonl").read_text()
    assert json.loads(kept)["session"] == "refund-1.0" and "sk-1" not in kept


def test_mistakes_are_one_line(rbtc: Callable[..., Done], tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("version: 1\nfault: []\n")
    door = ("proxy", "llm", "--upstream", "http://127.0.0.1:9/v1", "--plan", plan)
    assert rbtc(*door).refusal == (f"rbtc: {plan}:2: unknown key 'fault' of the plan: did you mean faults?\n")
    plan.write_text("version: 1\nbench: nowhere\ntypes: [CD]\n")
    assert "nowhere" in rbtc(*door).refusal
    plan.write_text("version: 1\n")
    done = rbtc(*door[:3], "http://me:pw@x/v1", *door[4:])
    assert done.code == 1 and "pw" not in done.err and done.err.count("\n") == 1
    assert "choose another --journal" in rbtc(*door, "--journal", tmp_path).refusal
