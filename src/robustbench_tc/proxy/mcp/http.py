"""The MCP door between a port of this machine and a server's address: streamable HTTP, both ways.

What the plan is about is decided by the request, never by the type of the reply. Streams pass as they are,
event ids, `retry` and empty events among them; of an event that answers an open request only the data is
another one, whichever of the client's streams it comes in.
"""

import base64
import re
import time
from contextlib import closing, suppress
from functools import partial

import aiohttp
from aiohttp import web

from ..plan import Refused, Session
from ..relay import (
    OURS,
    SILENCE_S,
    THEIRS,
    Budget,
    Relay,
    UpstreamError,
    broken_off,
    passed,
    secrets_of,
    session_of,
)
from ..sse import MOST, Parts, event_data
from . import wire
from .calls import Calls, Door, Pending
from .wire import Message

SESSION = "Mcp-Session-Id"
_STREAM = "text/event-stream"
_SAFE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
"""A tool's name that a header says as it is; another in base64, since it could not be read back."""


class Http(Relay):
    """Relays to one server. One instance serves many clients: told apart by the session that the server gives
    each, else by the one that the path or a header names."""

    def __init__(self, address: str, door: Door, *, place: str = "mcp", silence_s: float = SILENCE_S) -> None:
        """Raises UserError for no address."""
        super().__init__(address, silence_s=silence_s, option="--mcp-url")
        self.place, self._door = place, door
        self._clients: dict[Session | str | None, Calls] = {}

    async def close(self) -> None:
        await super().close()
        for calls in self._clients.values():
            calls.close()

    async def exchange(self, request: web.Request, name: str | None, path: str) -> web.StreamResponse:
        body = await request.read()
        message, (behind, mark, query) = wire.parse_message(body), path.partition("?")
        try:
            if behind.strip("/"):
                raise Refused(f"the address is …/{self.place}, or …/s/<case>.<repeat>/{self.place}", 404)
            session = session_of(name, self._door.plan, f"address …/s/<case>.<repeat>/{self.place}")
            if self._door.idle:
                return await self.passed_on(request, mark + query, body)
            calls = self._client(request, session, message)
            return await _Exchange(self, calls, request, mark + query).run(message, body)
        except Refused as error:
            failed = wire.failure(message.get("id"), f"rbtc proxy: {error}")
            return web.json_response(failed, status=error.status, dumps=wire.text)

    def _client(self, request: web.Request, session: Session | None, message: Message) -> Calls:
        theirs = request.headers.get(SESSION)
        key = theirs if theirs in self._clients else session
        calls = self._clients.get(key)
        if calls is None or calls.over(message):
            # Another client under the same name, or under none, may still be at work.
            if calls is not None and [*self._clients.values()].count(calls) == 1:
                calls.close()
            calls = self._clients[key] = Calls(self._door, session, self.secrets, message)
        if request.method == "DELETE":
            self._clients.pop(key).close()
        return calls

    def knows(self, theirs: str | None, calls: Calls) -> None:
        """The session that the server has given a client."""
        if theirs is not None:
            self._clients.setdefault(theirs, calls)


class _Exchange:
    """One request of a client's, and the reply to it."""

    def __init__(self, relay: Http, calls: Calls, request: web.Request, path: str) -> None:
        self._relay, self._calls = relay, calls
        self._request, self._path = request, path
        self._budget = Budget(MOST)
        calls.secrets |= secrets_of(request.headers, request.rel_url.raw_query_string)

    async def run(self, message: Message, body: bytes) -> web.StreamResponse:
        """The reply. Raises UpstreamError where the server gives none."""
        if not self._calls.looks_at(message):
            self._calls.lose(wire.cancelled(message), "cancelled by the client")
            found = await self._sent(body)
            if found.content_type == _STREAM:
                return await self._streamed(found, message)
            return await self._relay.sent_back(self._request, found)
        step = await self._calls.prepared(message, self._ask)
        if not isinstance(step, Pending):
            await self._calls.tell()
            return web.json_response(step, dumps=wire.text)
        key = wire.key(message["id"])
        try:
            found = await self._sent(body, None if step.request is message else step.request)
            if found.content_type == _STREAM:
                return await self._streamed(found, message)
            told = self._calls.relayed(await self._relay.whole(found, self._budget))
        except UpstreamError as error:
            self._calls.lose(key, str(error))
            raise
        finally:
            step.left = time.time()  # where it is still open, another stream may bring its answer
        self._calls.lose(key, f"the server answered {found.status} without a result")
        await self._calls.tell()
        return web.Response(status=found.status, headers=passed(found.headers, THEIRS), body=told)

    async def _sent(self, body: bytes, changed: Message | None = None) -> aiohttp.ClientResponse:
        """The server's reply to the request, or to another message in its place."""
        headers = passed(self._request.headers, OURS)
        headers["Accept-Encoding"] = "identity"
        if changed is None:
            found = await self._relay.ask(self._request.method, self._path, headers, body)
            if self._request.method != "DELETE":
                self._relay.knows(found.headers.get(SESSION), self._calls)
            return found
        if "Mcp-Method" in headers:  # revision 2026-07-28 says these beside the body
            headers["Mcp-Method"] = changed["method"]
            headers.popall("Mcp-Name", None)
            if changed["method"] == "tools/call":
                name = changed["params"]["name"]
                if not _SAFE.fullmatch(name) or name.startswith("=?base64?"):
                    name = f"=?base64?{base64.b64encode(name.encode('utf-8', 'replace')).decode()}?="
                headers["Mcp-Name"] = name
        return await self._relay.ask("POST", self._path, headers, wire.text(changed).encode())

    async def _ask(self, question: Message) -> Message:
        """The answer to a question of the door's own, asked in the client's name."""
        # Where there is none, the client's own request meets the same.
        with suppress(UpstreamError), closing(await self._sent(b"", question)) as found:
            if found.content_type != _STREAM:
                return wire.parse_message(await self._relay.whole(found, self._budget))
            async for event in Parts(partial(self._relay.piece, found, self._budget)):
                message = wire.parse_message(event_data(event))
                if message.get("id") == question["id"]:
                    return message
        return {}

    async def _streamed(self, found: aiohttp.ClientResponse, message: Message) -> web.StreamResponse:
        """The server's stream as it comes; what breaks off breaks off here too."""
        response = web.StreamResponse(status=found.status, headers=passed(found.headers, THEIRS))
        if self._request.method == "GET" or wire.wants_changes(message):
            notice = _event(wire.changed(message.get("id")))
            self._calls.listening[response] = partial(response.write, notice)
        # Since revision 2026-07-28 a client hears only what it has subscribed to.
        subscribes = "Mcp-Method" in self._request.headers
        here = None if subscribes else partial(response.write, _event(wire.changed()))
        try:
            await response.prepare(self._request)
            async for event in Parts(partial(self._relay.piece, found)):
                await response.write(self._relayed(event))
                await self._calls.tell(here)
        except UpstreamError as error:
            broken_off(self._request, error)
        finally:
            self._calls.listening.pop(response, None)
            found.close()
        return response

    def _relayed(self, event: bytes) -> bytes:
        """An event of the server's as the client gets it: an answer in it may be another one."""
        if len(event) > MOST:
            failed = self._calls.too_long(event)
            return b"" if failed is None else _event(failed)
        data = event_data(event)
        told = self._calls.relayed(data)
        if told is data:
            return event
        lines = [line for line in event.splitlines() if line and not line.startswith(b"data:")]
        return b"\n".join((*lines, b"data: " + told, b"", b""))


def _event(message: Message) -> bytes:
    return b"event: message\ndata: " + wire.text(message).encode() + b"\n\n"
