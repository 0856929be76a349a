"""What abuse meets before the desk: bounds of connections and requests, and the gate of the submit page."""

import asyncio
import os
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.eval.leaderboard.connections import Guard, Message, Scope, one_line, visitor
from robustbench_tc.eval.leaderboard.limits import MB, Limits
from robustbench_tc.eval.leaderboard.submit_gate import POLICY, Room, SubmitGate, sweep
from robustbench_tc.eval.leaderboard.submitting import LOCAL, Submitter

LIMITS = Limits(head_s=0.2, body_bytes=100, body_bytes_per_s=10_000, connections_of_address=3)


class Asked:
    """One request at an ASGI app, and what came back. Bodies that are None never arrive."""

    def __init__(self, path: str, *bodies: bytes | None, method: str = "GET", **headers: str) -> None:
        self.bodies = list(bodies) or [b""]
        self.read = 0
        self.sent: list[Message] = []
        named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        self.scope: Scope = {"type": "http", "method": method, "path": path, "headers": named}
        self.scope["client"] = ("10.0.0.9", 1)

    async def receive(self) -> Message:
        if not self.bodies or self.bodies[0] is None:
            await asyncio.sleep(60)
        self.read += 1
        body = self.bodies.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(self.bodies)}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    def at(self, app: Any) -> tuple[int, dict[bytes, bytes], bytes]:
        """Status, headers and body of the answer."""
        asyncio.run(app(self.scope, self.receive, self.send))
        body = b"".join(one.get("body", b"") for one in self.sent[1:])
        return self.sent[0]["status"], dict(self.sent[0]["headers"]), body


async def echo(scope: Scope, receive: Any, send: Any) -> None:
    """Reads the body, and says how long it was and who asked."""
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message["body"]), message["more_body"]
    said = f"{size} {scope['client'][0]}".encode()
    kind = b"text/html" if scope["path"].endswith("/") else b"text/plain"
    if kind == b"text/html":
        said = b'<script>1</script><script type="module"></script>'
    headers = [(b"content-type", kind), (b"content-length", str(len(said)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": said})


async def broken(scope: Scope, receive: Any, send: Any) -> None:
    raise ValueError("first line\nTraceback \x1b[2J")


def test_bodies_are_bounded_in_bytes_and_pace() -> None:
    guard = Guard(echo, LIMITS, {"/files": 1_000}, behind_proxy=False)
    assert Asked("/x", b"a" * 100, method="POST").at(guard)[2] == b"100 10.0.0.9"
    announced = Asked("/", b"a" * 101, method="POST", content_length="101")
    assert announced.at(guard)[0] == 413 and announced.read == 0
    assert Asked("/", b"a" * 60, b"a" * 60, method="POST").at(guard)[0] == 413
    assert Asked("/files/1", b"a" * 900, method="PUT").at(guard)[0] == 200
    started = time.monotonic()
    assert Asked("/", b"a", None, method="POST").at(guard)[0] == 408
    assert time.monotonic() - started < 30


def test_every_answer_says_nosniff_and_a_broken_app_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    for app, status in ((echo, 200), (broken, 500)):
        found, headers, body = Asked("/x").at(Guard(app, LIMITS, behind_proxy=False))
        assert found == status and headers[b"x-content-type-options"] == b"nosniff"
        assert b"first line" not in body
    [record] = caplog.records
    assert record.message == "GET /x failed: ValueError: first line" and record.exc_info is None
    assert "\x1b" not in one_line(ValueError("\x1b[2J"))


def test_a_visitor_behind_a_proxy_is_known_by_what_the_proxy_adds() -> None:
    guard = Guard(echo, LIMITS, behind_proxy=True)
    told = {"x_forwarded_for": "8.8.4.4, 8.8.8.8, 10.1.2.3"}
    assert Asked("/x", **told).at(guard)[2] == b"0 8.8.8.8"
    assert Asked("/x", **told).at(Guard(echo, LIMITS, behind_proxy=False))[2] == b"0 10.0.0.9"
    assert Asked("/x").at(guard)[2] == b"0 10.0.0.9"
    assert visitor(b"2001:4860:4860::8888") == "2001:4860:4860::8888"
    assert [visitor(one) for one in (b"", b"<script>", b"10.0.0.1", b"\xff")] == [None] * 4


def gate(tmp_path: Path, sign_in: bool = False, **limits: int) -> SubmitGate:
    return SubmitGate(echo, limits=Limits(**limits), sign_in=sign_in, folder=tmp_path)  # type: ignore[arg-type]


UPLOAD = "/submit/gradio_api/upload"


def test_a_space_takes_no_byte_of_somebody_who_is_not_signed_in(tmp_path: Path) -> None:
    space = gate(tmp_path, sign_in=True)
    for path in (UPLOAD, f"{UPLOAD}/"):
        anonymous = Asked(path, b"a", method="POST", content_length="1")
        assert anonymous.at(space)[0] == 401 and anonymous.read == 0
    signed_in = Asked(UPLOAD, b"a", method="POST", content_length="1")
    signed_in.scope["session"] = {"oauth_info": {"userinfo": {"preferred_username": "ann"}}}
    assert signed_in.at(space)[0] == 200
    for session in ({"oauth_info": "ann"}, {"oauth_info": {"userinfo": {"preferred_username": ""}}}):
        odd = Asked(UPLOAD, b"a", method="POST", content_length="1")
        odd.scope["session"] = session
        assert odd.at(space)[0] == 401
    assert Asked(UPLOAD, b"a", method="POST").at(gate(tmp_path))[0] == 411


def test_what_the_page_does_not_use_is_closed(tmp_path: Path) -> None:
    here = gate(tmp_path)
    for method, path in (
        ("POST", "queue/join"),
        ("GET", "queue/data"),
        ("GET", "file=/etc/passwd"),
        ("GET", "proxy=http://x"),
        ("POST", "call/check"),
        ("POST", "vibe-edit"),
        ("POST", "run/check/x"),
        ("PUT", "upload"),
    ):
        assert Asked(f"/submit/gradio_api/{path}", method=method).at(here)[0] == 404, path
    for method, path in (("GET", "/"), ("GET", "/config"), ("POST", "/gradio_api/run/check")):
        assert Asked(f"/submit{path}", method=method).at(here)[0] == 200, path
    assert b"content-security-policy" not in Asked("/types").at(here)[1]


def test_scripts_of_the_page_carry_its_nonce(tmp_path: Path) -> None:
    status, headers, body = Asked("/submit/").at(gate(tmp_path))
    nonce = body.partition(b'nonce="')[2].partition(b'"')[0]
    assert status == 200 and len(nonce) > 16 and body.count(b'<script nonce="' + nonce) == 2
    assert headers[b"content-security-policy"] == POLICY.format(nonce=nonce.decode()).encode()
    assert int(headers[b"content-length"]) == len(body)
    assert Asked("/submit/").at(gate(tmp_path))[2] != body


def test_a_temporary_folder_of_somebody_else_is_never_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from robustbench_tc.eval.leaderboard import app

    theirs = tmp_path / "theirs.txt"
    theirs.write_text("x")
    os.utime(theirs, (0, 0))
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    ours = app._uploads.__wrapped__()
    assert ours.parent == tmp_path
    old = ours / "old"
    old.write_text("x")
    os.utime(old, (0, 0))
    sweep(ours, 1.0)
    assert theirs.exists() and not old.exists()


def test_room_for_uploads_is_bounded_and_swept(tmp_path: Path) -> None:
    limits = Limits(upload_space=100, upload_space_of_one=60, uploads_at_once=3, uploads_at_once_of_one=2)
    ann, bob, eve = (Submitter(name, f"8.8.8.{n}") for n, name in enumerate(("ann", "bob", "eve")))
    room = Room(limits, tmp_path)
    assert room.enter(ann, 30) is None and room.enter(ann, 30) is None
    assert "Other files are arriving" in str(room.enter(Submitter("ann", "8.8.9.9"), 1))
    room.leave(ann)
    assert "You have sent" in str(room.enter(Submitter("zoe", ann.address), 1))
    assert room.enter(bob, 30) is None and room.enter(eve, 1) is None
    assert "Other files" in str(room.enter(Submitter("dan", "8.8.7.7"), 1))
    room.leave(eve)
    assert "no room for more" in str(room.enter(eve, 30))
    assert Submitter(LOCAL, "::1").account != Submitter(LOCAL, "127.0.0.1").account
    old, new = tmp_path / "a" / "old", tmp_path / "new"
    old.parent.mkdir()
    for path in (old, new):
        path.write_bytes(b"x")
    os.utime(old, (0, 0))
    sweep(tmp_path, 60)
    assert not old.exists() and new.exists()


pytest.importorskip("gradio", reason="connections are uvicorn's (make env-leaderboard)")


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    """A server of `echo` alone, in a thread, with few and short connections."""
    from robustbench_tc.eval.leaderboard.app import run

    with socket.create_server(("127.0.0.1", 0)) as listening:
        stop = threading.Event()
        bounds = Limits(head_s=1.0, connections=6, connections_of_address=4, file_bytes=MB)
        thread = threading.Thread(target=run, args=(echo, listening, bounds), kwargs={"stop": stop})
        thread.start()
        yield listening.getsockname()
        stop.set()
        thread.join(20)


def test_slow_connections_make_room_and_are_closed(address: tuple[str, int]) -> None:
    url = f"http://{address[0]}:{address[1]}/x"
    slow = []
    for _ in range(12):
        one = socket.create_connection(address, timeout=20)
        one.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        slow.append(one)
    assert urllib.request.urlopen(url, timeout=20).read() == b"0 127.0.0.1"
    for one in slow:  # each is closed: for the newer ones, or for its slowness
        _wait_until_closed(one)
    assert urllib.request.urlopen(url, timeout=20).read() == b"0 127.0.0.1"


def _wait_until_closed(one: socket.socket) -> None:
    with one, suppress(ConnectionResetError):
        while one.recv(1000):
            pass
