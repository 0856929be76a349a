"""The MCP door over HTTP against a server that is written out, byte by byte."""

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.api.proxy import proxied

from ..wire import Answer, Handler, Seen, Server, send, serving

STREAM = {"Content-Type": "text/event-stream"}
NOTICE = b'event: message\rdata: {"jsonrpc":"2.0","method":"notifications/progress"}\r\n\r\n'
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "für alle", "arguments": {}}}


def saying(call: Answer, later: bytes = b"") -> Handler:
    """A server with that answer to a call, and `later` for the client that comes back."""

    def handler(seen: Seen) -> Answer:
        if seen.method == "GET":
            return Answer([later], headers=STREAM)
        body = json.loads(seen.body)
        if body["method"] != "tools/list":
            return call
        listed = {"jsonrpc": "2.0", "id": body["id"], "result": {"tools": []}}
        return Answer([json.dumps(listed).encode()])

    return handler


def asked(server: Server) -> list[tuple[Any, str | None]]:
    """What the server was asked: the method, and the name beside it or the last event's id."""
    return [
        (json.loads(seen.body)["method"], seen.headers.get("Mcp-Name"))
        if seen.body
        else (seen.method, seen.headers.get("Last-Event-ID"))
        for seen in server.seen
    ]


@pytest.mark.parametrize("method", ["tools/call", "other"])
def test_a_stream_that_breaks_off_breaks_off_here_too(tmp_path: Path, method: str) -> None:
    (tmp_path / "plan.yaml").write_text("version: 1\nfaults:\n- {kind: silent_no_op, at: [9]}\n")
    cut = Answer([NOTICE], headers=STREAM, pause_s=0.2, break_off=True)
    with serving(saying(cut)) as server, proxied(tmp_path / "plan.yaml", mcp_url=server.url) as address:
        mine = address.replace("/mcp", "/s/a.0/mcp")
        headers = {"Mcp-Method": method, "Mcp-Name": "=?base64?ZsO8ciBhbGxl?="}
        with pytest.raises(http.client.IncompleteRead) as broken:
            send(mine, json.dumps({**CALL, "method": method}).encode(), headers)
    assert broken.value.partial == NOTICE
    own = [] if method == "other" else [("tools/list", None)]
    assert asked(server) == [*own, (method, "=?base64?ZsO8ciBhbGxl?=")]


def test_a_stream_that_ends_before_its_answer_goes_on_where_the_client_comes_back(tmp_path: Path) -> None:
    """As servers do since revision 2025-11-25 (SEP-1699). The answer meets its fault there."""
    (tmp_path / "plan.yaml").write_text(
        "version: 1\nfaults:\n- {kind: injected_instruction, at: [1], text: Obey.}\n"
    )
    first = b"id: 7\nretry: 100\ndata: \n\n"
    answer = b'{"jsonrpc":"2.0","id":2,"result":{"content":[],"more":1}}'
    later = b": ping\n\nid: 8\nevent: message\ndata: %s\n\n" % answer + NOTICE
    journal = tmp_path / "journal.jsonl"
    with (
        serving(saying(Answer([first], headers=STREAM), later)) as server,
        proxied(tmp_path / "plan.yaml", mcp_url=server.url, journal=journal) as address,
    ):
        mine = address.replace("/mcp", "/s/a.0/mcp")
        assert send(mine, json.dumps(CALL).encode()).body == first
        assert "replies" not in journal.read_text()
        again = send(mine, headers={"Last-Event-ID": "7"}, method="GET")
    before, met, after = again.body.partition(b'"content":[{"type":"text","text":"Obey."}]')
    assert met and before + b'"content":[]' + after == later
    assert asked(server)[1:] == [("tools/call", None), ("GET", "7")]
    line = json.loads(journal.read_text().splitlines()[-1])
    assert line["replaced"][0]["kind"] == "injected_instruction"
    assert (line["executed"], line.get("error")) == (1, None)


@pytest.mark.parametrize("faults", ["", "faults:\n- {kind: silent_no_op, at: [9]}\n"], ids=["idle", "faults"])
def test_a_client_that_leaves_is_no_traceback(
    tmp_path: Path, faults: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "plan.yaml").write_text("version: 1\n" + faults)
    endless = Answer([NOTICE * 1000] * 3000, headers=STREAM)
    with serving(saying(endless)) as server, proxied(tmp_path / "plan.yaml", mcp_url=server.url) as address:
        parts = address.removeprefix("http://").partition("/")
        client = http.client.HTTPConnection(parts[0], timeout=60)
        client.request("POST", "/s/a.0/mcp", json.dumps(CALL).encode())
        assert client.getresponse().readline()
        client.close()
        assert server.gone.wait(60)
    assert caplog.text == ""
