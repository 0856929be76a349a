"""One door for an agent: its model and every server of its client, in one process, as a user starts it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.proxy.journal import Exchange, read_exchanges
from robustbench_tc.proxy.summary import summary

from ..scripted import chat_reply
from ..wire import Answer, Seen, send, serving as server_of
from .conftest import DOOR
from .test_life_cycle import STUBBORN, alive, as_clients_do, pids
from .test_secrets import CANARY, everything_under

SERVER = """
import json, os, sys, time
name = sys.argv[1]
for line in sys.stdin:
    m = json.loads(line)
    result = {}
    if m.get("method") == "tools/list":
        schema = {"type": "object", "properties": {"city": {"type": "string"}}}
        result = {"tools": [{"name": name, "description": "Looks up.", "inputSchema": schema}]}
    if m.get("method") == "tools/call":
        time.sleep(0.3)
        said = f"{name} {os.environ.get('ZONE')} {os.getcwd()}"
        result = {"content": [{"type": "text", "text": said}], "isError": False}
    if "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
"""
SECOND = "version: 1\\nfaults:\\n- {kind: transient_rate_limit, at: [2], text: Too fast.}\\n".replace(
    "\\n", "\n"
)
ONE = {"roads": {"url": "http://127.0.0.1:9/mcp"}}
FIRST_BATCH = "version: 1\ntypes: [transient_timeout]\n"


def over_http(seen: Seen) -> Answer:
    """A server of one tool, over HTTP, that quotes what it was asked with in an error."""
    message = json.loads(seen.body)
    result: dict[str, Any] = {}
    if message["method"] == "tools/list":
        result = {"tools": [{"name": "roads", "inputSchema": {"type": "object", "properties": {}}}]}
    if message["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": f"roads {seen.path}"}], "isError": False}
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message.get("id"), "result": result}
    if message["method"] == "fails":
        answer = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": 1, "message": str(seen)}}
    return Answer([json.dumps(answer).encode()])


class Agent:
    """An agent's client: it starts or reaches each server of a file."""

    def __init__(self, file: Path) -> None:
        self.entries: dict[str, Any] = json.loads(file.read_text())["mcpServers"]
        self.started: dict[str, subprocess.Popen[bytes]] = {}
        self._number = 0
        for name, entry in self.entries.items():
            if "command" in entry:
                self.started[name] = subprocess.Popen(
                    [entry["command"], *entry["args"]],
                    env=entry["env"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            for method in ("initialize", "notifications/initialized", "tools/list"):
                self.ask(name, method)
                if "command" in entry and method != "notifications/initialized":
                    self.read(name)

    def ask(self, server: str, method: str, /, **params: Any) -> Any:
        """The answer of a server over HTTP; over a pipe it is read later."""
        self._number += 1
        message: Any = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        if method.startswith("notifications/"):
            del message["id"]
        data = json.dumps(message).encode()
        if server not in self.started:
            entry = self.entries[server]
            return json.loads(send(entry["url"], data, entry["headers"]).body)
        pipe = self.started[server].stdin
        assert pipe is not None
        pipe.write(data + b"\n")
        pipe.flush()
        return None

    def read(self, name: str) -> Any:
        pipe = self.started[name].stdout
        assert pipe is not None
        return json.loads(pipe.readline())

    def call(self, *names: str) -> list[str]:
        """Calls the tools of these servers, all before the first is answered, and what they answer."""
        given = [self.ask(name, "tools/call", name=name, arguments={"city": "Oslo"}) for name in names]
        answers = [one or self.read(name) for one, name in zip(given, names, strict=True)]
        return [one["result"]["content"][0]["text"] for one in answers]

    def close(self) -> None:
        for process in self.started.values():
            assert process.communicate(timeout=60)[1] == b""
            assert process.returncode == 0


@contextmanager
def door(folder: Path, servers: Any, plan: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`rbtc proxy` over a file of these servers, until the block ends."""
    (folder / "plan.yaml").write_text(plan)
    (folder / "servers.json").write_text(json.dumps({"mcpServers": servers, "theme": "dark"}))
    (folder / "out.json").unlink(missing_ok=True)
    given = ["--plan", "plan.yaml", "--mcp-servers", "servers.json", "--write", "out.json", *words]
    process = subprocess.Popen(
        [sys.executable, "-c", DOOR, "proxy", *given],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        until = time.monotonic() + 120
        while not (folder / "out.json").exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        (folder / "stderr").write_text(err)


def stdio(name: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-c", SERVER, name], **more}


def calls(folder: Path) -> list[Exchange]:
    return [one for one in read_exchanges(folder / "journal.jsonl") if one.door == "mcp" and one.replies]


def test_calls_are_counted_over_all_servers_and_each_run_is_a_session(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    with server_of(over_http) as roads:
        servers = {
            "weather": stdio("weather", env={"ZONE": "north"}, cwd=str(folder), disabled=False),
            "traffic": stdio("traffic"),
            "roads": {"type": "http", "url": f"{roads.url}?key={CANARY}-query"},
        }
        with door(tmp_path, servers, SECOND):
            wrapped = json.loads((tmp_path / "out.json").read_text())
            assert (wrapped["theme"], list(wrapped["mcpServers"])) == ("dark", list(servers))
            assert wrapped["mcpServers"]["weather"]["disabled"] is False
            for _ in range(2):  # the same addresses meet the same in every run
                agent = Agent(tmp_path / "out.json")
                assert agent.call("weather") == [f"weather north {folder}"]
                assert agent.call("traffic") == ["Too fast."]  # the second call, whosever it is
                (found,) = agent.call("roads")
                assert found == f"roads /v1?key={CANARY}-query"  # with the query of the file
                agent.ask("roads", "fails")
                agent.close()
            assert agent.ask("roads", "tools/call", name=3)["result"]
    lines = calls(tmp_path)
    assert [(one.session, one.by, one.number) for one in lines] == [
        (f"client.{run}", by, number)
        for run in (0, 1)
        for number, by in enumerate(("weather", "traffic", "roads"), 1)
    ]
    assert [len(one.replaced) for one in lines] == [0, 1, 0] * 2
    said = (tmp_path / "stderr").read_text()
    assert re.findall(r"session (\S+) begins", said) == ["client.0", "client.1"] and "Traceback" not in said
    (tmp_path / "servers.json").unlink()
    assert CANARY not in everything_under(tmp_path)


def test_calls_of_two_servers_at_once_are_one_batch_and_those_after_it_another(tmp_path: Path) -> None:
    """A first call that fails is answered once: with a door for each server the second server's first call
    failed too, although the agent had read an answer before it."""
    servers = {name: stdio(name) for name in ("weather", "traffic")}
    with door(tmp_path, servers, FIRST_BATCH):
        agent = Agent(tmp_path / "out.json")
        error, _ = agent.call("weather", "traffic")
        assert "timed out" in error
        assert [one.split()[0] for one in agent.call("weather", "traffic")] == ["weather", "traffic"]
        agent.close()
        agent = Agent(tmp_path / "out.json")
        assert "timed out" in agent.call("weather")[0]
        assert agent.call("traffic")[0].startswith("traffic")
        agent.close()
    assert [[fault.kind for fault in one.replaced] for one in calls(tmp_path)] == [
        ["transient_timeout"], ["transient_timeout"], [], [], ["transient_timeout"], [],
    ]  # fmt: skip


def test_the_model_and_the_servers_are_one_session(tmp_path: Path) -> None:
    """Faults of calls are met at the tools, before their effect, and what the model is shown at its own."""
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object",
              "properties": {"city": {"type": "string"}}}}}]  # fmt: skip
    talk: list[Any] = [{"role": "user", "content": "Weather in Oslo?"}]
    plan = "version: 1\ntypes: [same_name_A]\nfaults:\n- {kind: silent_no_op, at: [1]}\n"

    def model(seen: Seen) -> Answer:
        body = json.loads(seen.body)
        asks = body["messages"][-1]["role"] == "user"
        return Answer([json.dumps(chat_reply([("weather", "{}")] if asks else [], "Fine.")).encode()])

    with (
        server_of(model) as upstream,
        door(tmp_path, {"weather": stdio("weather")}, plan, "--upstream", upstream.url) as process,
    ):
        assert process.stderr is not None
        line = next(one for one in process.stderr if "without a session" in one)
        for _ in range(2):
            agent = Agent(tmp_path / "out.json")
            asked = list(talk)
            for _ in range(2):
                body = json.dumps({"model": "m", "messages": asked, "tools": tools}).encode()
                reply = json.loads(send(f"{line.split()[-1]}/chat/completions", body).body)
                message = reply["choices"][0]["message"]
                asked.append(message)
                for call in message.get("tool_calls") or ():
                    (text,) = agent.call("weather")
                    asked.append({"role": "tool", "tool_call_id": call["id"], "content": text})
            agent.close()
    assert [len(json.loads(one.body)["tools"]) for one in upstream.seen] == [2] * 4
    lines = read_exchanges(tmp_path / "journal.jsonl")
    assert {(one.session, one.door) for one in lines if one.replies} == {
        (f"client.{run}", kind) for run in (0, 1) for kind in ("llm", "mcp")
    }
    assert [(one.executed, one.replaced[0].kind) for one in calls(tmp_path)] == [(0, "silent_no_op")] * 2
    found = summary(lines)
    assert (found.sessions, found.exchanges, found.calls) == (2, 4, 2)  # no call counts twice
    assert found.types == {"same_name_A": 2} and found.faults["silent_no_op"]["met"] == 2


@pytest.mark.parametrize("end", ["the client", "the client's door", "the door"])
def test_a_server_ends_with_its_client(tmp_path: Path, end: str) -> None:
    servers = {"stubborn": {"command": sys.executable, "args": ["-c", STUBBORN], "cwd": str(tmp_path)}}
    with door(tmp_path, servers, SECOND) as process:
        entry = json.loads((tmp_path / "out.json").read_text())["mcpServers"]["stubborn"]
        client = subprocess.Popen([entry["command"], *entry["args"]], stdin=subprocess.PIPE, stderr=-3)
        found = pids(tmp_path)
        begun = time.monotonic()
        if end == "the client":
            as_clients_do(client)
        else:
            (client if end == "the client's door" else process).send_signal(signal.SIGKILL)
        while any(map(alive, found)) and time.monotonic() < begun + 30:
            time.sleep(0.02)
        took = time.monotonic() - begun
        for pid in filter(alive, found):
            os.kill(pid, signal.SIGKILL)
        client.kill()
        client.wait()
    assert took < 2.0


def test_others_come_in_with_a_token_alone(tmp_path: Path) -> None:
    plain = {"Host": "door.example:80"}  # a container knows the machine by another name
    listen = ("--listen", "0.0.0.0", "--token", f"{CANARY}-token")
    with server_of(over_http) as roads:
        servers = {"roads": {"url": roads.url, "headers": {"X-Tenant": "north"}}, "weather": stdio("weather")}
        with door(tmp_path, servers, SECOND, *listen):
            agent = Agent(tmp_path / "out.json")
            assert agent.call("weather")[0].startswith("weather")
            agent.close()
            entry = agent.entries["roads"]
            assert entry["headers"]["X-Tenant"] == "north"
            asked = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/list"}'
            path = re.sub("(http://[^/]*)", rf"\1/t/{CANARY}-token", entry["url"])
            assert send(path, asked, plain).status == 200
            assert send(entry["url"], asked, {**plain, **entry["headers"]}).status == 200
            assert not any("X-Rbtc-Token" in str(one.headers).title() for one in roads.seen)
            refused = send(entry["url"], asked, plain)
            assert refused.status == 401 and json.loads(refused.body)["error"]["code"] == -32600
            assert send(path.replace("token", "other"), asked, plain).status == 401
    (tmp_path / "out.json").unlink()
    assert CANARY not in everything_under(tmp_path)


@pytest.mark.parametrize(
    ("file", "words", "said"),
    [
        ({"a": {"command": "no-such-program"}}, (), "server 'a': there is no program 'no-such-program'"),
        ({"a": {}}, (), "server 'a' needs either a `command` or a `url`"),
        (
            {"a": {"url": "http://127.0.0.1:9", "type": "sse"}},
            (),
            "server 'a': `sse` is a transport of before",
        ),
        ({"a": {"command": 3}}, (), "servers.json: no file with `mcpServers`: Expected `str | null`"),
        ([], (), "servers.json: no file with `mcpServers`"),
        ({}, (), "servers.json: no file with `mcpServers`: it names none"),
        (
            ONE,
            ("--listen", "0.0.0.0"),
            "--listen 0.0.0.0: other machines can connect there: set a secret with --token",
        ),
        (ONE, ("--session", "x"), "--session: the session 'x' is not written"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, rbtc: Any, file: Any, words: Any, said: str) -> None:
    for name, text in (("plan.yaml", SECOND), ("servers.json", json.dumps({"mcpServers": file}))):
        (tmp_path / name).write_text(text)
    names = ("plan", "mcp-servers", "write", "journal")
    given = [
        (f"--{one}", tmp_path / place)
        for one, place in zip(names, ("plan.yaml", "servers.json", "out.json", "j"), strict=True)
    ]
    done = rbtc("proxy", *(word for pair in given for word in pair), *words)
    assert said in done.refusal and done.refusal.count("\n") == 1
    assert not (tmp_path / "out.json").exists()


def test_a_client_without_its_door_is_told_so(tmp_path: Path) -> None:
    from robustbench_tc.proxy.mcp import pipe

    words = [sys.executable, "-I", pipe.__file__, "http://127.0.0.1:9/mcp/a"]
    done = subprocess.run(words, input=b"{}\n", capture_output=True, timeout=60)
    assert (
        done.returncode == 1
        and b"start `rbtc proxy` first" in done.stderr
        and b"Traceback" not in done.stderr
    )
