"""The door for chat completions: a relay that plays a plan."""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from aiohttp import ClientResponse, web

from robustbench_tc.schema import Json, Sample, Tool

from . import chat, head, sse
from . import session as sessions
from .chat import Chat, Split
from .held import Held
from .journal import Exchange, Journal, Replaced
from .offer import NotTheCase, name_of
from .plan import Plan
from .relay import MOST_BODY, Refused, Relay, broken_off, error_of
from .scene import Scene
from .scenes import Scenes, tool_of
from .session import Session
from .stream import ChatStream
from .upstream import UpstreamError, reply_headers, request_headers

ASKED_AGAIN = 3
"""How often the door answers a reply of calls that do not go out, and asks on."""

_DUPLICATES = re.compile(r"unique|duplicat|already (?:exists|defined)|more than once", re.IGNORECASE)
NOT_EXPRESSIBLE = "not_expressible"
"""The provider refuses tools of one name."""


class Door(Relay):
    """Plays a plan. One instance serves many sessions at once."""

    def __init__(
        self,
        upstream: str,
        plan: Plan,
        *,
        rows: tuple[Sample, ...] = (),
        journal: Path | None = None,
        silence_s: float = 600.0,
    ) -> None:
        """`rows`: those of the plan's dataset. Raises UserError."""
        super().__init__(upstream, silence_s=silence_s)
        self.plan = plan
        self.scenes = Scenes(plan, rows)
        self.journal = Journal(journal)
        self.held = Held()
        self._refuses_duplicates = False

    async def close(self) -> None:
        await super().close()
        self.journal.close()

    async def exchange(
        self, request: web.Request, name: str | None, path: str, body: bytes
    ) -> web.StreamResponse:
        endpoint = path.partition("?")[0]
        if name is not None:
            session = sessions.parse(name)
        elif self.plan.at_run_time and request.method == "POST":
            raise Refused(
                "this plan plays sessions: use the base URL …/s/<case>.<repeat>/v1, or the header "
                f"{sessions.HEADER}"
            )
        else:
            session = Session("-", 0)
        if self.plan.idle or request.method != "POST" or endpoint not in ("/chat/completions", "/responses"):
            return await self.passed_on(request, path, body)
        if endpoint == "/responses":
            raise Refused("this plan plays chat completions only: use /v1/chat/completions", 404)
        return await _Exchange(self, request, session, path, body).run()

    def scene(self, session: Session, body: Chat) -> Scene:
        """What the session is played in this request."""
        said = head.texts(body["messages"])
        try:
            tools = _tools(body)
        except ValueError:
            return self.scenes.as_it_came(session, said, (), "tools_cannot_be_read")
        found = self.scenes.of(session, said, tools)
        names = [tool.name for tool in found.row.tools]
        if self._refuses_duplicates and len(set(names)) < len(names):
            return self.scenes.as_it_came(session, said, tools, NOT_EXPRESSIBLE)
        return found

    def as_it_came(self, session: Session, body: Chat, reason: str) -> Scene:
        """The request without its type, for that reason."""
        try:
            tools = _tools(body)
        except ValueError:
            tools = ()
        return self.scenes.as_it_came(session, head.texts(body["messages"]), tools, reason)

    def duplicates_are_refused(self) -> None:
        """From now on no request lists two tools of one name."""
        self._refuses_duplicates = True


def _parsed(body: bytes) -> Chat:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused("the body is not JSON") from None
    messages = found.get("messages") if isinstance(found, dict) else None
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        raise Refused("the body has no list of messages")
    tools = found.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise Refused("'tools' is no list")
    if found.get("functions"):
        raise Refused("'functions' is not played: send the tools as 'tools'")
    if found.get("n") not in (None, 1):
        raise Refused("'n' is not played: ask for one reply")
    return dict(found)


def _tools(body: Chat) -> tuple[Tool, ...]:
    functions = [raw for raw in body.get("tools") or () if name_of(raw, False) is not None]
    return tuple(tool_of(raw["function"]) for raw in functions)


class _Reply(NamedTuple):
    """A whole reply of the server's."""

    found: ClientResponse
    body: bytes
    parsed: Json


class _Exchange:
    """One request of the agent's, until its reply has gone out."""

    def __init__(self, door: Door, request: web.Request, session: Session, path: str, raw: bytes) -> None:
        self.door = door
        self.request = request
        self.session = session
        self.path = path
        self.raw = raw
        self.body = body = _parsed(raw)
        self.number = door.journal.number(str(session))
        self.replies: list[Json] = []
        self.held: list[Json] = []
        self.replaced: list[Replaced] = []
        self.spared: list[Replaced] = []
        self.usage: dict[str, int] = {}
        self.begin(door.scene(session, body))

    def begin(self, scene: Scene) -> None:
        """The conversation of a scene; of the request as it came, where that is not about its case."""
        door = self.door
        try:
            asked = chat.conversation(self.body, scene, self.session, door.held)
        except NotTheCase as error:
            scene = door.as_it_came(self.session, self.body, str(error))
            asked = chat.conversation(self.body, scene, self.session, door.held)
        self.scene, self.asked = scene, asked
        self.began, self.turn = len(asked.messages), asked.turn

    async def run(self) -> web.StreamResponse:
        """The reply to the agent; the journal has its line in any case."""
        status, said = 200, None
        try:
            if self.asked.offer.is_plain and self._asked() == self.raw:
                reply = await self._untouched()
            elif self.body.get("stream") is True:
                reply = await self._streamed()
            else:
                reply = await self._whole(await self._read(await self._ask()))
            status = reply.status
            if status >= 400 and isinstance(reply, web.Response) and isinstance(reply.body, bytes):
                said = error_of(_loaded(reply.body)) or None
            return reply
        except UpstreamError as error:
            status, said = error.status, str(error)
            raise
        finally:
            self._note(status, said)

    def _note(self, status: int, said: str | None) -> None:
        self.door.journal.write(
            Exchange(
                session=str(self.session),
                case=self.session.case,
                repeat=self.session.repeat,
                number=self.number,
                type=self.scene.code,
                row=self.scene.row.id if self.door.plan.bench and not self.scene.skipped else None,
                skipped=self.scene.skipped,
                turn=self.turn,
                replaced=tuple(self.replaced),
                spared=tuple(self.spared),
                replies=tuple(self.replies),
                held=tuple(self.held),
                status=status,
                error=said,
            )
        )

    async def _untouched(self) -> web.StreamResponse:
        """Request and reply as they are; the journal gets the reply all the same."""
        kept = bytearray()
        reply = await self.door.passed_on(self.request, self.path, self.raw, kept)
        parsed = _loaded(bytes(kept))
        message = _message(parsed)
        if message is not None:
            found, finish = chat.split(message, self.asked.offer), parsed["choices"][0].get("finish_reason")
        else:
            stream, events = ChatStream(self.asked.offer), sse.Events()
            with suppress(sse.TooLong):
                for data in (*events.feed(bytes(kept)), *events.end()):
                    list(stream.feed(_loaded(data or "")))
            if stream.finish is None:
                return reply
            found, finish = stream.split(), stream.finish
        self._taken(found, finish, ASKED_AGAIN)
        return reply

    # Asking

    def _asked(self) -> bytes:
        """The request as the model gets it."""
        messages, replaced, spared = self.asked.faulted(self.door.plan, self.session, self.scene)
        self.replaced += [one for one in replaced if one not in self.replaced]
        self.spared += [one for one in spared if one not in self.spared]
        body = {**self.body, "messages": messages}
        if self.body.get("tools") is not None or self.asked.offer.entries:
            body["tools"] = self.asked.offer.entries
        choice = body.get("tool_choice")
        if isinstance(choice, dict) and isinstance(choice.get("function"), dict):
            name = choice["function"].get("name")
            named = self.asked.offer.forward(name) if isinstance(name, str) else name
            body["tool_choice"] = {**choice, "function": {**choice["function"], "name": named}}
        if body == self.body:
            return self.raw
        return json.dumps(body).encode()

    async def _ask(self) -> ClientResponse:
        headers = request_headers(self.request.headers)
        headers["Accept-Encoding"] = "identity"
        found = await self.door.upstream.ask("POST", self.path, headers, self._asked())
        if found.headers.get("Content-Encoding", "identity") != "identity":
            found.close()
            raise UpstreamError("the server compresses its replies although it was asked not to")
        return found

    async def _read(self, found: ClientResponse) -> _Reply:
        try:
            body = await self.door.upstream.whole(found, MOST_BODY)
        finally:
            found.release() if found.content.at_eof() else found.close()
        return _Reply(found, body, _loaded(body))

    def _refuses_names(self, reply: _Reply) -> bool:
        """Whether the server refuses the request because two of its tools have one name."""
        said = error_of(reply.parsed) or reply.body[:2000].decode(errors="replace")
        return (
            self.asked.offer.repeats_names
            and reply.found.status in (400, 422)
            and bool(_DUPLICATES.search(said))
        )

    def _without_type(self) -> None:
        self.door.duplicates_are_refused()
        self.begin(self.door.as_it_came(self.session, self.body, NOT_EXPRESSIBLE))

    def _taken(self, found: Split, finish: Json, again: int) -> bool:
        """Notes a reply. Whether it goes out; else the door has answered it."""
        self.replies.append(
            {
                "text": found.reply.get("content"),
                "tool_calls": [call._asdict() for call in chat.calls_of(found.reply)] or None,
                "finish_reason": finish,
            }
        )
        self.held += found.held
        if found.goes_out or again == ASKED_AGAIN:
            chat.keep(self.door.held, self.asked, self.began, found)
            return True
        self.asked.answer_itself(found.reply, found.answers)
        return False

    # A whole reply

    async def _whole(self, reply: _Reply) -> web.StreamResponse:
        if self._refuses_names(reply):
            self._without_type()
            reply = await self._read(await self._ask())
        for again in range(ASKED_AGAIN + 1):
            message = _message(reply.parsed)
            if reply.found.status != 200 or message is None:
                return _as_it_is(reply)
            choice = reply.parsed["choices"][0]
            found = chat.split(message, self.asked.offer)
            self._count(reply.parsed.get("usage"))
            if self._taken(found, choice.get("finish_reason"), again):
                break
            reply = await self._read(await self._ask())
        if not found.changed and not self.asked.messages[self.began :]:
            return _as_it_is(reply)
        out = {**choice, "message": found.out}
        if not found.sent and choice.get("finish_reason") == "tool_calls":
            out["finish_reason"] = "stop"
        parsed = {**reply.parsed, "choices": [out]}
        if isinstance(parsed.get("usage"), dict):
            parsed["usage"] = {**parsed["usage"], **self.usage}
        body = json.dumps(parsed).encode()
        return web.Response(status=200, headers=reply_headers(reply.found.headers), body=body)

    def _count(self, usage: Json) -> None:
        for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
            number = usage.get(name) if isinstance(usage, dict) else None
            if isinstance(number, int):
                self.usage[name] = self.usage.get(name, 0) + number

    # A reply in pieces

    async def _streamed(self) -> web.StreamResponse:
        found = await self._ask()
        if _is_stream(found):
            return await self._play(found)
        reply = await self._read(found)
        if self._refuses_names(reply):
            self._without_type()
            found = await self._ask()
            if _is_stream(found):
                return await self._play(found)
            reply = await self._read(found)
        return await self._whole(reply)  # an error, or a server that knows no streams

    async def _play(self, found: ClientResponse) -> web.StreamResponse:
        out = web.StreamResponse(status=200, headers=reply_headers(found.headers))
        await out.prepare(self.request)
        try:
            end = await self._replies(found, out)
        except (UpstreamError, sse.TooLong) as error:
            await out.write(sse.written({"error": {"message": f"rbtc proxy: {error}"}}))
            broken_off(self.request)
            return out
        for chunk in end:
            await out.write(sse.written(chunk))
        await out.write(sse.DONE)
        await out.write_eof()
        return out

    async def _replies(self, found: ClientResponse, out: web.StreamResponse) -> list[Chat]:
        """Passes on one reply after the other until one goes out; its end. Raises UpstreamError."""
        stream: ChatStream | None = None
        for again in range(ASKED_AGAIN + 1):
            stream = ChatStream(self.asked.offer, stream)
            await self._pieces(found, stream, out)
            if stream.finish is None:
                raise UpstreamError(error_of(stream.failed) or "the server's stream ended before its reply")
            split = stream.split()
            for chunk in stream.rest():
                await out.write(sse.written(chunk))
            if self._taken(split, stream.finish, again):
                break
            found = await self._ask()
            if not _is_stream(found):
                reply = await self._read(found)
                raise UpstreamError(error_of(reply.parsed) or f"the server answered {reply.found.status}")
        assert stream is not None
        return list(stream.end(calls=bool(split.sent)))

    async def _pieces(self, found: ClientResponse, stream: ChatStream, out: web.StreamResponse) -> None:
        """Passes on a reply of the server's but for its end."""
        events = sse.Events()
        try:
            async for piece in self.door.upstream.pieces(found):
                for data in events.feed(piece):
                    await self._event(data, stream, out)
            for data in events.end():
                await self._event(data, stream, out)
        finally:
            found.release() if found.content.at_eof() else found.close()

    async def _event(self, data: str | None, stream: ChatStream, out: web.StreamResponse) -> None:
        if data is None:
            await out.write(b": \n\n")
        elif data.strip() != "[DONE]":
            for chunk in stream.feed(_loaded(data)):
                await out.write(sse.written(chunk))


def _loaded(text: bytes | str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _message(parsed: Json) -> Chat | None:
    """The message of a chat completion; None for anything else."""
    choices = parsed.get("choices") if isinstance(parsed, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict) or not isinstance(message.get("tool_calls") or [], list):
        return None
    return message


def _is_stream(found: ClientResponse) -> bool:
    return found.status == 200 and found.content_type == "text/event-stream"


def _as_it_is(reply: _Reply) -> web.Response:
    headers = reply_headers(reply.found.headers)
    return web.Response(status=reply.found.status, headers=headers, body=reply.body)
