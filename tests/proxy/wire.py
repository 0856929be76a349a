"""A raw HTTP server and client: what passes a relay is compared byte by byte, so neither may interpret it."""

import asyncio
import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from aiohttp import web
from multidict import CIMultiDict


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

    pieces: list[bytes] = field(default_factory=lambda: [b"{}"])
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    pause_s: float = 0.0
    break_off: bool = False
    """Closes the connection after the pieces, without an end."""


Handler = Callable[[Seen], Answer]


class Server:
    """A server whose replies are bytes."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.seen: list[Seen] = []
        self.gone = threading.Event()
        """Set where a caller left before its reply was whole."""
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        seen = Seen(request.method, request.raw_path, dict(request.headers), await request.read())
        self.seen.append(seen)
        answer = self.handler(seen)
        if len(answer.pieces) == 1 and not answer.break_off and not answer.pause_s:
            return web.Response(status=answer.status, headers=answer.headers, body=answer.pieces[0])
        reply = web.StreamResponse(status=answer.status, headers=answer.headers)
        try:
            await reply.prepare(request)
            for piece in answer.pieces:
                await reply.write(piece)
                await asyncio.sleep(answer.pause_s)
            if answer.break_off:
                assert request.transport is not None
                request.transport.abort()
                return reply
            await reply.write_eof()
        except asyncio.CancelledError:
            self.gone.set()
            raise
        except ConnectionError:  # aiohttp would log it as this server's own failure
            self.gone.set()
        return reply


@contextmanager
def serving(handler: Handler) -> Iterator[Server]:
    server, loop, ready = Server(handler), asyncio.new_event_loop(), threading.Event()

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=2**27)
        app.router.add_route("*", "/{rest:.*}", server.handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        return runner

    def run() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


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
