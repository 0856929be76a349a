"""No key in a journal or on the standard error: a canary in every header, URL and error of every door."""

import http.server
import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api
from robustbench_tc.api.proxy import proxy_mcp

from .conftest import DOOR

CANARY = "canary-5f0e7a2b9c"
NAMES = (
    "X-Tenant Cookie X-Api-Key api-key User-Agent Referer X-Trace Proxy-Authorization Mcp-Session-Id "
    "traceparent Accept-Language X-Goog-Api-Key"
)
HEADERS = {name: f"{CANARY}-{number}" for number, name in enumerate(NAMES.split())}
HEADERS["Authorization"] = f"Bearer {CANARY}-bearer"
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "a", "arguments": {}}}
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hello."}], "tools": []}


@contextmanager
def quoting(status: int) -> Iterator[str]:
    """A server that quotes all that it was sent in an error, of HTTP or of JSON-RPC."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = {"code": -32000, "message": f"{self.path} {self.headers.items()}"}
            answer = json.dumps({"jsonrpc": "2.0", "id": body.get("id"), "error": said}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def everything_under(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("status", [200, 400, 401, 500])
@pytest.mark.parametrize("door", ["mcp", "llm"])
def test_what_a_server_quotes_of_a_request_stays_off_the_disk(
    tmp_path: Path, door: str, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.yaml").write_text("version: 1\nfaults:\n- {kind: transient_timeout, at: [9]}\n")
    kept = tmp_path / "journal.jsonl"
    with quoting(status) as url:
        if door == "mcp":
            served, path, body = proxy_mcp(f"{url}/mcp", tmp_path / "plan.yaml", journal=kept), "", CALL
        else:
            served = api.proxy_llm(f"{url}/v1", tmp_path / "plan.yaml", journal=kept, say=print)
            path, body = "/chat/completions", CHAT
        with served as address:
            mine = address.replace("/mcp", "/s/a.0/mcp").replace("/v1", "/s/a.0/v1")
            query = f"?key={CANARY}-query&tenant={CANARY}-tenant"
            request = urllib.request.Request(mine + path + query, json.dumps(body).encode(), HEADERS)
            try:
                with urllib.request.urlopen(request, timeout=60) as reply:
                    said = reply.read().decode()
            except urllib.error.HTTPError as error:
                said = error.read().decode()
    assert CANARY in said  # the client hears it, as without a door
    assert '"error":' in kept.read_text() or (door, status) == ("llm", 200)
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
    words = ["proxy", "mcp", "--plan", "plan.yaml", "--"]
    done = subprocess.run(
        [sys.executable, "-c", DOOR, *words, sys.executable, "-c", script, *given],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ORDERS_API_TOKEN": f"{CANARY}-3"},
        input=json.dumps(CALL) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert CANARY in done.stdout and CANARY not in done.stderr + everything_under(tmp_path)
    assert "***" in (tmp_path / "journal.jsonl").read_text()
