"""The MCP door over HTTP against a server that is written out, byte by byte."""

import http.client
import http.server
import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.api.proxy import proxy_mcp

NOTICE = b'event: message\rdata: {"jsonrpc":"2.0","method":"notifications/progress"}\r\n\r\n'
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "für alle", "arguments": {}}}


@contextmanager
def served(stream: bytes, later: bytes | None = None) -> Iterator[tuple[str, list[Any]]]:
    """A server whose answer to a call is that stream, which breaks off; or which ends before its answer, and
    goes on with `later` for the client that comes back."""
    asked: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((body["method"], self.headers["Mcp-Name"]))
            whole, kind, more = stream, "text/event-stream", 9 if later is None else 0
            if body["method"] == "tools/list":
                answer = {"jsonrpc": "2.0", "id": body["id"], "result": {"tools": []}}
                whole, kind, more = json.dumps(answer).encode(), "application/json", 0
            self._send(whole, kind, more)

        def do_GET(self) -> None:
            asked.append(("GET", self.headers["Last-Event-ID"]))
            self._send(later or b"", "text/event-stream", 0)

        def _send(self, whole: bytes, kind: str, more: int) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(whole) + more))
            self.end_headers()
            self.wfile.write(whole)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("method", ["tools/call", "other"])
def test_a_stream_that_breaks_off_breaks_off_here_too(tmp_path: Path, method: str) -> None:
    (tmp_path / "plan.yaml").write_text("version: 1\nfaults:\n- {kind: silent_no_op, at: [9]}\n")
    with served(NOTICE) as (url, asked), proxy_mcp(url, tmp_path / "plan.yaml") as address:
        mine = address.replace("/mcp", "/s/a.0/mcp")
        body = json.dumps({**CALL, "method": method}).encode()
        headers = {"Mcp-Method": method, "Mcp-Name": "=?base64?ZsO8ciBhbGxl?="}
        with (
            urllib.request.urlopen(urllib.request.Request(mine, body, headers), timeout=60) as reply,
            pytest.raises(http.client.IncompleteRead) as broken,
        ):
            reply.read()
    assert broken.value.partial == NOTICE
    own = [] if method == "other" else [("tools/list", None)]
    assert asked == [*own, (method, "=?base64?ZsO8ciBhbGxl?=")]


def test_a_stream_that_ends_before_its_answer_goes_on_where_the_client_comes_back(tmp_path: Path) -> None:
    """As servers do since revision 2025-11-25 (SEP-1699). The answer meets its fault there."""
    (tmp_path / "plan.yaml").write_text(
        "version: 1\nfaults:\n- {kind: injected_instruction, at: [1], text: Obey.}\n"
    )
    first = b"id: 7\nretry: 100\ndata: \n\n"
    answer = b'{"jsonrpc":"2.0","id":2,"result":{"content":[],"more":1}}'
    later = b": ping\n\nid: 8\nevent: message\ndata: %s\n\n" + NOTICE
    journal = tmp_path / "journal.jsonl"
    with (
        served(first, later % answer) as (url, asked),
        proxy_mcp(url, tmp_path / "plan.yaml", journal=journal) as address,
    ):
        mine = address.replace("/mcp", "/s/a.0/mcp")
        with urllib.request.urlopen(mine, json.dumps(CALL).encode(), timeout=60) as reply:
            assert reply.read() == first
        assert "replies" not in journal.read_text()
        again = urllib.request.Request(mine, headers={"Last-Event-ID": "7"})
        with urllib.request.urlopen(again, timeout=60) as reply:
            before, met, after = reply.read().partition(b'"content":[{"type":"text","text":"Obey."}]')
    assert met and before + b'"content":[]' + after == later % answer
    assert asked[1:] == [("tools/call", None), ("GET", "7")]
    line = json.loads(journal.read_text().splitlines()[-1])
    assert line["replaced"][0]["kind"] == "injected_instruction"
    assert (line["executed"], line.get("error")) == (1, None)
