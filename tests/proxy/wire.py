"""A raw HTTP server and client: what passes a relay is compared byte by byte, so neither may interpret it."""

import asyncio
import http.client
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from aiohttp import web
from multidict import CIMultiDict

from ..loopback import LoopbackServer


@dataclass
class Seen:
    """What reached the server."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    """What it says: pieces are sent one by one, chunked; a single one with its length."""

    pieces: Iterable[bytes] = field(default_factory=lambda: [b"{}"])
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    pause_s: float = 0.0
    break_off: bool = False
    """Closes the connection after the pieces, without an end."""


Handler = Callable[[Seen], Answer]


class Server(LoopbackServer):
    """A server whose replies are bytes."""

    def __init__(self, handler: Handler) -> None:
        super().__init__(lambda body: "")
        self.answers = handler
        self.seen: list[Seen] = []
        self.gone = threading.Event()
        """Set where a caller left before its reply was whole."""

    def add_routes(self, app: web.Application) -> None:
        app.router.add_route("*", "/{rest:.*}", self.handle)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        seen = Seen(request.method, request.raw_path, dict(request.headers), await request.read())
        self.seen.append(seen)
        answer = self.answers(seen)
        if isinstance(answer.pieces, list) and len(answer.pieces) == 1 and not answer.break_off:
            return web.Response(status=answer.status, headers=answer.headers, body=answer.pieces[0])
        reply = web.StreamResponse(status=answer.status, headers=answer.headers)
        try:
            await reply.prepare(request)
            for piece in answer.pieces:
                await reply.write(piece)
                await asyncio.sleep(answer.pause_s)
        except asyncio.CancelledError:
            self.gone.set()
            raise
        except ConnectionError:  # aiohttp would log it as this server's own failure
            self.gone.set()
        if answer.break_off:
            assert request.transport is not None
            request.transport.abort()
        return reply


serving = Server


@dataclass
class Got:
    status: int
    headers: CIMultiDict[str]
    body: bytes


def send(url: str, body: bytes = b"", headers: dict[str, str] | None = None, method: str = "POST") -> Got:
    """One request over a connection of its own, as it is. Raises http.client.HTTPException and OSError."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        given = {"Content-Type": "application/json", **(headers or {})}
        connection.request(method, target, body, given)
        found = connection.getresponse()
        return Got(found.status, CIMultiDict(found.getheaders()), found.read())
    finally:
        connection.close()
