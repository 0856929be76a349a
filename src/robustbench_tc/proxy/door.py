"""The LLM door: a relay that carries out a plan, request by request, on replies whole or in pieces.

A reply whose calls all mean to the agent what the model wrote passes as it comes, byte by byte; else its
calls are rewritten, and those that are not for the agent are answered here.
"""

import asyncio
import json
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TypeAlias

from aiohttp import ClientResponse, web

from robustbench_tc import sources
from robustbench_tc.llm.errors import from_status
from robustbench_tc.option import Tell, silent
from robustbench_tc.schema import Sample

from . import chat, rewrite
from .anthropic import MESSAGES, Messages, MessagesStream
from .chat import Held, Split
from .dialects import ChatCompletions, ChatStream, Said
from .journal import LEFT, Called, Exchange, Journal, door_id
from .plan import Plan, Refused, Session, check, parse
from .relay import (
    BROKEN_OFF,
    OURS,
    SILENCE_S,
    THEIRS,
    Budget,
    Relay,
    UpstreamError,
    broken_off,
    error_of,
    passed,
    secrets_of,
    session_of,
)
from .responses import RESPONSES, Responses, ResponsesStream
from .rewrite import NOT_EXPRESSIBLE, Chat, NotTheCase, Offer, text_of
from .scenes import TOOLS_UNREAD, Scene, Scenes, loaded
from .sessions import Latest, Sessions
from .sse import MOST, Parts, event_data, event_of, events

Dialect: TypeAlias = ChatCompletions | Responses | Messages
Stream: TypeAlias = ChatStream | ResponsesStream | MessagesStream

DIALECTS: dict[str, Dialect] = {
    "/chat/completions": ChatCompletions(),
    "/responses": RESPONSES,
    "/messages": MESSAGES,
}
"""What a plan is carried out in, by its path; anything else passes as it came."""

OTHER_APIS = frozenset({"/completions", "/messages/batches"})
"""Where models are asked, too; those requests pass as they came, and the journal says so."""


class Door(Relay):
    """Carries out a plan. One instance serves many sessions at once."""

    def __init__(
        self,
        upstream: str,
        plan: Plan,
        *,
        rows: tuple[Sample, ...] = (),
        journal: Path | None = None,
        fingerprint: str | None = None,
        sessions: Sessions | None = None,
        beside_tools: bool = False,
        silence_s: float = SILENCE_S,
        say: Tell = silent,
    ) -> None:
        """`rows`: those of the plan's dataset, whose `fingerprint` the journal keeps. `sessions`: with a
        journal that others write too; `beside_tools`: doors before the agent's tools say which one it is in.
        `say` gets a line for what the user should know, each kind of thing once. Raises UserError."""
        super().__init__(upstream, silence_s=silence_s)
        check(plan, tools=False)
        self.plan = plan
        self.scenes = Scenes(plan, rows)
        self._by, self._beside_tools = door_id(self.url), beside_tools
        self.sessions = sessions or Sessions(Journal(journal, plan, fingerprint=fingerprint), say)
        self.held = Held(journal)
        self._say = say
        self._said: set[str] = set()
        self._cases = sorted({row.clean_id.removeprefix(f"{sources.OWN}__") for row in rows})
        self.refuses_equal_names = False
        """Whether the server does not take two tools of one name: none is sent then."""
        self._turns: Latest[Session, tuple[object, list[tuple[Scene, Offer]]]] = Latest(MOST_AT_WORK)
        """By session: what `turns_of` has made, and of what."""

    async def close(self) -> None:
        await super().close()
        self.sessions.journal.close()

    async def exchange(self, request: web.Request, name: str | None, path: str) -> web.StreamResponse:
        body, bare = await request.read(), path.partition("?")[0]
        dialect = DIALECTS.get(bare)
        asks = request.method == "POST" and (dialect is not None or bare in OTHER_APIS)
        if self.plan.idle or not asks:
            if name is not None:
                parse(name)
            return await self.passed_on(request, path, body)
        session = session_of(name, self.plan, "base URL …/s/<case>.<repeat>/v1")
        if dialect is None:  # a model is asked, and nothing happens to it
            session = session or self.session_of((), (b"",))
            code = self.plan.type_of(session)
            self.note(request, Exchange.of_session(session, type=code, skipped="path_is_not_perturbed"))
            return await self.passed_on(request, path, body)
        return await Handling(self, dialect, request, session, path, body).run()

    def session_of(self, messages: Sequence[Chat], keys: Sequence[bytes]) -> Session:
        """That of a conversation, with its keys, whose request names none."""
        if self._beside_tools:
            return self.sessions.under_way(self._by)
        return self.sessions.session_of(self._by, messages, keys)

    def note(self, request: web.Request, line: Exchange) -> None:
        """A line of the journal, and what the user should know of it, once for each kind of thing."""
        line.by = self._by
        secrets = secrets_of(request.headers, request.rel_url.raw_query_string) | self.secrets
        self.sessions.journal.write(line, secrets)
        if line.status in (401, 403, 404):  # what the server says stays in the journal: it may quote a key
            self._tell(
                str(line.status),
                f"the server answers {line.status}: --upstream has to end where /chat/completions begins, "
                "as a rule in /v1, and the door adds no key: give the key to the agent",
            )
        if line.status in (502, 504):
            self._tell(str(line.status), f"a request failed: {line.error or line.status}")
        if line.skipped not in (None, "no_such_row"):  # a type that does not apply to the case is no mistake
            why = line.skipped.replace("_", " ")
            if line.skipped == "unknown_case":
                case = line.session.rpartition(".")[0]
                near = get_close_matches(case, self._cases, n=1, cutoff=0.5) or self._cases[:1]
                why += "".join(f"; did you mean {one}?" for one in near)
            self._tell(line.skipped, f"session {line.session}: {why}; the request passes unchanged")

    def _tell(self, kind: str, said: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            self._say(f"{' '.join(said.split())} (said once; the journal has all)")

    def turns_of(
        self, session: Session, body: Chat, size: int, reason: str | None = None
    ) -> list[tuple[Scene, Offer]]:
        """What the session gets in this request, of so many bytes, and in the further turns of its case, each
        with the tools for it. `reason`: why the request goes on without its type. Raises Refused and
        NotTheCase."""
        made_of = (body.get("tools"), rewrite.texts(body["messages"]), reason, self.refuses_equal_names)
        known, turns = self._turns.get(session, (None, []))
        if known != made_of:  # agents send their tools with each request
            turns = rewrite.turns_of(body.get("tools") or (), self._scenes_of(session, body, reason))
        if size <= MOST_KEPT:
            self._turns[session] = made_of, turns
        return turns

    def _scenes_of(self, session: Session, body: Chat, reason: str | None) -> list[Scene]:
        try:
            tools = rewrite.tools_of(body.get("tools") or ())
        except ValueError:
            reason, tools = TOOLS_UNREAD, ()
        self.scenes.listed(tool.name for tool in tools)
        if tools and self.scenes.stray is not None:
            raise Refused(self.scenes.stray)
        scenes = [self.scenes.scene_of(session, rewrite.texts(body["messages"]), tools, reason)]
        if reason is None:
            scenes += self.scenes.later(session)
        if self.refuses_equal_names:
            scenes = [one.unperturbed(NOT_EXPRESSIBLE) if one.repeats_names else one for one in scenes]
        return scenes


MOST_AT_WORK, MOST_KEPT = 32, 2**18
"""Sessions whose tools are remembered from one request to the next, and bytes of such a request."""

ASKED_AGAIN = 3
"""How often the door answers a reply of calls that do not go out, and asks on."""


class Handling:
    """One request of the agent's, until its reply has gone out."""

    def __init__(
        self,
        door: Door,
        dialect: Dialect,
        request: web.Request,
        session: Session | None,
        path: str,
        raw: bytes,
    ) -> None:
        """`session`: as the request names it. Raises Refused."""
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise Refused("a compressed body is not supported: send it as it is")
        body = loaded(raw)
        if not isinstance(body, dict):
            raise Refused("the body has to be a JSON object")
        if not isinstance(body.get("tools") or [], list):
            raise Refused("'tools' has to be a list")
        self.door, self.dialect, self.request = door, dialect, request
        self.path, self.raw, self.body = path, raw, dialect.read_request(body)
        self.keys = list(chat.keys_of(self.body["messages"]))
        self.session = session or door.session_of(self.body["messages"], self.keys)
        self.budget = Budget(MOST)
        self.usage: dict[str, int] = {}
        model = body.get("model")
        self.line = Exchange.of_session(self.session, model=model if isinstance(model, str) else None)
        """The journal's."""
        self.line.asked = door.sessions.asked(self.session, self.body, self.keys)
        self.begin()

    def begin(self) -> None:
        """The conversation of the session's scenes; of the request as it came, where that is not about its
        case. Raises Refused."""
        door, line = self.door, self.line

        def asked_of(reason: str | None = None) -> chat.Conversation:
            turns = door.turns_of(self.session, self.body, len(self.raw), reason)
            return chat.conversation(self.body, turns, self.session, door.plan, door.held, self.keys)

        try:
            self.asked = asked_of()
        except NotTheCase as error:
            self.asked = asked_of(str(error))
        self.scene, self.began = self.asked.scene, len(self.asked.messages)
        self.offer = self.asked.offer.without(door.plan.gone(self.asked.called))
        """What the model is offered now; of what it has called before, the conversation has its own."""
        line.type, line.row, line.skipped = self.scene.code, self.scene.put, self.scene.skipped
        line.turn = self.asked.turn
        self._defence = chat.asking(self.scene, self.body.get("tools") or ())

    async def run(self) -> web.StreamResponse:
        """The reply to the agent; the journal has its line in any case."""
        try:
            reply = await self._reply()
            self.line.status = reply.status
            self.line.error = self.request.get(BROKEN_OFF, self.line.error)
            return reply
        except UpstreamError as error:
            self.line.status, self.line.error = error.status, str(error)
            raise
        except asyncio.CancelledError:
            self.line.status, self.line.error = LEFT, "the agent left before its reply was whole"
            raise
        finally:  # aiohttp ends a stream after this
            self.door.note(self.request, self.line)

    # Asking

    async def _asked(self) -> bytes:
        """The request as the model gets it, when it gets it."""
        messages, replaced, spared = self.asked.faulted(self.door.plan, self.session)
        new = [one for one in replaced if one not in self.line.replaced]
        self.line.replaced += new
        await asyncio.sleep(max((one.seconds for one in new), default=0.0))
        self.line.spared += [one for one in spared if one not in self.line.spared]
        body = {**self.body, "messages": messages}
        if self.offer.entries or self.body.get("tools") is not None:
            body["tools"] = self.offer.entries
        if body == self.body and self.offer.is_plain:
            return self.raw
        if isinstance(choice := body.get("tool_choice"), dict):
            body["tool_choice"] = self.offer.named(choice)
        return json.dumps(self.dialect.write(body)).encode()

    async def _ask(self) -> ClientResponse:
        headers = passed(self.request.headers, OURS)
        headers["Accept-Encoding"] = "identity"
        found = await self.door.ask("POST", self.path, headers, await self._asked())
        if found.headers.get("Content-Encoding", "identity") != "identity":
            found.close()
            raise UpstreamError("the server compresses its replies although it was asked not to")
        return found

    # The reply

    async def _reply(self) -> web.StreamResponse:
        """The reply, whole or in pieces, as the server sends it."""
        if not self.offer.is_plain or self._defence is not None:
            return await self._rewritten()
        kept = bytearray()  # as it is, read all the same for the journal
        reply = await self.door.passed_on(self.request, self.path, await self._asked(), kept)
        body = None if reply.content_type == "text/event-stream" else loaded(kept)
        self.line.error = error_of(body) or None
        said = self.dialect.parse_reply(body)
        if said is None:
            stream = self.dialect.stream()
            for event in events(kept):
                list(stream.feed(loaded(event_data(event))))
            said = stream.whole_reply()
        if said is not None:
            self._taken(said, ASKED_AGAIN)
        return reply

    async def _rewritten(self) -> web.StreamResponse:
        """The reply in the agent's names, one after the other until one goes out."""
        out: web.StreamResponse | None = None
        body = b""
        split: Split | None = None
        stream = self.dialect.stream()
        try:
            for again in range(ASKED_AGAIN + 1):
                found = await self._ask()
                if found.status == 200 and found.content_type == "text/event-stream":
                    if out is None:
                        out = web.StreamResponse(headers=passed(found.headers, THEIRS))
                        await out.prepare(self.request)
                    await self._pieces(found, stream, out)
                    said = stream.whole_reply()
                else:
                    body = await self.door.whole(found, self.budget)
                    if out is None and self._goes_on_without_equal_names(found.status, body):
                        return await self._reply()
                    said = None
                    if found.status == 200 and out is None:
                        said = self.dialect.parse_reply(loaded(body))
                if said is None or (split := self._taken(said, again)) is not None:
                    break
                stream.again()
            if out is None:
                return self._whole(found, body, split)
            if split is None:
                raise UpstreamError(error_of(loaded(body)) or "the server's stream ended before its reply")
            for chunk in stream.end(split, self.usage if len(self.line.replies) > 1 else {}):
                await out.write(event_of(chunk))
            await out.write(self.dialect.done)
        except UpstreamError as error:
            if out is None:
                raise
            broken_off(self.request, error)  # a stream that has begun can only end
        return out

    def _goes_on_without_equal_names(self, status: int, body: bytes) -> bool:
        """Gives up the session's type where the server refuses it for two tools of one name. Whether that
        helps: the agent itself may send two."""
        if status not in (400, 422) or not self.asked.offer.repeats_names:
            return False
        said = loaded(body) or body[:2000].decode(errors="replace")
        if from_status(status, said, {}, with_tools=True, now=0.0).code != "duplicate_tools":
            return False
        self.door.refuses_equal_names = True
        self.begin()
        return not self.asked.offer.repeats_names

    def _whole(self, found: ClientResponse, body: bytes, split: Split | None) -> web.Response:
        headers = passed(found.headers, THEIRS)
        self.line.error = error_of(loaded(body)) or None
        if split is None or (not split.changed and not self.asked.messages[self.began :]):
            return web.Response(status=found.status, headers=headers, body=body)
        parsed = self.dialect.reply(loaded(body), split)
        if isinstance(parsed.get("usage"), dict):
            parsed["usage"] = {**parsed["usage"], **self.usage}
        return web.Response(headers=headers, body=json.dumps(parsed).encode())

    async def _pieces(self, found: ClientResponse, stream: Stream, out: web.StreamResponse) -> None:
        """Passes on what of a reply goes out before its end; an event that is not changed as it came."""
        async with found:
            async for event in Parts(partial(self.door.piece, found, self.budget)):
                said = event_data(event)
                value = loaded(said)
                if not said:
                    await out.write(event)
                for chunk in stream.feed(value):
                    await out.write(event if chunk == value else event_of(chunk))

    def _taken(self, said: Said, again: int) -> Split | None:
        """Notes a reply; it taken apart, where it goes out, else the door has answered it."""
        found = chat.split(said.message, self.offer)
        calls = chat.calls_of(found.reply)
        if again < ASKED_AGAIN and (results := chat.answered(self._defence, calls)) is not None:
            self.asked.refused |= {len(self.asked.messages)}
            self.asked.messages.append(found.reply)
            for call, text in zip(calls, results, strict=True):
                self.line.held.append({"id": call["id"], "name": call["name"], "answer": text})
                self.asked.messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
            return None
        in_row = self.offer.in_row
        named = [Called({**call, "name": in_row.get(call["name"], call["name"])}) for call in calls]
        self.line.replies.append(
            {
                "text": text_of(found.reply.get("content")),
                "tool_calls": named or None,
                "finish_reason": said.finish if isinstance(said.finish, str) else None,
            }
        )
        self.line.held += found.held
        for name, number in said.usage.items() if isinstance(said.usage, dict) else ():
            if isinstance(number, int) and not isinstance(number, bool):
                self.usage[name] = self.usage.get(name, 0) + number
        # With nothing for the agent to do, or to read, the door answers.
        if found.sent or not found.held or again == ASKED_AGAIN:
            kept = chat.kept_of(self.asked, self.began, found)
            if self.door.held.put(self.asked.place, kept):
                self.line.key, self.line.kept = self.keys[-1], kept
            return found
        self.asked.messages += [found.reply, *found.answers]
        return None
