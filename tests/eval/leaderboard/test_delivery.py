"""How pages leave the server: compressed or not, with a tag, once."""

import asyncio
import gzip
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="the pages need the extra leaderboard (make env-leaderboard)")

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.testclient import TestClient

from robustbench_tc.eval.leaderboard import delivery
from robustbench_tc.eval.leaderboard.delivery import Delivery, has_already

PAGE = b"<p>a page</p>\n" * 500
SMALL = b"<p>small</p>"
ODD = bytes(range(256)) * 20


async def _page(_: Request) -> Response:
    return Response(PAGE, media_type="text/html", headers={"Vary": "Cookie", "Cache-Control": "no-cache"})


async def _small(_: Request) -> Response:
    return Response(SMALL, media_type="text/html")


async def _binary(_: Request) -> Response:
    return Response(ODD, media_type="application/octet-stream")


async def _tagged(_: Request) -> Response:
    return Response(PAGE, media_type="application/json", headers={"ETag": '"mine"'})


async def _stream(_: Request) -> Response:
    return StreamingResponse(iter([PAGE, PAGE]), media_type="text/html")


async def _events(_: Request) -> Response:
    return Response(PAGE, media_type="text/event-stream")


async def _missing(_: Request) -> Response:
    raise HTTPException(404, "there is no such page " * 100)


async def _broken(_: Request) -> Response:
    return Response(PAGE, 500, media_type="text/html")


@pytest.fixture(scope="module")
def client() -> TestClient:
    app = Starlette()
    routes = (_page, _small, _binary, _tagged, _stream, _events, _missing, _broken)
    for route in routes:
        app.add_route(f"/{route.__name__[1:]}", route)
    app.add_route("/submit/page", _page)
    app.add_route("/sent", _page, ["POST"])
    app.add_middleware(Delivery)
    return TestClient(app, raise_server_exceptions=False)


def asked(client: TestClient, path: str, method: str = "GET", **headers: str) -> Any:
    """The answer; its body as it was sent is `raw`."""
    given = {"accept-encoding": "identity"} | {name.replace("_", "-"): text for name, text in headers.items()}
    return client.request(method, path, headers=given)


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("br, deflate, gzip;q=0.5", True),
        ("*", True),
        ("gzip;q=0.001", True),
        ("*;q=0, gzip", True),
        ("gzip ; q=1", True),
        ("", False),
        ("identity", False),
        ("br", False),
        ("xgzip", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("gzip;q = 0", False),
        ("*, gzip;q=0", False),
        ("gzip;q=0, *", False),
        ("*;q=0", False),
        ("gzip;q=high", False),
        ("gzip;q=nan", False),
    ],
)
def test_a_page_is_compressed_for_whoever_takes_it(client: TestClient, accepted: str, packed: bool) -> None:
    found = asked(client, "/page", accept_encoding=accepted)
    assert (found.headers.get("content-encoding") == "gzip") == packed
    assert found.content == PAGE  # the client has unpacked it
    sent = int(found.headers["content-length"])
    assert sent == (len(gzip.compress(PAGE, 5, mtime=0)) if packed else len(PAGE))
    assert asked(client, "/page").headers["etag"] == found.headers["etag"]


def test_caches_are_told_what_an_answer_depends_on(client: TestClient) -> None:
    for path in ("/page", "/small"):
        for accepted in ("gzip", "identity"):
            found = asked(client, path, accept_encoding=accepted)
            assert "Accept-Encoding" in found.headers.get_list("vary", split_commas=True)
    found = asked(client, "/page")
    assert found.headers.get_list("vary", split_commas=True) == ["Cookie", "Accept-Encoding"]
    not_sent = asked(client, "/page", if_none_match=found.headers["etag"])
    assert not_sent.status_code == 304 and not_sent.content == b""
    for name in ("etag", "vary", "cache-control"):
        assert not_sent.headers[name] == found.headers[name]
    assert "content-length" not in not_sent.headers and "content-encoding" not in not_sent.headers


def test_a_page_is_sent_once_to_whoever_says_that_it_is_there(client: TestClient) -> None:
    tag = asked(client, "/page").headers["etag"]
    strong = tag.removeprefix("W/")
    assert tag == f"W/{strong}" and strong.startswith('"') and strong.endswith('"')
    for known in (tag, strong, "*", f'"a", {tag}', f'{strong},W/"b"', ' * , "x"'):
        assert asked(client, "/page", if_none_match=known).status_code == 304, known
    for other in ('"a"', strong[1:-1], tag[:-2], "", "W/", asked(client, "/small").headers["etag"]):
        assert asked(client, "/page", if_none_match=other).status_code == 200, other
    twice = client.get("/page", headers=[("if-none-match", '"a"'), ("if-none-match", tag)])
    assert twice.status_code == 304


@given(st.text(max_size=60))
def test_no_header_breaks_a_match(known: str) -> None:
    assert has_already('W/"ab"', known) == (known.strip() in ('W/"ab"', '"ab"', "*") or _listed(known))


def _listed(known: str) -> bool:
    return any(one.strip() in ('W/"ab"', '"ab"', "*") for one in known.split(","))


@given(st.lists(st.sampled_from(["gzip", "*", "br", "identity"]), max_size=4), st.data())
def test_what_is_said_of_gzip_goes_before_what_is_said_of_the_rest(names: list[str], data: Any) -> None:
    said = {name: data.draw(st.sampled_from(["", ";q=0", ";q=1", "; q=0.5"]), name) for name in names}
    wanted = said.get("gzip", said.get("*", ";q=0")) != ";q=0"
    assert delivery._takes_gzip(",".join(name + how for name, how in said.items())) == wanted


@pytest.mark.parametrize("accepted", ["gzip", "identity"])
@pytest.mark.parametrize("path", ["/page", "/small", "/missing", "/binary", "/tagged"])
def test_head_has_the_headers_of_get_and_no_body(client: TestClient, path: str, accepted: str) -> None:
    whole = asked(client, path, accept_encoding=accepted)
    head = asked(client, path, "HEAD", accept_encoding=accepted)
    assert dict(head.headers) == dict(whole.headers) and head.status_code == whole.status_code
    if path in ("/page", "/small"):
        assert head.content == b""
        known = asked(client, path, "HEAD", if_none_match=head.headers["etag"])
        assert known.status_code == 304


@pytest.mark.parametrize("path", ["/missing", "/broken", "/nowhere"])
def test_an_error_has_no_tag_and_is_never_said_to_be_there_already(client: TestClient, path: str) -> None:
    for known in ("*", "", 'W/"x"'):
        found = asked(client, path, accept_encoding="gzip", if_none_match=known)
        assert found.status_code in (404, 500) and found.content
        assert not {"etag", "content-encoding"} & set(found.headers)


def test_what_is_no_whole_page_passes_as_it_is(client: TestClient) -> None:
    for path in ("/binary", "/stream", "/events", "/submit/page"):
        found = asked(client, path, accept_encoding="gzip", if_none_match="*")
        assert found.status_code == 200 and found.content, path
        assert not {"etag", "content-encoding"} & set(found.headers), path
    assert asked(client, "/stream").content == PAGE + PAGE
    assert asked(client, "/tagged", accept_encoding="gzip").headers["etag"] == '"mine"'
    assert "etag" not in asked(client, "/sent", "POST", accept_encoding="gzip").headers


def test_pages_that_are_kept_stay_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "KEPT_BYTES", 8 * len(PAGE))
    pages = [PAGE + b"%d" % number for number in range(30)]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = pages[int(scope["path"][1:])]
        headers = [(b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    made = Delivery(app)
    sent: list[Any] = []

    async def keep(message: Any) -> None:
        sent.append(message)

    async def ask(number: int) -> bytes:
        scope = {
            "type": "http",
            "method": "GET",
            "path": f"/{number}",
            "headers": [(b"accept-encoding", b"gzip")],
        }
        sent.clear()
        await made(scope, None, keep)
        return gzip.decompress(sent[1]["body"])

    for number in (*range(30), 0, 29, 0, 0):
        assert asyncio.run(ask(number)) == pages[number]
        assert made._bytes == sum(len(one.body) for one in made._kept.values()) <= 8 * len(PAGE)
    before = made._kept[id(pages[0])].packed
    asyncio.run(ask(0))
    assert made._kept[id(pages[0])].packed is before  # compressed once
