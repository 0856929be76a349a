"""Connections and requests that cost the server nothing for long: how many, how slow, how large.

Two parts. `protocol` bounds what happens before a request is there: connections in all and of one address,
and the seconds that a request's head and an answer's reader may take. `Guard` wraps the app and bounds what
comes then: bytes and pace of a body. It also puts the true address of a visitor into the request, `nosniff`
on every answer, and one line instead of a traceback into the log where the app breaks.
"""

import asyncio
import ipaddress
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from .limits import Limits
from .submitting import Submitter

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = logging.getLogger("uvicorn.error")

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 10\r\n"
    b"X-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: 53\r\n\r\n"
    b"Too many connections at once: try again in a moment.\n"
)


def protocol(limits: Limits, *, behind_proxy: bool) -> "type[H11Protocol]":
    """uvicorn's protocol with bounds. Behind a proxy all connections have its address: only their sum counts.

    Where a bound is reached the connection that has waited longest without a request in progress makes room;
    only if every one is at work the new one is told 503.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Bounded(H11Protocol):
        """One connection."""

        _open: dict["Bounded", str] = {}  # noqa: RUF012 - all connections of this server, oldest first
        _timer: asyncio.TimerHandle | None = None
        idle_since = 0.0

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            peer = "" if behind_proxy or self.client is None else str(self.client[0])
            self.idle_since = time.monotonic()
            near = [one for one, address in self._open.items() if address == peer]
            if not behind_proxy and len(near) >= limits.connections_of_address:
                full = not _make_room(near)
            else:
                full = len(self._open) >= limits.connections and not _make_room(list(self._open))
            if full:
                transport.write(_FULL)
                transport.close()
                return
            self._open[self] = peer
            self._wait(limits.head_s)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.at_work():
                self._unset()
            elif self._timer is None:  # the beginning of another request
                self._wait(limits.head_s)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.idle_since = time.monotonic()

        def pause_writing(self) -> None:
            """The visitor reads slowly, or not at all."""
            super().pause_writing()
            self._wait(limits.send_s)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._unset()

        def connection_lost(self, exc: Exception | None) -> None:
            self._open.pop(self, None)
            self._unset()
            super().connection_lost(exc)

        def at_work(self) -> bool:
            """Whether a request has arrived whose answer is not complete."""
            return self.cycle is not None and not self.cycle.response_complete

        def close_now(self) -> None:
            """Without a word: the other side has not said anything either."""
            self._open.pop(self, None)
            if self.transport is not None:
                self.transport.abort()

        def _wait(self, seconds: float) -> None:
            self._unset()
            self._timer = self.loop.call_later(seconds, self.close_now)

        def _unset(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Bounded


def _make_room(among: Sequence[Any]) -> bool:
    """Closes the connection that is idle for longest; False if all are at work."""
    idle = [one for one in among if not one.at_work()]
    if not idle:
        return False
    min(idle, key=lambda one: one.idle_since).close_now()
    return True


class Guard:
    """The app behind bounds. `bodies`: beginnings of paths → bytes that a request's body may have there."""

    def __init__(
        self, app: App, limits: Limits, bodies: Mapping[str, int] | None = None, *, behind_proxy: bool
    ) -> None:
        self._app = app
        self._limits = limits
        self._bodies = dict(bodies or {})
        self._behind_proxy = behind_proxy
        self._at_work: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # nothing here speaks WebSocket
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = _Answer(send)
        headers = {name.lower(): value for name, value in scope["headers"]}
        if self._behind_proxy:
            scope["client"] = (visitor(headers.get(b"x-forwarded-for", b"")) or scope["client"][0], 0)
        address = Submitter("", scope["client"][0] if scope.get("client") else "").network
        if self._at_work[address] >= self._limits.connections_of_address:
            await answer.refuse(503, "Too many requests of your address at once: try again in a moment.")
            return
        self._at_work[address] += 1
        try:
            await self._bounded(scope, receive, answer, headers)
        finally:
            self._at_work[address] -= 1
            if not self._at_work[address]:
                del self._at_work[address]

    async def _bounded(
        self, scope: Scope, receive: Receive, answer: "_Answer", headers: Mapping[bytes, bytes]
    ) -> None:
        most = next(
            (n for path, n in self._bodies.items() if scope["path"].startswith(path)), self._limits.body_bytes
        )
        said = headers.get(b"content-length", b"")
        if said.isdigit() and int(said[:18]) > most:
            await answer.refuse(413, f"The request has {int(said[:18]):,} bytes, at most {most:,} are read.")
            return
        body = _Body(receive, most, self._limits)
        try:
            await self._app(scope, body.receive, answer.send)
        except _TooMuch as refused:
            await answer.refuse(refused.status, str(refused))
        except Exception as error:
            if body.refused is not None:  # said in the app's own words
                await answer.refuse(body.refused.status, str(body.refused))
                return
            _log.error("%s %s failed: %s", scope["method"], _shown(scope["path"]), one_line(error))
            await answer.refuse(500, "The server could not answer. Try again in a moment.")


class _TooMuch(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class _Body:
    """A request's body, of so many bytes at most, which has to arrive at some pace."""

    def __init__(self, receive: Receive, most: int, limits: Limits) -> None:
        self._receive = receive
        self._left = most
        self._pace = limits.body_bytes_per_s
        self._ends = time.monotonic() + limits.head_s
        self._done = False
        self.refused: _TooMuch | None = None

    async def receive(self) -> Message:
        if self._done:  # what comes now is that the visitor has gone
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), max(0.1, self._ends - time.monotonic()))
        except TimeoutError:
            self._refuse(408, "The request arrived too slowly: send it again.")
        size = len(message.get("body", b""))
        self._left -= size
        self._ends += size / self._pace
        if self._left < 0:
            self._refuse(413, "The request has more bytes than are read.")
        self._done = not message.get("more_body", False)
        return message

    def _refuse(self, status: int, why: str) -> None:
        self._done = True
        self.refused = _TooMuch(status, why)
        raise self.refused


class _Answer:
    """What goes back: `nosniff` on all of it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = self._ended = False

    async def send(self, message: Message) -> None:
        if self._ended:
            return
        if message["type"] == "http.response.start":
            self._started = True
            others = [
                one for one in message.get("headers", ()) if one[0].lower() != b"x-content-type-options"
            ]
            message = {**message, "headers": [*others, (b"x-content-type-options", b"nosniff")]}
        elif message["type"] == "http.response.body":
            self._ended = not message.get("more_body", False)
        await self._send(message)

    async def refuse(self, status: int, why: str) -> None:
        """Ends the answer: with a status and a line, or as it is where it has begun."""
        if self._ended:
            return
        if not self._started:
            text = why.encode() + b"\n"
            kinds = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
            kinds.append((b"content-length", str(len(text)).encode()))
            await self.send({"type": "http.response.start", "status": status, "headers": kinds})
            await self.send({"type": "http.response.body", "body": text})
        else:
            await self.send({"type": "http.response.body", "body": b""})


def visitor(forwarded: bytes) -> str | None:
    """The visitor's address in X-Forwarded-For: the last one that is no proxy's own.

    What a visitor writes into the header stands before what the proxies add, and is not believed.
    """
    for part in reversed(forwarded.decode("latin-1").split(",")):
        try:
            found = ipaddress.ip_address(part.strip().strip("[]"))
        except ValueError:
            return None
        if found.is_global or not (found.is_private or found.is_loopback or found.is_link_local):
            return str(found)
    return None


def one_line(error: BaseException) -> str:
    """An error for the log: its kind and its first words, printable."""
    words = (str(error).strip().splitlines() or [""])[0][:200]
    return ascii(f"{type(error).__name__}: {words}")[1:-1]


def _shown(path: str) -> str:
    return ascii(path[:200])[1:-1]
