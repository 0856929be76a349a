"""One session of the MCP door: what its client is shown, which call meets which fault, the journal."""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, TypeAlias

from robustbench_tc.schema import Json, Sample
from robustbench_tc.worlds.fit import error

from ..decide import Decision, decide_one, may_replace
from ..journal import MCP, Exchange, Journal, Replaced
from ..plan import FAULT_KINDS, Plan
from ..scenes import Scenes
from ..session import Session
from . import jsonrpc
from .jsonrpc import Message
from .listing import Listing, listed
from .memory import Memory

Forward: TypeAlias = Callable[[Message], Awaitable[Message]]
"""Asks the server, and gives its answer."""

NOT_THERE = error("this tool is not available")
"""What a tool that the door put there answers where its results would need a schema."""

TOGETHER_S = 0.02
"""How long an answer of the door's own waits for calls that were made at the same time."""

MOST_TOOLS = 10_000
MOST_PAGES = 1_000


class Made(NamedTuple):
    """An answer of a call."""

    message: Message
    executed: int
    replaced: Replaced | None = None
    spared: Replaced | None = None
    held: Json = None


class Calls:
    """One session. `changed` tells the client that the tools are others."""

    def __init__(
        self,
        plan: Plan,
        scenes: Scenes,
        journal: Journal,
        session: Session,
        results: Mapping[str, Json] | None = None,
    ) -> None:
        """`results`: what tools of the session's case answer, for calls that are not carried out."""
        self.plan, self.scenes, self.journal, self.session = plan, scenes, journal, session
        self.number = 0
        """Calls so far."""
        self._batch, self._flying, self._ended = 0, 0, False
        self._tools: list[Json] | None = None
        self._listing: Listing | None = None
        self._asked = 0
        self.own = f"{secrets.token_hex(8)}-"
        """How the ids of the door's own questions begin: no client's do."""
        self._changed = False
        self._memory = Memory(results or {})

    def answers(self, message: Message) -> bool:
        """Whether a message of the client's is one that this session looks at."""
        if self.plan.idle or not jsonrpc.is_request(message):
            return False
        method = message["method"]
        if method in ("initialize", "server/discover"):
            return self.plan.types_after > 0
        return method in ("tools/list", "tools/call")

    async def answer(
        self, request: Message, forward: Forward, changed: Callable[[], Awaitable[None]]
    ) -> Message:
        """The answer to a request that `answers` names. `changed` tells the client of other tools."""
        if request["method"] == "tools/list":
            return await self._list(request, forward)
        if request["method"] != "tools/call":
            return _announcing(await forward(request))
        made = await self._call(request, forward)
        if self.plan.types and 0 < self.plan.types_after <= self.number and not self._changed:
            self._changed = True
            await changed()
        return made

    # The tools

    async def _list(self, request: Message, forward: Forward) -> Message:
        if jsonrpc.params(request).get("cursor") is not None:
            return await forward(request)
        first = await forward(request)
        found = first.get("result")
        if not isinstance(found, dict) or not isinstance(found.get("tools"), list):
            return first
        tools = await self._pages(request, found, forward)
        self._tools = tools
        self._listing = self._shown(tools)
        if self._listing.offer is None and self.plan.types_after == 0:
            return first
        body = {name: value for name, value in found.items() if name != "nextCursor"}
        if "ttlMs" in body:  # a client that kept the list would not see that it changes
            body["ttlMs"] = 0
        return {**first, "result": {**body, "tools": self._listing.tools}}

    def _shown(self, tools: list[Json]) -> Listing:
        if not self.plan.types or self.number < self.plan.types_after:
            return Listing(tools)
        return listed(tools, self.scenes, self.session)

    def _own_id(self) -> str:
        self._asked += 1
        return f"{self.own}{self._asked}"

    async def _pages(self, request: Message, found: dict[str, Json], forward: Forward) -> list[Json]:
        """All tools: clients that are shown others get them on one page."""
        tools = list(found["tools"])
        cursor, pages = found.get("nextCursor"), 1
        while cursor is not None and pages < MOST_PAGES and len(tools) < MOST_TOOLS:
            answer = (await forward(jsonrpc.own_list(request, self._own_id(), cursor))).get("result")
            if not isinstance(answer, dict) or not isinstance(answer.get("tools"), list):
                break
            tools += answer["tools"]
            cursor, pages = answer.get("nextCursor"), pages + 1
        return tools[:MOST_TOOLS]

    async def _known(self, request: Message, forward: Forward) -> Listing:
        """What the client was last shown; a client that did not ask knows the server's own tools."""
        if self._listing is None:
            asked = jsonrpc.own_list(request, self._own_id())
            found = (await forward(asked)).get("result")
            tools: list[Json] = []
            if isinstance(found, dict) and isinstance(found.get("tools"), list):
                tools = await self._pages(asked, found, forward)
            self._tools = tools
            shown = self._shown(tools)
            if shown.offer is not None and shown.scene is not None:
                plain = self.scenes.as_it_came(
                    self.session, (), shown.scene.clean.tools, "list_not_asked_for"
                )
                shown = Listing(tools, plain)
            self._listing = shown
        return self._listing

    # The calls

    async def _call(self, request: Message, forward: Forward) -> Message:
        given = jsonrpc.params(request)
        name, arguments = given.get("name"), given.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments if arguments is not None else {}, dict):
            return await forward(request)  # the server says what is wrong with it
        if self._ended and not self._flying:  # the client has read a result before it called again
            self._batch, self._ended = self._batch + 1, False
        batch = self._batch
        self._flying += 1
        try:
            return await self._numbered(request, forward, batch)
        finally:
            self._flying -= 1
            self._ended = True

    async def _numbered(self, request: Message, forward: Forward, batch: int) -> Message:
        listing = await self._known(request, forward)
        self.number += 1
        number = self.number
        executed = 0

        async def asks(message: Message) -> Message:
            nonlocal executed
            executed = 1
            return await forward(message)

        try:
            made = await self._made(request, asks, listing, number, batch)
        except BaseException as error:  # the client has cancelled it, or the server is gone
            said = str(error) or "ended before its answer"
            self._write(request, listing, number, batch, Made(jsonrpc.failure(request, said), executed))
            raise
        self._write(request, listing, number, batch, made)
        if not made.executed:  # what the client calls at the same time still belongs to this reply
            await asyncio.sleep(TOGETHER_S)
        return made.message

    async def _made(
        self, request: Message, forward: Forward, listing: Listing, number: int, batch: int
    ) -> Made:
        given = jsonrpc.params(request)
        name, arguments = given["name"], given.get("arguments") or {}
        meant = listing.meant(name, arguments)
        call = str(request["id"])
        scene = listing.scene
        if scene is not None and scene.text is not None and batch < scene.answered:
            label = "no_effect" if meant.own is None else "before_effect"
            met = Replaced(call=call, tool=meant.own or name, kind=scene.code, label=label)
            return Made(jsonrpc.tool_result(request, scene.text, failed=True), 0, met)
        if meant.own is None:
            # Clients hold a result against the schema of any tool of that name, but not an error.
            said = NOT_THERE if self._structured(name) else meant.answer
            held = {"id": call, "name": name, "answer": said}
            return Made(jsonrpc.tool_result(request, said, failed=said != meant.answer), 0, held=held)
        if meant.own != name or json.loads(meant.arguments) != arguments:
            renamed = {**given, "name": meant.own, "arguments": json.loads(meant.arguments)}
            request = {**request, "params": renamed}
        decision = decide_one(self.plan, self.session, number, meant.own)
        if decision is None:
            return await self._through(request, forward)
        return await self._met(request, forward, decision, meant.own, call)

    async def _met(
        self, request: Message, forward: Forward, decision: Decision, tool: str, call: str
    ) -> Made:
        fault = decision.fault
        met = Replaced(call=call, tool=tool, kind=fault.kind, label="before_effect")
        if fault.kind in FAULT_KINDS:
            return Made(jsonrpc.tool_result(request, fault.answer, failed=True), 0, met)
        if fault.kind == "silent_no_op":
            found = self._memory.done(tool, fault.text, structured=self._structured(tool))
            if found is None:
                return await self._spared(request, forward, met, "no_answer_fits")
            return Made(jsonrpc.result(request, found), 0, met)
        if fault.kind == "stale_read":
            if not self._reads(tool):
                return await self._spared(request, forward, met, "may_write")
            old = self._memory.stale(tool, jsonrpc.params(request).get("arguments"))
            if old is None:
                return await self._spared(request, forward, met, "nothing_older")
            return Made(jsonrpc.result(request, old), 0, met)
        after = Replaced(call=call, tool=tool, kind=fault.kind)
        if fault.kind == "timeout_after_effect" and not self._repeatable(tool):
            return await self._spared(request, forward, after, "may_write")
        made = await self._through(request, forward)
        found = made.message.get("result")
        if not isinstance(found, dict) or "content" not in found:  # a question back, a task: no result yet
            return made
        if fault.kind == "timeout_after_effect":
            return Made(jsonrpc.tool_result(request, fault.answer, failed=True), 1, after)
        content = found.get("content")
        added = {"type": "text", "text": fault.answer}
        more = {**found, "content": [*(content if isinstance(content, list) else ()), added]}
        return Made({**made.message, "result": more}, 1, after)

    async def _through(self, request: Message, forward: Forward) -> Made:
        """The call as the server answers it; what it says is remembered."""
        message = await forward(request)
        given = jsonrpc.params(request)
        tool = given["name"]
        self._memory.keep(tool, given.get("arguments"), message.get("result"), reads=self._reads(tool))
        return Made(message, 1)

    async def _spared(self, request: Message, forward: Forward, met: Replaced, why: str) -> Made:
        made = await self._through(request, forward)
        return made._replace(spared=Replaced(call=met.call, tool=met.tool, kind=met.kind, label=why))

    def _structured(self, tool: str) -> bool:
        return (self._raw(tool) or {}).get("outputSchema") is not None

    def _raw(self, tool: str) -> Json:
        named = (one for one in self._tools or () if isinstance(one, dict) and one.get("name") == tool)
        return next(named, None)

    def _hint(self, tool: str, name: str) -> bool:
        hints = (self._raw(tool) or {}).get("annotations")
        return isinstance(hints, dict) and hints.get(name) is True

    def _reads(self, tool: str) -> bool:
        return tool in self.plan.read_only or self._hint(tool, "readOnlyHint")

    def _repeatable(self, tool: str) -> bool:
        """Whether a call that was carried out may be answered as if it were not: the client may repeat it."""
        return may_replace(self.plan, tool) or self._reads(tool) or self._hint(tool, "idempotentHint")

    def _write(self, request: Message, listing: Listing, number: int, batch: int, made: Made) -> None:
        given = jsonrpc.params(request)
        scene = listing.scene
        row: Sample | None = None if scene is None else scene.row
        arguments = jsonrpc.written(given.get("arguments") or {}).decode()
        call = {"id": str(request["id"]), "name": given["name"], "arguments": arguments}
        failed = made.message.get("error")
        self.journal.write(
            Exchange(
                door=MCP,
                session=str(self.session),
                case=self.session.case,
                repeat=self.session.repeat,
                number=number,
                type="clean" if scene is None else scene.code,
                row=None if row is None or self.plan.bench is None else row.id,
                skipped=None if scene is None else scene.skipped,
                turn=batch,
                replaced=() if made.replaced is None else (made.replaced,),
                spared=() if made.spared is None else (made.spared,),
                replies=[{"text": "", "tool_calls": [call]}],
                held=() if made.held is None else [made.held],
                status=200 if failed is None else 500,
                error=str(failed.get("message"))[:1000] if isinstance(failed, dict) else None,
                executed=made.executed,
            )
        )


def _announcing(answer: Message) -> Message:
    """The server's own description, in which its list of tools may change."""
    found = answer.get("result")
    abilities = found.get("capabilities") if isinstance(found, dict) else None
    tools = abilities.get("tools") if isinstance(abilities, dict) else None
    if not isinstance(found, dict) or not isinstance(abilities, dict) or not isinstance(tools, dict):
        return answer
    changing = {**abilities, "tools": {**tools, "listChanged": True}}
    return {**answer, "result": {**found, "capabilities": changing}}
