"""One exchange: a request of the agent's until its reply has gone out, whole or in pieces.

A reply whose calls all mean to the agent what the model wrote passes as it comes, byte by byte; else its
calls are rewritten, and those that are not for the agent are answered here.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from aiohttp import ClientResponse, web
from msgspec.structs import replace

from robustbench_tc import schema
from robustbench_tc.eval.defend import chain as defences
from robustbench_tc.eval.record import Answer
from robustbench_tc.schema import Json

from . import chat
from .chat import Split
from .dialect import ChatCompletions, ChatStream, Said
from .journal import LEFT, Kept, Replaced
from .plan import Refused, Session
from .relay import broken_off, error_of
from .responses import Responses, ResponsesStream
from .rewrite import NotTheCase, name_of, offer, text_of
from .scenes import TOOLS_UNREAD, Scene, loaded, tool_of
from .sse import END, MOST, Parts, event_data, event_of
from .upstream import Budget, UpstreamError, reply_headers, request_headers

if TYPE_CHECKING:
    from .door import Door

Dialect: TypeAlias = ChatCompletions | Responses

ASKED_AGAIN = 3
"""How often the door answers a reply of calls that do not go out, and asks on."""

_UNSAID = (schema.Message("user", ""),)
"""In a row whose tools alone matter."""

_DUPLICATES = re.compile(r"unique|duplicat|already (?:exists|defined)|more than once", re.IGNORECASE)


class Handling:
    """One request of the agent's, until its reply has gone out."""

    def __init__(
        self, door: "Door", dialect: Dialect, request: web.Request, session: Session, path: str, raw: bytes
    ) -> None:
        """Raises Refused."""
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise Refused("a compressed body is not supported: send it as it is")
        body = loaded(raw)
        if not isinstance(body, dict):
            raise Refused("the body has to be a JSON object")
        if not isinstance(body.get("tools") or [], list):
            raise Refused("'tools' has to be a list")
        self.door, self.dialect, self.request, self.session = door, dialect, request, session
        self.path, self.raw, self.body = path, raw, dialect.read(body)
        self.number = door.journal.number(str(session))
        self.budget = Budget(MOST)
        self.replies: list[Json] = []
        self.held: list[Json] = []
        self.replaced: list[Replaced] = []
        self.spared: list[Replaced] = []
        self.usage: dict[str, int] = {}
        self.kept: tuple[bytes, Kept | None] | None = None
        self._noted = False
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
        self._defence = self._asking()

    def _asking(self) -> defences.Asking | None:
        """The defences at work, where one of them may answer the reply and ask on; else None."""
        chain, flat = self.scene.defences, self.dialect.flat
        asks = [one.code for one in chain if one.requests]
        if not asks or self.scene.skipped == TOOLS_UNREAD:
            return None
        if flat and self.body.get("stream") is True:
            raise Refused(f"--defend {asks[0]} looks at whole replies: ask without 'stream' here")
        # Each sees the tools as those before it leave them.
        offered = offer(self.body.get("tools") or (), self.scene._replace(defences=()), flat=flat)
        functions = [raw for raw in offered.entries if name_of(raw, flat) is not None]
        tools = tuple(tool_of(raw if flat else raw["function"]) for raw in functions)
        row = replace(self.scene.row, messages=_UNSAID, tools=tools, injected_error=None)
        asking = defences.reply(chain, defences.Scene(row, row, (), lambda row, answer: _calls(answer)))
        next(asking)  # the request that the model is asked anyway
        return asking

    async def run(self) -> web.StreamResponse:
        """The reply to the agent; the journal has its line in any case."""
        status, said = 200, None
        try:
            reply = await self._reply()
            status = reply.status
            if status >= 400 and isinstance(reply, web.Response) and isinstance(reply.body, bytes):
                said = error_of(loaded(reply.body)) or None
            return reply
        except UpstreamError as error:
            status, said = error.status, str(error)
            self.door.say_once(said, f"a request failed: {said}")
            raise
        except asyncio.CancelledError:
            status, said = LEFT, "the agent left before its reply was whole"
            raise
        finally:
            self._note(status, said)

    def _note(self, status: int, said: str | None) -> None:
        """The journal's line, once."""
        if self._noted:
            return
        self._noted = True
        key, kept = self.kept or (None, None)
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
            key=None if key is None else key.hex(),
            kept=kept,
            status=status,
            error=said,
        )

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
        written = self.dialect.write(self.body, messages)
        if tools is not None:
            written["tools"] = tools
        if isinstance(choice := written.get("tool_choice"), dict):
            written["tool_choice"] = offered.chosen(choice)
        return json.dumps(written).encode()

    async def _ask(self) -> ClientResponse:
        headers = request_headers(self.request.headers)
        headers["Accept-Encoding"] = "identity"
        found = await self.door.upstream.ask("POST", self.path, headers, self._asked())
        if found.headers.get("Content-Encoding", "identity") != "identity":
            found.close()
            raise UpstreamError("the server compresses its replies although it was asked not to")
        return found

    # The reply

    async def _reply(self) -> web.StreamResponse:
        """The reply, whole or in pieces, as the server sends it."""
        if self.asked.offer.is_plain and self._defence is None:
            return await self._as_it_comes()
        found = await self._ask()
        if _is_stream(found):
            return await self._rewritten(found)
        body = await self.door.upstream.whole(found, self.budget)
        said = error_of(loaded(body)) or body[:2000].decode(errors="replace")
        refused = found.status in (400, 422) and _DUPLICATES.search(said) is not None
        if refused and self.asked.offer.repeats_names:
            self.door.refuses_duplicates = True
            self.begin()
            if not self.asked.offer.repeats_names:  # else the agent itself sends two of one name
                return await self._reply()
        return await self._rewritten(found, body)

    async def _as_it_comes(self) -> web.StreamResponse:
        """The reply as it is, read all the same for the journal."""
        kept = bytearray()
        reply = await self.door.passed_on(self.request, self.path, self._asked(), kept)
        said = self.dialect.said(loaded(bytes(kept)))
        if said is None:
            stream = self.dialect.stream(self.asked.offer)
            for event in END.split(kept):
                list(stream.feed(loaded(event_data(event))))
            said = stream.said()
        if said is not None:
            self._taken(said, ASKED_AGAIN)
        return reply

    async def _rewritten(self, found: ClientResponse, body: bytes = b"") -> web.StreamResponse:
        """The reply in the agent's names, one after the other until one goes out. `body`: of one that comes
        whole, also an error, or that of a server that knows no streams."""
        out: web.StreamResponse | None = None
        split: Split | None = None
        stream = self.dialect.stream(self.asked.offer)
        try:
            for again in range(ASKED_AGAIN + 1):
                if _is_stream(found):
                    if out is None:
                        out = web.StreamResponse(headers=reply_headers(found.headers))
                        await out.prepare(self.request)
                    await self._pieces(found, stream, out)
                    said = stream.said()
                else:
                    body = body or await self.door.upstream.whole(found, self.budget)
                    said = self.dialect.said(loaded(body)) if found.status == 200 and out is None else None
                if said is None or (split := self._taken(said, again)) is not None:
                    break
                stream.again()
                found, body = await self._ask(), b""
            if out is None:
                return self._whole(found, body, split)
            if split is None:
                raise UpstreamError(error_of(loaded(body)) or "the server's stream ended before its reply")
            self._note(200, None)  # before the agent has the whole: its next request may meet another door
            for chunk in stream.end(split, self.usage if len(self.replies) > 1 else {}):
                await out.write(event_of(chunk))
            await out.write(self.dialect.done)
            await out.write_eof()
        except UpstreamError:
            if out is None:
                raise
            broken_off(self.request)  # a stream that has begun can only end
        return out

    def _whole(self, found: ClientResponse, body: bytes, split: Split | None) -> web.Response:
        headers = reply_headers(found.headers)
        if split is None or (not split.changed and not self.asked.messages[self.began :]):
            return web.Response(status=found.status, headers=headers, body=body)
        parsed = self.dialect.reply(loaded(body), split)
        if isinstance(parsed.get("usage"), dict):
            parsed["usage"] = {**parsed["usage"], **self.usage}
        return web.Response(headers=headers, body=json.dumps(parsed).encode())

    async def _pieces(
        self, found: ClientResponse, stream: ChatStream | ResponsesStream, out: web.StreamResponse
    ) -> None:
        """Passes on what of a reply goes out before its end; an event that is not changed as it came."""
        try:
            async for event in Parts(partial(self.door.upstream.piece, found, self.budget)):
                said = event_data(event)
                value = loaded(said)
                if not said:
                    await out.write(event)
                for chunk in () if said.strip() == b"[DONE]" else stream.feed(value):
                    await out.write(event if chunk == value else event_of(chunk))
        finally:
            found.release() if found.content.at_eof() else found.close()

    def _taken(self, said: Said, again: int) -> Split | None:
        """Notes a reply; it taken apart, where it goes out, else the door has answered it."""
        found = chat.split(said.message, self.asked.offer)
        if again < ASKED_AGAIN and (results := self._answered(found)) is not None:
            self.asked.refused |= {len(self.asked.messages)}
            self.asked.messages.append(found.reply)
            for call, text in zip(chat.calls_of(found.reply), results, strict=True):
                self.held.append({"id": call.id, "name": call.name, "answer": text})
                self.asked.messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
            return None
        self.replies.append(
            {
                "text": text_of(found.reply.get("content")),
                "tool_calls": [
                    {**call._asdict(), "name": self.asked.offer.in_row.get(call.name, call.name)}
                    for call in chat.calls_of(found.reply)
                ]
                or None,
                "finish_reason": said.finish if isinstance(said.finish, str) else None,
            }
        )
        self.held += found.held
        for name, number in said.usage.items() if isinstance(said.usage, dict) else ():
            if isinstance(number, int) and not isinstance(number, bool):
                self.usage[name] = self.usage.get(name, 0) + number
        # With nothing for the agent to do, or to read, the door answers.
        if found.sent or not found.held or again == ASKED_AGAIN:
            self.kept = chat.keep(self.door.held, self.asked, self.began, found)
            return found
        self.asked.messages += [found.reply, *found.answers]
        return None

    def _answered(self, found: Split) -> Sequence[str] | None:
        """What a defence answers the calls of a reply with, before it asks on; None: the reply goes on."""
        calls = [call._asdict() for call in chat.calls_of(found.reply)]
        if self._defence is None or not calls:
            return None
        try:
            request = self._defence.send(
                Answer(id=self.scene.row.id, repeat=0, number=1, status="ok", tool_calls=calls)
            )
        except StopIteration:
            self._defence = None
            return None
        return request.turns[-1].results


def _calls(answer: Answer) -> tuple[schema.Call, ...]:
    given = ((one["name"], loaded(one["arguments"])) for one in answer.tool_calls or ())
    return tuple(schema.Call(name, said if isinstance(said, dict) else {}) for name, said in given)


def _is_stream(found: ClientResponse) -> bool:
    return found.status == 200 and found.content_type == "text/event-stream"
