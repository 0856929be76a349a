"""No key in a journal or on the standard error: a canary in every header, URL and error of every door."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.api.proxy import proxied

from ..wire import Answer, Handler, Seen, send, serving
from .conftest import DOOR, first_answer

CANARY = "canary-5f0e7a2b9c"
NAMES = (
    "X-Tenant Cookie X-Api-Key api-key User-Agent Referer X-Trace Proxy-Authorization Mcp-Session-Id "
    "traceparent Accept-Language X-Goog-Api-Key"
)
HEADERS = {name: f"{CANARY}-{number}" for number, name in enumerate(NAMES.split())}
HEADERS["Authorization"] = f"Bearer {CANARY}-bearer"
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "a", "arguments": {}}}
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hello."}], "tools": []}


def quoting(status: int) -> Handler:
    """A server that quotes all that it was sent in an error, of HTTP or of JSON-RPC."""

    def handler(seen: Seen) -> Answer:
        said = {"code": -32000, "message": f"{seen.path} {seen.headers}"}
        answer = {"jsonrpc": "2.0", "id": json.loads(seen.body).get("id"), "error": said}
        return Answer([json.dumps(answer).encode()], status)

    return handler


def everything_under(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("status", [200, 400, 401, 500])
@pytest.mark.parametrize("door", ["mcp", "llm"])
def test_what_a_server_quotes_of_a_request_stays_off_the_disk(
    tmp_path: Path, door: str, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.yaml").write_text("version: 1\nfaults:\n- {kind: transient_timeout, at: [9]}\n")
    kept = tmp_path / "journal.jsonl"
    with serving(quoting(status)) as server:
        if door == "mcp":
            served, path, body = proxied(tmp_path / "plan.yaml", mcp_url=server.url, journal=kept), "", CALL
        else:
            served = api.proxied(tmp_path / "plan.yaml", upstream=server.url, journal=kept, say=print)
            path, body = "/chat/completions", CHAT
        with served as address:
            mine = address.replace("/mcp", "/s/a.0/mcp").replace("/v1", "/s/a.0/v1")
            query = f"?key={CANARY}-query&tenant={CANARY}-tenant"
            said = send(mine + path + query, json.dumps(body).encode(), HEADERS).body.decode()
    assert CANARY in said  # the client hears it, as without a door
    assert ('"error":' in (text := kept.read_text()) and "***" in text) or (door, status) == ("llm", 200)
    out, err = capfd.readouterr()
    assert CANARY not in everything_under(tmp_path) + out + err


def test_what_a_command_is_given_stays_off_the_disk(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text("version: 1\nfaults:\n- {kind: transient_timeout, at: [9]}\n")
    script = (
        "import json, os, sys\n"
        "for line in sys.stdin:\n"
        "    said = {'code': 1, 'message': f'{sys.argv} {dict(os.environ)}'}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': json.loads(line)['id'], 'error': said}), flush=True)\n"
    )
    given = ["--api-key", f"{CANARY}-1", f"--token={CANARY}-2"]
    words = ["proxy", "--plan", "plan.yaml", "--"]
    with (tmp_path / "stderr").open("w+") as err:
        heard = first_answer(
            [sys.executable, "-c", DOOR, *words, sys.executable, "-c", script, *given],
            CALL,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ORDERS_API_TOKEN": f"{CANARY}-3"},
            stderr=err,
        )
    assert CANARY in heard and CANARY not in everything_under(tmp_path)  # of the door's own words too
    assert "***" in (tmp_path / "journal.jsonl").read_text()
