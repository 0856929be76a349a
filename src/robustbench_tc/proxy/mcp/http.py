"""The MCP door between a port of this machine and a server's address: streamable HTTP, both ways.

What the plan is about is decided by the request, never by the type of the reply. Streams pass as they are,
event ids, `retry` and empty events among them; of an event that answers an open request only the data is
another one, whichever of the client's streams it comes in.
"""

import asyncio
import base64
import dataclasses
import re
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import aiohttp
from aiohttp import web

from robustbench_tc.schema import Json

from .. import session as sessions
from ..relay import SILENCE_S, Refused, Relay, broken_off
from ..session import Session
from ..upstream import Budget, UpstreamError, reply_headers, request_headers, secrets_of
from . import jsonrpc
from .calls import TOGETHER_S, Calls, Door, Pending
from .jsonrpc import Message

_PATH = re.compile(r"(?:/s/([^/]+))?/mcp/?")
_BLOCK = re.compile(rb"(?:\r\n|\r(?!\n)|\n)(?:\r\n|\r(?!\n)|\n)")
_SAFE = re.compile(r"[!-~](?:[ -~]*[!-~])?")

NO_SESSION = "-.0"


@dataclasses.dataclass
class _Client:
    """One session's client."""

    calls: Calls
    streams: dict[web.StreamResponse, Json] = dataclasses.field(default_factory=dict)
    """Replies of ours that stay open for what the server has to say → the subscription that each is."""


class Http(Relay):
    """Relays to one server. One instance serves many sessions, by path or header."""

    def __init__(self, address: str, door: Door, *, silence_s: float = SILENCE_S) -> None:
        """Raises UserError for no address."""
        super().__init__(address, silence_s=silence_s)
        self._door = door
        self._clients: dict[str, _Client] = {}

    async def close(self) -> None:
        await super().close()
        for client in self._clients.values():
            client.calls.close()

    def _route(self, request: web.Request) -> tuple[str | None, str]:
        found = _PATH.fullmatch(request.path)
        if found is None:
            raise Refused("the address is http://127.0.0.1:PORT/mcp, or …/s/<case>.<repeat>/mcp", 404)
        name = found[1] if found[1] is not None else request.headers.get(sessions.HEADER)
        query = request.rel_url.raw_query_string
        return name, f"?{query}" if query else ""

    async def exchange(
        self, request: web.Request, name: str | None, path: str, body: bytes
    ) -> web.StreamResponse:
        if name is None and self._door.plan.at_run_time and request.method == "POST":
            raise Refused(
                "this plan needs to know the session: use the address …/s/<case>.<repeat>/mcp, or the header "
                f"{sessions.HEADER}"
            )
        session = sessions.parse(NO_SESSION if name is None else name)
        message = jsonrpc.read(body) if body else None
        client = self._client(session, message)
        if self._door.plan.idle:
            return await self.passed_on(request, path, body)
        return await _Exchange(self, client, request, path).run(message, body)

    def _client(self, session: Session, message: Message | None) -> _Client:
        """The session's client; one that says `initialize` begins the session again, faults and all."""
        key = str(session)
        if message is not None and message.get("method") == "initialize" and key in self._clients:
            self._clients.pop(key).calls.close()
        if key not in self._clients:
            self._clients[key] = _Client(Calls(self._door, session))
        return self._clients[key]


class _Exchange:
    """One request of a client's, and the reply to it."""

    def __init__(self, door: Http, client: _Client, request: web.Request, path: str) -> None:
        self._upstream, self._client, self._request, self._path = door.upstream, client, request, path
        self._calls, self._budget = client.calls, Budget(jsonrpc.MOST)
        self._calls.secrets |= secrets_of(request.headers, request.rel_url.raw_query_string)

    async def run(self, message: Message | None, body: bytes) -> web.StreamResponse:
        """The reply. Raises UpstreamError where the server gives none."""
        if message is None or not self._calls.looks_at(message):
            if message is not None:
                self._calls.lose(jsonrpc.key(jsonrpc.cancelled(message)), "cancelled by the client")
            return await self._streamed(await self._sent(body), message)
        await self._calls.prepare(message, self._ask)
        step = self._calls.before(message)
        if not isinstance(step, Pending):
            await asyncio.sleep(TOGETHER_S)
            await self._notices()
            return web.json_response(step, dumps=jsonrpc.text)
        try:
            return await self._answered(step, body)
        finally:
            step.left = time.time()  # where it is still open, another stream may bring its answer

    async def _answered(self, pending: Pending, body: bytes) -> web.StreamResponse:
        """The reply to a request that the plan is about."""
        key = jsonrpc.key(pending.request["id"])
        try:
            found = await self._sent(body, None if pending.sent is pending.request else pending.sent)
            if _is_stream(found):
                return await self._streamed(found, pending.request)
            told = self._calls.relayed(await self._upstream.whole(found, self._budget))
        except UpstreamError as error:
            failed = self._calls.lose(key, str(error))
            return web.json_response(failed, status=error.status, dumps=jsonrpc.text)
        self._calls.lose(key, f"the server answered {found.status} without a result")
        await self._notices()
        return web.Response(status=found.status, headers=reply_headers(found.headers), body=told)

    async def _sent(self, body: bytes, changed: Message | None = None) -> aiohttp.ClientResponse:
        """The server's reply to the request, or to another message in its place."""
        headers = request_headers(self._request.headers)
        headers["Accept-Encoding"] = "identity"
        if changed is None:
            return await self._upstream.ask(self._request.method, self._path, headers, body)
        if "Mcp-Method" in headers:  # revision 2026-07-28 says these beside the body
            headers["Mcp-Method"] = changed["method"]
            headers.popall("Mcp-Name", None)
            if changed["method"] == "tools/call":
                headers["Mcp-Name"] = _header(jsonrpc.params(changed)["name"])
        return await self._upstream.ask("POST", self._path, headers, jsonrpc.text(changed).encode())

    async def _ask(self, question: Message) -> Message:
        """The answer to a question of the door's own, asked in the client's name."""
        try:
            found = await self._sent(b"", question)
            try:
                async for data in self._said(found):
                    message = jsonrpc.read(data)
                    if message is not None and message.get("id") == question["id"]:
                        return message
            finally:
                found.close()
        except UpstreamError as error:  # the client's own request meets the same
            return jsonrpc.failure(question, str(error))
        return jsonrpc.failure(question, "no answer")

    async def _said(self, found: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """The messages of a reply, within the budget of the exchange."""
        if not _is_stream(found):
            yield await self._upstream.whole(found, self._budget)
            return
        pieces = (self._budget.take(piece) async for piece in self._upstream.pieces(found))
        async for block in _blocks(pieces):
            yield _data(block)

    async def _streamed(self, found: aiohttp.ClientResponse, message: Message | None) -> web.StreamResponse:
        """The server's reply as it comes; what breaks off breaks off here too."""
        response = web.StreamResponse(status=found.status, headers=reply_headers(found.headers))
        subscription = message.get("id") if message is not None and jsonrpc.wants_changes(message) else None
        pieces = self._upstream.pieces(found)
        if _is_stream(found):
            pieces = (self._event(block) async for block in _blocks(pieces))
            if self._request.method == "GET" or subscription is not None:
                self._client.streams[response] = subscription
        try:
            await response.prepare(self._request)
            async for piece in pieces:
                await response.write(piece)
                await self._notices(response)
            await response.write_eof()
        except UpstreamError:
            broken_off(self._request)
        finally:
            self._client.streams.pop(response, None)
            found.close()
        return response

    def _event(self, block: bytes) -> bytes:
        """An event of the server's as the client gets it: an answer in it may be another one."""
        if len(block) > jsonrpc.MOST:
            failed = self._calls.too_long(block)
            return b"" if failed is None else _event(failed)
        data = _data(block)
        told = self._calls.relayed(data)
        if told is data:
            return block
        lines = [line for line in block.splitlines() if line and not line.startswith(b"data:")]
        return b"\n".join((*lines, b"data: " + told, b"", b""))

    async def _notices(self, here: web.StreamResponse | None = None) -> None:
        """Tells the client that its tools are others: wherever it listens, else in the stream `here`."""
        if self._calls.changed:
            self._calls.changed = False
            # Since revision 2026-07-28 a client hears only what it has subscribed to.
            streams = dict(self._client.streams)
            if not streams and here is not None and "Mcp-Method" not in self._request.headers:
                streams[here] = None
            for stream, subscription in streams.items():
                with suppress(ConnectionError):  # who has gone is told nothing
                    await stream.write(_event(jsonrpc.changed(subscription)))


async def _blocks(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The events of a stream, each with its end, byte by byte as the server wrote them; of one above the
    limit its beginning."""
    rest = bytearray()
    async for piece in pieces:
        start = max(0, len(rest) - 3)
        rest += piece
        while (end := _BLOCK.search(rest, start)) is not None:
            if end.end() == len(rest) and rest.endswith(b"\r"):  # its LF may come with the next piece
                break
            yield bytes(rest[: end.end()])
            del rest[: end.end()]
            start = 0
        del rest[jsonrpc.MOST + 1 : -3]  # its end is still looked for
    if rest:
        yield bytes(rest)


def _data(block: bytes) -> bytes:
    """What an event says."""
    return b"\n".join(line[5:].removeprefix(b" ") for line in block.splitlines() if line.startswith(b"data:"))


def _is_stream(found: aiohttp.ClientResponse) -> bool:
    return found.headers.get("Content-Type", "").partition(";")[0].strip().lower() == "text/event-stream"


def _event(message: Message) -> bytes:
    return b"event: message\ndata: " + jsonrpc.text(message).encode() + b"\n\n"


def _header(name: str) -> str:
    """A tool's name as a header says it: in base64 where it could not be read back."""
    if _SAFE.fullmatch(name) and not name.startswith("=?base64?"):
        return name
    return f"=?base64?{base64.b64encode(name.encode('utf-8', 'replace')).decode()}?="
