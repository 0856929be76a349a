"""The MCP door between a port of this machine and a server's address: streamable HTTP, both ways."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from robustbench_tc.schema import Json

from .. import session as sessions
from ..relay import SILENCE_S, Refused, Relay, broken_off
from ..session import Session
from ..upstream import UpstreamError, reply_headers, request_headers
from . import jsonrpc
from .calls import Calls
from .jsonrpc import Message

_PATH = re.compile(r"(?:/s/([^/]+))?/mcp/?")
_BLOCK = re.compile(rb"(?:\r\n|\r(?!\n)|\n)(?:\r\n|\r(?!\n)|\n)")
_DATA = re.compile(rb"^data:(?: )?(.*)$", re.MULTILINE)

_SAFE = re.compile(r"[!-~](?:[ -~]*[!-~])?")

NO_SESSION = "-.0"


class Http(Relay):
    """Relays to one server. One instance serves many sessions, by path or header."""

    def __init__(
        self, address: str, calls: Callable[[Session], Calls], *, needed: bool, silence_s: float = SILENCE_S
    ) -> None:
        """`needed`: whether requests have to name their session. Raises UserError for no address."""
        super().__init__(address, silence_s=silence_s)
        self._make, self._needed = calls, needed
        self._sessions: dict[str, Calls] = {}
        self._streams: dict[str, list[_Stream]] = {}
        """Session → replies that stay open for what the server has to say."""

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
        if name is None and self._needed and request.method == "POST":
            raise Refused(
                "this plan needs to know the session: use the address …/s/<case>.<repeat>/mcp, or the header "
                f"{sessions.HEADER}"
            )
        session = sessions.parse(NO_SESSION if name is None else name)
        key = str(session)
        calls = self._sessions.get(key)
        if calls is None:
            calls = self._sessions[key] = self._make(session)
        message = jsonrpc.read(body) if body else None
        handling = _Handling(self, request, path, self._streams.setdefault(key, []))
        if message is not None and calls.answers(message):
            return await handling.answered(calls, message)
        if calls.plan.idle:
            return await self.passed_on(request, path, body)
        return await handling.passed(message, body)


class _Stream:
    """A reply that is a stream of events, with what the door puts between them."""

    def __init__(self, response: web.StreamResponse, subscription: Json = None) -> None:
        self.response, self.subscription = response, subscription
        self.lock = asyncio.Lock()

    async def send(self, block: bytes) -> None:
        async with self.lock:
            await self.response.write(block)


class _Handling:
    """One request of the client's."""

    def __init__(self, door: Http, request: web.Request, path: str, streams: list[_Stream]) -> None:
        self._door, self._request, self._path = door, request, path
        self._streams = streams
        self._headers = request_headers(request.headers)
        self._headers.popall("Accept-Encoding", None)
        self._reply: CIMultiDict[str] | None = None
        """Headers of the server's first reply, for ours."""
        self._status = 200
        self._out: _Stream | None = None

    async def answered(self, calls: Calls, request: Message) -> web.StreamResponse:
        """A request that the plan is about. The server's other messages go out as they come."""
        self._headers.popall("Content-Length", None)
        try:
            answer = await calls.answer(request, self._forward, self._changed)
        except _NotJson as plain:
            return plain.response
        except UpstreamError as error:
            if self._out is None:
                raise
            answer = jsonrpc.failure(request, str(error))
        if self._out is not None:
            await self._out.send(_event(answer))
            await self._out.response.write_eof()
            return self._out.response
        headers = self._reply or CIMultiDict()
        headers.popall("Content-Type", None)
        return web.Response(
            status=self._status,
            headers=headers,
            body=jsonrpc.written(answer),
            content_type="application/json",
        )

    async def passed(self, message: Message | None, body: bytes) -> web.StreamResponse:
        """A request as it is; a stream that stays open is one that notices can go into."""
        found = await self._door.upstream.ask(self._request.method, self._path, self._headers, body)
        stream: _Stream | None = None
        try:
            response = web.StreamResponse(status=found.status, headers=reply_headers(found.headers))
            await response.prepare(self._request)
            stream = _Stream(response, *_subscription(message))
            if _is_stream(found) and (self._request.method == "GET" or stream.subscription is not None):
                self._streams.append(stream)
            pieces = self._blocks(found) if _is_stream(found) else self._door.upstream.pieces(found)
            try:
                async for piece in pieces:
                    await stream.send(piece)
            except UpstreamError:
                broken_off(self._request)
                return response
            await response.write_eof()
            return response
        finally:
            if stream in self._streams:
                self._streams.remove(stream)
            found.close()

    async def _forward(self, request: Message) -> Message:
        headers = self._headers.copy()
        if "Mcp-Method" in headers:  # revision 2026-07-28 says these beside the body
            headers["Mcp-Method"] = request["method"]
            headers.popall("Mcp-Name", None)
            if request["method"] == "tools/call":
                headers["Mcp-Name"] = _header(jsonrpc.params(request)["name"])
        body = jsonrpc.written(request)
        found = await self._door.upstream.ask("POST", self._path, headers, body)
        try:
            if self._reply is None:
                self._reply, self._status = reply_headers(found.headers), found.status
            if _is_stream(found):
                return await self._of_stream(found, request)
            whole = await self._door.upstream.whole(found, jsonrpc.MOST)
        finally:
            found.close()
        message = jsonrpc.read(whole)
        if message is None or not jsonrpc.is_response(message):
            headers = reply_headers(found.headers)
            raise _NotJson(web.Response(status=found.status, headers=headers, body=whole))
        return message

    async def _of_stream(self, found: aiohttp.ClientResponse, request: Message) -> Message:
        """The answer in a stream; what comes before it goes to the client at once."""
        async for block in self._blocks(found):
            message = jsonrpc.read(
                b"\n".join(_DATA.findall(block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")))
            )
            if message is not None and jsonrpc.is_response(message) and message["id"] == request["id"]:
                return message
            if message is not None:
                await (await self._opened()).send(block)
        raise UpstreamError(f"{self._door.address} ended its stream without an answer")

    async def _opened(self) -> _Stream:
        """Our reply as a stream."""
        if self._out is None:
            headers = self._reply.copy() if self._reply is not None else CIMultiDict()
            headers["Content-Type"] = "text/event-stream"
            response = web.StreamResponse(status=200, headers=headers)
            await response.prepare(self._request)
            self._out = _Stream(response)
        return self._out

    async def _changed(self) -> None:
        """Tells the client wherever it listens; where it does not, in the reply to this call."""
        if not self._streams and "Mcp-Method" not in self._headers:
            await (await self._opened()).send(_event(jsonrpc.changed()))
        for stream in list(self._streams):
            with suppress(ConnectionError):  # who has gone is told nothing
                await stream.send(_event(jsonrpc.changed(stream.subscription)))

    async def _blocks(self, found: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """The events of a stream, each with its end, byte by byte as the server wrote them."""
        rest = b""
        async for piece in self._door.upstream.pieces(found):
            start = max(0, len(rest) - 3)
            rest += piece
            while (end := _BLOCK.search(rest, start)) is not None:
                if end.end() == len(rest) and rest.endswith(b"\r"):  # its LF may come with the next piece
                    break
                yield rest[: end.end()]
                rest, start = rest[end.end() :], 0
            if len(rest) > jsonrpc.MOST:
                raise UpstreamError(
                    f"{self._door.address} sends an event of more than {jsonrpc.MOST:,} bytes"
                )
        if rest:
            yield rest


class _NotJson(Exception):
    """A reply of the server's that is no message: it goes to the client as it is."""

    def __init__(self, response: web.Response) -> None:
        super().__init__(response.status)
        self.response = response


def _is_stream(found: aiohttp.ClientResponse) -> bool:
    return found.headers.get("Content-Type", "").partition(";")[0].strip().lower() == "text/event-stream"


def _event(message: Message) -> bytes:
    return b"event: message\ndata: " + jsonrpc.written(message) + b"\n\n"


def _header(name: str) -> str:
    """A tool's name as a header says it: in base64 where it could not be read back."""
    if _SAFE.fullmatch(name) and not name.startswith("=?base64?"):
        return name
    return f"=?base64?{base64.b64encode(name.encode('utf-8', 'replace')).decode()}?="


def _subscription(message: Message | None) -> tuple[Json, ...]:
    """The id of a subscription to changes of the tools (since revision 2026-07-28)."""
    if message is None or message.get("method") != "subscriptions/listen":
        return ()
    wanted = jsonrpc.params(message).get("notifications")
    return (message.get("id"),) if isinstance(wanted, dict) and wanted.get("toolsListChanged") is True else ()
