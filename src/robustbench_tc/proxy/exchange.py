"""One exchange: a request of the agent's until its reply has gone out, whole or in pieces."""

import asyncio
import json
import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from aiohttp import ClientResponse, web

from robustbench_tc.schema import Json

from . import chat, sse
from .chat import Chat, Split
from .dialect import ChatCompletions
from .head import text_of
from .held import Kept
from .journal import Replaced
from .offer import NotTheCase
from .relay import broken_off, error_of
from .responses import Responses
from .responses_stream import ResponsesStream
from .scene import Scene, loaded
from .session import Refused, Session
from .stream import ChatStream
from .upstream import Budget, UpstreamError, reply_headers, request_headers
from .usage import counted

if TYPE_CHECKING:
    from .door import Door

Dialect: TypeAlias = ChatCompletions | Responses
Stream: TypeAlias = ChatStream | ResponsesStream

ASKED_AGAIN = 3
"""How often the door answers a reply of calls that do not go out, and asks on."""

_DUPLICATES = re.compile(r"unique|duplicat|already (?:exists|defined)|more than once", re.IGNORECASE)


class _Reply(NamedTuple):
    """A whole reply of the server's."""

    found: ClientResponse
    body: bytes
    parsed: Json


class Handling:
    """One request of the agent's, until its reply has gone out."""

    def __init__(
        self, door: "Door", dialect: Dialect, request: web.Request, session: Session, path: str, raw: bytes
    ) -> None:
        """Raises Refused."""
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise Refused("a compressed body is not supported: send it as it is")
        self.door = door
        self.dialect = dialect
        self.request = request
        self.session = session
        self.path = path
        self.raw = raw
        body = loaded(raw)
        if not isinstance(body, dict):
            raise Refused("the body has to be a JSON object")
        if not isinstance(body.get("tools") or [], list):
            raise Refused("'tools' has to be a list")
        self.body = dialect.read(body)
        self.number = door.journal.number(str(session))
        self.budget = Budget(sse.MOST)
        self.replies: list[Json] = []
        self.held: list[Json] = []
        self.replaced: list[Replaced] = []
        self.spared: list[Replaced] = []
        self.usage: dict[str, int] = {}
        self._noted = False
        self.kept: tuple[bytes, Kept | None] | None = None
        self.begin()

    def begin(self) -> None:
        """The conversation of the session's scenes; of the request as it came, where that is not about its
        case. Raises Refused."""
        door, flat = self.door, self.dialect.flat

        def asked_of(scenes: Sequence[Scene]) -> chat.Conversation:
            return chat.conversation(self.body, scenes, self.session, door.plan, door.held, flat=flat)

        try:
            asked = asked_of(door.scenes_of(self.session, self.body, flat))
        except NotTheCase as error:
            asked = asked_of(door.scenes_of(self.session, self.body, flat, str(error)))
        self.asked, self.scene = asked, asked.scene
        self.began, self.turn = len(asked.messages), asked.turn

    async def run(self) -> web.StreamResponse:
        """The reply to the agent; the journal has its line in any case."""
        status, said = 200, None
        try:
            asked = self._asked()
            if asked == self.raw:
                reply = await self._untouched()
            else:
                reply = await self._changed(asked)
            status = reply.status
            if status >= 400 and isinstance(reply, web.Response) and isinstance(reply.body, bytes):
                said = error_of(loaded(reply.body)) or None
            return reply
        except UpstreamError as error:
            status, said = error.status, str(error)
            self.door.hints.once(said, f"a request failed: {said} (said once)")
            raise
        except asyncio.CancelledError:
            status, said = 499, "the agent left before its reply was whole"
            raise
        finally:
            self._note(status, said)

    def _note(self, status: int, said: str | None) -> None:
        """The journal's line, once."""
        if self._noted:
            return
        self._noted = True
        if self.scene.skipped is not None:
            self.door.hints.skipped(self.session, self.scene.skipped)
        self.door.hints.status(status)
        self.door.note(
            self.request,
            self.session,
            number=self.number,
            model=model if isinstance(model := self.body.get("model"), str) else None,
            type=self.scene.code,
            row=self.scene.row.id if self.door.plan.bench and not self.scene.skipped else None,
            skipped=self.scene.skipped,
            turn=self.turn,
            replaced=tuple(self.replaced),
            spared=tuple(self.spared),
            replies=tuple(self.replies),
            held=tuple(self.held),
            key=None if self.kept is None else self.kept[0].hex(),
            kept=None if self.kept is None else self.kept[1],
            status=status,
            error=said,
        )

    async def _untouched(self) -> web.StreamResponse:
        """Request and reply as they are; the journal gets the reply all the same."""
        kept = bytearray()
        reply = await self.door.passed_on(self.request, self.path, self.raw, kept)
        said = self.dialect.said(loaded(bytes(kept)))
        if said is not None:
            self._taken(chat.split(said.message, self.asked.offer), said.finish, ASKED_AGAIN)
            return reply
        stream = self.dialect.stream(self.asked.offer, None)
        for event in sse.END.split(kept):
            list(stream.feed(loaded(sse.data(event))))
        if stream.finish is not None:
            self._taken(stream.split(), stream.finish, ASKED_AGAIN)
        return reply

    # Asking

    def _asked(self) -> bytes:
        """The request as the model gets it."""
        messages, replaced, spared = self.asked.faulted(self.door.plan, self.session)
        self.replaced += [one for one in replaced if one not in self.replaced]
        self.spared += [one for one in spared if one not in self.spared]
        offered = self.asked.offer
        tools = offered.entries if offered.entries or self.body.get("tools") is not None else None
        if messages == self.body["messages"] and tools == self.body.get("tools") and offered.is_plain:
            return self.raw
        return json.dumps(self.dialect.write(self.body, messages, tools, offered)).encode()

    async def _ask(self, body: bytes | None = None) -> ClientResponse:
        headers = request_headers(self.request.headers)
        headers["Accept-Encoding"] = "identity"
        found = await self.door.upstream.ask("POST", self.path, headers, body or self._asked())
        if found.headers.get("Content-Encoding", "identity") != "identity":
            found.close()
            raise UpstreamError("the server compresses its replies although it was asked not to")
        return found

    async def _read(self, found: ClientResponse) -> _Reply:
        body = await self.door.upstream.whole(found, self.budget)
        return _Reply(found, body, loaded(body))

    async def _changed(self, asked: bytes | None) -> web.StreamResponse:
        """The reply to a request that is not the agent's own: in pieces, where it wants that."""
        for _ in range(2):
            found = await self._ask(asked)
            if self.body.get("stream") is True and _is_stream(found):
                return await self._play(found)
            reply = await self._read(found)
            said = error_of(reply.parsed) or reply.body[:2000].decode(errors="replace")
            refused = found.status in (400, 422) and _DUPLICATES.search(said)
            if not refused or not self.asked.offer.repeats_names:
                break
            self.door.refuses_duplicates, asked = True, None
            self.begin()
        return await self._whole(reply)  # also an error, or that of a server that knows no streams

    def _taken(self, found: Split, finish: Json, again: int) -> bool:
        """Notes a reply. Whether it goes out; else the door has answered it."""
        self.replies.append(
            {
                "text": text_of(found.reply.get("content")),
                "tool_calls": [call._asdict() for call in chat.calls_of(found.reply)] or None,
                "finish_reason": finish if isinstance(finish, str) else None,
            }
        )
        self.held += found.held
        # With nothing for the agent to do, or to read, the door answers.
        if found.sent or not found.held or again == ASKED_AGAIN:
            self.kept = chat.keep(self.door.held, self.asked, self.began, found)
            return True
        self.asked.messages += [found.reply, *found.answers]
        return False

    # A whole reply

    async def _whole(self, reply: _Reply) -> web.StreamResponse:
        for again in range(ASKED_AGAIN + 1):
            said = self.dialect.said(reply.parsed)
            if reply.found.status != 200 or said is None:
                return _as_it_is(reply)
            found = chat.split(said.message, self.asked.offer)
            self.usage = counted(self.dialect.usage, self.usage, reply.parsed.get("usage"))
            if self._taken(found, said.finish, again):
                break
            reply = await self._read(await self._ask())
        if not found.changed and not self.asked.messages[self.began :]:
            return _as_it_is(reply)
        parsed = self.dialect.reply(reply.parsed, found)
        if isinstance(parsed.get("usage"), dict):
            parsed["usage"] = {**parsed["usage"], **self.usage}
        body = json.dumps(parsed).encode()
        return web.Response(status=200, headers=reply_headers(reply.found.headers), body=body)

    # A reply in pieces

    async def _play(self, found: ClientResponse) -> web.StreamResponse:
        out = web.StreamResponse(status=200, headers=reply_headers(found.headers))
        await out.prepare(self.request)
        try:
            end = await self._replies(found, out)
        except UpstreamError as error:
            await out.write(self.dialect.failure(f"rbtc proxy: {error}"))
            broken_off(self.request)
            return out
        self._note(200, None)  # before the agent has the whole: its next request may meet another door
        for chunk in end:
            await out.write(self.dialect.written(chunk))
        await out.write(self.dialect.done)
        await out.write_eof()
        return out

    async def _replies(self, found: ClientResponse, out: web.StreamResponse) -> list[Chat]:
        """Passes on one reply after the other until one goes out; its end. Raises UpstreamError."""
        stream: Stream | None = None
        for again in range(ASKED_AGAIN + 1):
            stream = self.dialect.stream(self.asked.offer, stream)
            await self._pieces(found, stream, out)
            if stream.finish is None:
                raise UpstreamError(error_of(stream.failed) or "the server's stream ended before its reply")
            split = stream.split()
            for chunk in stream.rest():
                await out.write(self.dialect.written(chunk))
            if self._taken(split, stream.finish, again):
                break
            found = await self._ask()
            if not _is_stream(found):
                reply = await self._read(found)
                raise UpstreamError(error_of(reply.parsed) or f"the server answered {reply.found.status}")
        assert stream is not None
        return list(stream.end(calls=bool(split.sent)))

    async def _pieces(self, found: ClientResponse, stream: Stream, out: web.StreamResponse) -> None:
        """Passes on a reply of the server's but for its end."""
        try:
            async for event in sse.Parts(partial(self.door.upstream.piece, found, self.budget)):
                said = sse.data(event)
                if not said:
                    await out.write(b": \n\n")
                elif said.strip() != b"[DONE]":
                    for chunk in stream.feed(loaded(said)):
                        await out.write(self.dialect.written(chunk))
        finally:
            found.release() if found.content.at_eof() else found.close()


def _is_stream(found: ClientResponse) -> bool:
    return found.status == 200 and found.content_type == "text/event-stream"


def _as_it_is(reply: _Reply) -> web.Response:
    headers = reply_headers(reply.found.headers)
    return web.Response(status=reply.found.status, headers=headers, body=reply.body)
