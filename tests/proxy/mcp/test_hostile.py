"""The MCP door between a careless client and a hostile server."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.api.proxy import proxied
from robustbench_tc.errors import UserError
from robustbench_tc.proxy.journal import read_exchanges

from ..wire import send
from .conftest import DOOR, Remote

FAULTY = "version: 1\ntypes: [same_name_A]\nfaults:\n- {kind: silent_no_op, at: [1]}\n"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "a", "arguments": {}}}

ECHO = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    {before}
    if m.get("method") == "tools/list":
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {"tools": TOOLS}}), flush=True)
    elif "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {"echo": m}}), flush=True)
"""
TOOL = {
    "name": "a",
    "description": "A.",
    "inputSchema": {"type": "object", "properties": {"x": {"type": "integer"}}},
}


def server(before: str = "pass", tools: Any = (TOOL, {**TOOL, "name": "b"})) -> str:
    return ECHO.replace("{before}", before).replace("TOOLS", repr(list(tools)))


def started(folder: Path, script: str, plan: str = FAULTY) -> subprocess.Popen[bytes]:
    (folder / "plan.yaml").write_text(plan)
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            DOOR,
            "proxy",
            "--plan",
            "plan.yaml",
            "--session",
            "mcp.0",
            "--",
            sys.executable,
            "-c",
            script,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # shells ignore it in the background
    )


def say(process: subprocess.Popen[bytes], *messages: Any) -> None:
    """Writes them as lines; bytes as they are."""
    assert process.stdin is not None
    for one in messages:
        process.stdin.write(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n")
    process.stdin.flush()


def talked(folder: Path, script: str, *messages: Any, plan: str = FAULTY) -> tuple[int, list[bytes], str]:
    """Exit code, lines of the door's output, and its error output. The client stays until all is answered."""
    process = started(folder, script, plan)
    assert process.stdout is not None
    say(process, *messages)
    waiting = {json.dumps(one["id"]) for one in messages if isinstance(one, dict) and "method" in one}
    lines = []
    while waiting and (line := process.stdout.readline()):
        lines.append(line.rstrip(b"\n"))
        if line.startswith(b"{"):
            waiting.discard(json.dumps(json.loads(line).get("id")))
    out, err = process.communicate(timeout=120)
    return process.returncode, [*lines, *out.splitlines()], err.decode()


def test_messages_that_are_none_and_unknown_methods_pass(tmp_path: Path) -> None:
    other = {"jsonrpc": "2.0", "id": "x", "method": "future/thing", "params": {"deep": [1, {"é": None}]}}
    script = server('print("garbage, not JSON") if m.get("id") == "x" else None')
    code, lines, err = talked(tmp_path, script, other, LIST, CALL)
    assert code == 0 and err == ""
    assert lines[0] == b"garbage, not JSON"
    assert json.loads(lines[1])["result"]["echo"] == other
    answers = {json.loads(line)["id"]: json.loads(line) for line in lines[1:]}
    assert len(answers[1]["result"]["tools"]) == 3
    assert answers[2]["result"]["content"][0]["text"] == '{"status": "ok"}'


def test_a_server_that_dies_in_a_call_is_an_error_of_the_call(tmp_path: Path) -> None:
    script = server('sys.exit(3) if m.get("method") == "tools/call" else None')
    process = started(tmp_path, script, "version: 1\ntypes: [same_name_A]\n")
    assert process.stdout is not None and process.stderr is not None
    say(process, LIST, CALL)
    lines = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert lines[1]["error"]["message"] == "the MCP server has ended"
    assert process.wait(60) == 1
    assert process.stderr.read().decode() == "rbtc: the MCP server ended with status 3\n"


@pytest.mark.parametrize("who", ["server", "client"])
def test_a_message_above_the_limit_fails_its_call_and_no_other(tmp_path: Path, who: str) -> None:
    long, after = {**CALL, "params": {"name": "a", "arguments": {"x": 1}}}, {**CALL, "id": 3}
    if who == "client":
        long["params"] = {"name": "a", "arguments": {"x": "x" * 40_000_000}}
    script = server('m["x"] = "x" * (40_000_000 if m.get("id") == 2 else 1)')
    plan = "version: 1\nfaults:\n- {kind: silent_no_op, at: [9]}\n"
    code, lines, err = talked(tmp_path, script, LIST, long, after, plan=plan)
    answers = {json.loads(line)["id"]: json.loads(line) for line in lines}
    assert (code, err, sorted(answers)) == (0, "", [1, 2, 3])
    assert answers[2]["error"]["message"] == "a message of more than 33,554,432 bytes"
    assert answers[3]["result"]["echo"]["x"] == "x"


@pytest.mark.parametrize(
    "tools",
    [
        [{"name": "a"}],
        [{"name": 3, "inputSchema": {"type": "object"}}, {"name": ["a"]}],
        ["a", None],
        [{**TOOL, "inputSchema": {"properties": {}}}],
        [{**TOOL, "inputSchema": {"type": "object", "properties": {"x": 7}}}],
        [],
    ],
)
def test_lists_that_cannot_be_read_are_shown_as_they_are(tmp_path: Path, tools: Any) -> None:
    code, lines, err = talked(tmp_path, server(tools=tools), LIST)
    assert (code, err) == (0, "")
    assert json.loads(lines[0])["result"]["tools"] == tools
    (line,) = read_exchanges(tmp_path / "journal.jsonl")  # a line that is read again, whatever the names are
    assert line.lists is not None and set(line.lists) <= {"a"}


def test_calls_that_are_none_get_the_servers_answer(tmp_path: Path) -> None:
    given: list[Any] = [None, [], {"name": 3}]
    wrong = [{**CALL, "id": 10 + at, "params": one} for at, one in enumerate(given)]
    wrong.append({**CALL, "id": 20, "params": {"name": "a", "arguments": [1]}})
    code, lines, err = talked(tmp_path, server(), *wrong)
    assert (code, err) == (0, "")
    assert all("echo" in json.loads(line)["result"] for line in lines) and len(lines) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name one server: a model's with --upstream, or an MCP server's"),
        (("--mcp-url", "http://127.0.0.1:9/mcp", "--", "x"), "name one server"),
        (("--", "no-such-command-here"), "there is no program 'no-such-command-here' here or on PATH"),
        (("--session", "x", "--", "true"), "--session: the session 'x' is not written <case>.<repeat>"),
        (("--mcp-url", "ftp://x"), "http"),
    ],
)
def test_mistakes_are_one_line(rbtc: Any, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "plan.yaml").write_text(FAULTY)
    journal = ("--journal", tmp_path / "j.jsonl")
    done = rbtc("proxy", "--plan", tmp_path / "plan.yaml", *journal, *words)
    assert done.code == 1 and said in done.err and done.err.count("\n") == 1, done.err


@pytest.mark.parametrize(
    ("types", "said"),
    [
        ("types: [CD]", "a type of offers states a preference in the request"),
        ("types: [transient_timeout]\ntypes_after: 2", "a type that answers a session's first calls"),
    ],
)
def test_types_that_this_door_cannot_carry_out_are_refused(tmp_path: Path, types: str, said: str) -> None:
    (tmp_path / "plan.yaml").write_text(f"version: 1\n{types}\n")
    with (
        pytest.raises(UserError, match=said),
        proxied(tmp_path / "plan.yaml", mcp_url="http://127.0.0.1:9/mcp"),
    ):
        pass


def test_over_http_wrong_addresses_and_web_pages_are_refused(tmp_path: Path, remote: Remote) -> None:
    (tmp_path / "plan.yaml").write_text(FAULTY)
    with proxied(tmp_path / "plan.yaml", mcp_url=remote.address) as address:
        base = address.removesuffix("/mcp")
        for path, headers, status, said in (
            ("/", {}, 404, "/s/<case>.<repeat>/mcp"),
            ("/mcp", {}, 406, "Not Acceptable"),  # a client without a name, and what the server says to it
            ("/s/x/mcp", {}, 400, "not written <case>.<repeat>"),
            ("/s/a.0/mcp", {"Origin": "https://evil.example"}, 403, "web pages are refused"),
            ("/s/a.0/mcp", {"Host": "evil.example"}, 403, "127.0.0.1 and localhost only"),
        ):
            refused = send(base + path, json.dumps(LIST).encode(), headers)
            assert (refused.status, said in refused.body.decode()) == (status, True)


def test_a_server_that_is_down_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(FAULTY)
    with proxied(tmp_path / "plan.yaml", mcp_url="http://127.0.0.1:9/mcp") as address:
        refused = send(address.replace("/mcp", "/s/a.0/mcp"), json.dumps(LIST).encode())
    assert refused.status == 502
    assert "cannot be reached: is the server running?" in refused.body.decode()


def journal(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    return [line for line in lines if line.get("lists") is None]


@pytest.mark.parametrize("asked", [(LIST,), ()])
def test_calls_made_at_once_are_one_reply_even_where_the_door_answers(tmp_path: Path, asked: Any) -> None:
    calls = [{**CALL, "id": one} for one in (0, -1, "2", 2)]
    code, lines, err = talked(
        tmp_path, server(), *asked, *calls, plan="version: 1\ntypes: [transient_timeout]\n"
    )
    assert (code, err, len(lines)) == (0, "", len(asked) + 4)
    assert [one.get("turn", 0) for one in journal(tmp_path)] == [0] * 4
    if asked:
        assert [one["executed"] for one in journal(tmp_path)] == [0] * 4


def test_a_call_that_is_cancelled_has_its_line(tmp_path: Path) -> None:
    silent = server('if m.get("id") == 2: continue')
    process = started(tmp_path, silent, FAULTY.replace("[1]", "[9]"))
    assert process.stdout is not None
    for message in (LIST, CALL, {"jsonrpc": "2.0", "id": 3, "method": "other"}):
        say(process, message)
        if message is not CALL:
            process.stdout.readline()
    ended = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
    process.communicate(json.dumps(ended).encode() + b"\n", timeout=120)
    (line,) = journal(tmp_path)
    assert (line["executed"], line["error"], line["status"]) == (1, "cancelled by the client", 500)


def test_the_doors_own_questions_have_ids_of_their_own_and_no_answer_of_them_gets_out(tmp_path: Path) -> None:
    late = 'if m.get("method") == "tools/list": kept = m; continue\n'
    late += '    if m.get("id") == "end": m["id"] = kept["id"]'
    ended = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
    last = {"jsonrpc": "2.0", "id": "end", "method": "other"}
    process = started(tmp_path, server(late), FAULTY)
    assert process.stdout is not None
    say(process, CALL, {"jsonrpc": "2.0", "id": "rbtc-1", "method": "other"})
    assert json.loads(process.stdout.readline())["id"] == "rbtc-1"
    out, err = process.communicate(b"".join(json.dumps(one).encode() + b"\n" for one in (ended, last)), 120)
    assert (out, err) == (b"", b"")


@pytest.mark.parametrize("x", ["é\ud800", float("inf")])
def test_arguments_that_are_no_good_json_reach_the_server(tmp_path: Path, x: Any) -> None:
    call = {**CALL, "params": {"name": "a", "arguments": {"x": x}}}
    code, lines, err = talked(tmp_path, server(), call, plan=FAULTY.replace("[1]", "[9]"))
    assert (code, err) == (0, "")
    assert json.loads(lines[0])["result"]["echo"]["params"] == call["params"]


def test_a_file_as_standard_input_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(FAULTY)
    words = [sys.executable, "-c", DOOR, "proxy", "--plan", "plan.yaml", "--", "true"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for name in (tmp_path / "plan.yaml", Path(os.devnull)):
        with name.open() as file:
            done = subprocess.run(
                words, cwd=tmp_path, env=env, stdin=file, capture_output=True, text=True, timeout=120
            )
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert "standard input or output is a file" in done.stderr


@pytest.mark.parametrize("kind", ["timeout_after_effect", "injected_instruction, text: x", "silent_no_op"])
def test_a_question_back_is_no_result(tmp_path: Path, kind: str) -> None:
    at = "[2]" if kind == "silent_no_op" else "[1]"
    plan = f"version: 1\nallow_writes: true\nfaults:\n- {{kind: {kind}, at: {at}}}\n"
    process = started(tmp_path, server(), plan)
    assert process.stdout is not None
    answers = []
    for one in (LIST, CALL, {**CALL, "id": 3}):
        say(process, one)
        answers.append(json.loads(process.stdout.readline()))
    process.communicate(timeout=120)
    assert list(answers[1]["result"]) == ["echo"]
    assert list(answers[2]["result"]) == (["content", "isError"] if kind == "silent_no_op" else ["echo"])
