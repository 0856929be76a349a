"""The door without faults: bytes in, bytes out, and nothing to anybody but the one server."""

import http.client
import json
import socket
import time
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.builders.sources import BUNDLED, read_pool
from robustbench_tc.eval import wire as rows_wire
from robustbench_tc.proxy.door import Door
from robustbench_tc.proxy.plan import Plan
from robustbench_tc.proxy.relay import serving
from robustbench_tc.proxy.sse import END, MOST, event_data, events

from ..refusals import refuses
from .wire import Answer, Seen, send, serving as server_of

idle = partial(Door, plan=Plan())
REPLY = '{"id":"x",  "choices":[{"index":0,"message":{"role":"assistant","content":"ü"}}]}\n'.encode()


def recorded() -> list[tuple[bytes, list[bytes]]]:
    """500 requests of the bundled set, with replies whole and in pieces of every kind."""
    rows = read_pool(BUNDLED, "bundled").samples
    found = []
    for number in range(500):
        row = rows[number % len(rows)]
        ask = rows_wire.first(row, "fc" if number % 2 else "prompt")
        body = {"model": f"m{number}", "messages": ask.messages, "stream": number % 3 == 0}
        if ask.tools is not None:
            body["tools"] = ask.tools
        text = json.dumps(body, ensure_ascii=number % 5 == 0, indent=number % 4 or None).encode()
        if number % 3:
            found.append((text, [json.dumps({"id": number, "choices": [{"text": row.clean_id}]}).encode()]))
        else:
            end = (b"\n\n", b"\r\n\r\n")[number % 2]
            events = [f"data: {json.dumps({'n': n, 'd': 'ü' * n}, ensure_ascii=False)}".encode() + end
                      for n in range(number % 7)]  # fmt: skip
            stream = b": comment" + end + b"".join(events) + b"data: [DONE]" + end
            cut = 1 + number % 50
            found.append((text, [stream[at : at + cut] for at in range(0, len(stream), cut)]))
    return found


def test_five_hundred_requests_pass_byte_by_byte_both_ways() -> None:
    wanted = recorded()
    turn = iter(wanted)

    def answer(seen: Seen) -> Answer:
        body, pieces = next(turn)
        assert seen.body == body
        kind = "text/event-stream" if len(pieces) > 1 else "application/json"
        return Answer(pieces, headers={"Content-Type": kind, "X-Request-Id": "r1"})

    with server_of(answer) as server, serving(idle(server.url)) as url:
        for number, (body, pieces) in enumerate(wanted):
            place = url.replace("/v1", "/s/case-1.0/v1") if number % 2 else url
            got = send(f"{place}/chat/completions", body)
            assert (got.status, got.body) == (200, b"".join(pieces))
            assert got.headers["X-Request-Id"] == "r1"
    assert [seen.body for seen in server.seen] == [body for body, _ in wanted]
    assert {seen.path for seen in server.seen} == {"/v1/chat/completions"}


def test_other_requests_pass_too_and_so_do_errors_of_the_server() -> None:
    with (
        server_of(
            lambda seen: Answer([b'{"error":{"message":"busy"}}'], 429, {"Retry-After": "7"})
        ) as server,
        serving(idle(server.url)) as url,
    ):
        got = send(f"{url}/models?limit=2&after=a%2Fb", method="GET")
        assert (got.status, got.headers["Retry-After"], got.body) == (
            429,
            "7",
            b'{"error":{"message":"busy"}}',
        )
        assert server.seen[0].path == "/v1/models?limit=2&after=a%2Fb"
        assert server.seen[0].method == "GET"


def test_only_the_callers_own_headers_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with server_of(lambda seen: Answer(headers={"Set-Cookie": "a=b"})) as server:
        with serving(idle(server.url)) as url:
            got = send(
                f"{url}/chat/completions",
                b"{}",
                {
                    "Authorization": "Bearer mine",
                    "Cookie": "session=1",
                    "X-RBTC-Session": "case.0",
                    "Connection": "close, X-Hop",
                    "X-Hop": "1",
                    "OpenAI-Organization": "org",
                },
            )
            send(f"{url}/chat/completions", b"{}")
        first, second = server.seen
    assert "Set-Cookie" not in got.headers
    assert first.headers["Authorization"] == "Bearer mine"
    assert first.headers["OpenAI-Organization"] == "org"
    assert first.headers["Host"] == urlsplit(server.url).netloc
    assert not {"Cookie", "X-RBTC-Session", "X-Hop"} & set(first.headers)
    assert "Authorization" not in second.headers
    assert "environment" not in str(server.seen)


def always(answer: Answer) -> Callable[[Seen], Answer]:
    return lambda seen: answer


def message(body: bytes) -> str:
    said = json.loads(body)["error"]["message"]
    assert isinstance(said, str) and "\n" not in said
    return said


def test_a_redirect_is_not_followed() -> None:
    away = Answer(status=307, headers={"Location": "http://127.0.0.1:1/"})
    with server_of(lambda seen: away) as server, serving(idle(server.url)) as url:
        got = send(f"{url}/chat/completions", b"{}", {"Authorization": "Bearer mine"})
    assert got.status == 502 and "redirect" in message(got.body)
    assert "Location" not in got.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Host": "localhost:80"}, 200),
        ({"Host": "[::1]:80"}, 200),
    ],
)
def test_pages_of_the_web_are_refused(headers: dict[str, str], status: int) -> None:
    with server_of(lambda seen: Answer()) as server, serving(idle(server.url)) as url:
        got = send(f"{url}/chat/completions", b"{}", headers)
        assert (got.status, len(server.seen)) == (status, status == 200)
        assert status == 200 or "rbtc proxy: " in message(got.body)


@pytest.mark.parametrize(
    "path", ["/", "/v2/models", "/v1/../admin", "/v1/%2e%2E/admin", "/s/a.0/v1/../x", "/v1x"]
)
def test_other_paths_are_refused(path: str) -> None:
    with server_of(lambda seen: Answer()) as server, serving(idle(server.url)) as url:
        got = send(url.removesuffix("/v1") + path, method="GET")
        assert got.status == 404 and "/v1" in message(got.body)
        assert not server.seen


def test_a_session_that_is_none_is_refused() -> None:
    with server_of(lambda seen: Answer()) as server, serving(idle(server.url)) as url:
        got = send(url.replace("/v1", "/s/refund/v1") + "/models", method="GET")
        assert got.status == 400 and "<case>.<repeat>" in message(got.body)


def test_a_body_beyond_32_mb_is_refused() -> None:
    with server_of(lambda seen: Answer()) as server, serving(idle(server.url)) as url:
        assert send(f"{url}/chat/completions", b" " * MOST).status == 200
        try:
            got = send(f"{url}/chat/completions", b" " * (MOST + 1))
        except ConnectionError:  # it may close while the body is still being sent
            got = None
        assert got is None or (got.status == 413 and "33554432" in message(got.body))
        assert len(server.seen) == 1


def test_a_server_that_is_down_slow_or_breaks_off() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with serving(idle(nobody)) as url:
        got = send(f"{url}/chat/completions", b"{}")
        assert got.status == 502 and "cannot be reached" in message(got.body)
    for answer in (Answer([b"a", b"b"], pause_s=5), Answer([b"data: 1\n\n", b"data: 2"], break_off=True)):
        with (
            server_of(always(answer)) as server,
            serving(idle(server.url, silence_s=0.2)) as url,
            pytest.raises((http.client.HTTPException, OSError)),
        ):
            send(f"{url}/chat/completions", b"{}")  # begun, then silent or cut: it ends without an end

    def never(seen: Seen) -> Answer:
        time.sleep(1)
        return Answer()

    with server_of(never) as server, serving(idle(server.url, silence_s=0.2)) as url:
        got = send(f"{url}/chat/completions", b"{}")
        assert got.status == 504 and "sent nothing for 0.2 s" in message(got.body)


def test_a_caller_that_leaves_ends_the_request_at_the_server() -> None:
    endless = Answer([b"data: 1\n\n"] * 400, pause_s=0.05)
    with server_of(lambda seen: endless) as server, serving(idle(server.url)) as url:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        connection.request("POST", "/v1/chat/completions", b"{}")
        assert connection.getresponse().read(3) == b"dat"
        connection.sock.close()
        connection.close()
        assert server.gone.wait(60)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://user:secret@127.0.0.1/v1", "leave user and password out"),
        ("ftp://x", "must begin with http"),
        ("http://x/v1/chat/completions", "leave out what stands behind /v1"),
    ],
)
def test_an_address_that_is_none(address: str, said: str) -> None:
    assert "secret" not in refuses(said, idle, address)


def test_a_door_that_ends_as_soon_as_it_serves_is_closed() -> None:
    """The order to end may come while the server is still about to begin."""
    for _ in range(30):
        with serving(idle("http://127.0.0.1:9/v1")) as url:
            assert url.startswith("http://127.0.0.1:")


PIECES = st.sampled_from([b"\r", b"\n", b"\r\n", b"a", b":", b"event: x", b"data:", b"data: x", b" data:"])


@given(st.lists(PIECES, max_size=16))
def test_events_of_a_body_are_those_between_its_blank_lines(pieces: list[bytes]) -> None:
    body = b"".join(pieces)
    whole, found = (map(event_data, cut) for cut in (END.split(body), events(bytearray(body))))
    assert [*filter(None, found)] == [*filter(None, whole)]
