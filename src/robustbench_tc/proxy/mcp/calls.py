"""One session of the MCP door: what its client is shown, and two hooks, before a request and after its
answer.

The hooks are synchronous and know no transport: `before` takes a request of the client's, `relayed` every
message of the server's. Both give back what they got wherever the plan changes nothing.
"""

import asyncio
import dataclasses
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec.structs import replace

from robustbench_tc.own.book import Book
from robustbench_tc.schema import Json
from robustbench_tc.worlds.fit import error

from ..decide import decide_one, may_replace
from ..journal import MCP, Exchange, Journal, Replaced
from ..plan import FAULT_KINDS, Fault, Plan
from ..scenes import Scenes, clean_ids
from ..secrets import NONE
from ..session import Session
from . import jsonrpc
from .jsonrpc import Message
from .listing import Listing, listed
from .memory import Memory

Ask: TypeAlias = Callable[[Message], Awaitable[Message]]
"""Puts a question of the door's own to the server. An answer that cannot be had is an error message."""

NOT_THERE = error("this tool is not available")
"""What a tool that the door put there answers where its results would need a schema."""

TOGETHER_S = 0.02
"""How long an answer of the door's own waits for calls that were made at the same time."""

MOST_TOOLS = 10_000
MOST_PAGES = 1_000


@dataclasses.dataclass(frozen=True)
class Door:
    """What all sessions of a door share."""

    plan: Plan
    scenes: Scenes
    journal: Journal
    book: Book | None = None
    """Of a dataset of own tools: what its cases' tools answer where a call is not carried out."""


@dataclasses.dataclass
class Pending:
    """A request of the client's that the door looks at, until its answer has gone out."""

    request: Message
    sent: Message
    """What the server gets: `request` itself where nothing is changed."""
    line: Exchange | None = None
    """The journal's, of a call."""
    fault: Fault | None = None
    """What the server's answer is to meet."""
    left: float | None = None
    """When the connection ended that was to carry the answer."""


class Calls:
    """One session at one door, from the client's `initialize` on."""

    def __init__(self, door: Door, session: Session) -> None:
        self.plan, self._door, self._session = door.plan, door, session
        self.secrets = NONE
        """What no line of the journal may hold: of all requests of the session."""
        self.open: dict[str, Pending] = {}
        """Requests without an answer so far, by `jsonrpc.key` of their ids."""
        self.changed = False
        """Whether the client is to be told, now, that its list of tools is another one."""
        self._number = 0
        """Of the last call, from 1."""
        self._batch, self._batch_ended = -1, 0.0
        self._opening = time.time()  # seconds since the epoch, as all times here
        self._listing: Listing | None = None
        """What the client was shown."""
        self._tools: dict[str, dict[str, Json]] = {}
        self._learning = asyncio.Lock()
        self._own = f"{secrets.token_hex(8)}-"
        """How the ids of the door's own questions begin: no client's do."""
        known = {} if door.book is None else door.book.results
        case = next((one for one in clean_ids(session.case) if one in known), "")
        self._memory = Memory(known.get(case, {}))

    def looks_at(self, message: Message) -> bool:
        """Whether a message of the client's is a request that the plan is about."""
        if self.plan.idle or not jsonrpc.is_request(message):
            return False
        method = message["method"]
        return method in ("tools/list", "tools/call") or (
            self.plan.types_after > 0 and method in ("initialize", "server/discover")
        )

    # The tools

    async def prepare(self, request: Message, ask: Ask) -> None:
        """Learns the server's tools, before a request that `looks_at` names: all pages of them at each list
        that the client asks for, and once before a call of a client that asked for none."""
        lists = request["method"] == "tools/list" and jsonrpc.params(request).get("cursor") is None
        async with self._learning:
            if not lists and (request["method"] != "tools/call" or self._listing is not None):
                return
            tools = await self._pages(request, ask)
            named = (one for one in tools if isinstance(one, dict) and isinstance(one.get("name"), str))
            self._tools = {one["name"]: one for one in named}
            shown = Listing(tools)
            if self.plan.types and self._number >= self.plan.types_after:
                shown = listed(tools, self._door.scenes, self._session)
            if not lists and shown.offer is not None and shown.scene is not None:
                clean = shown.scene.clean.tools
                plain = self._door.scenes.as_it_came(self._session, (), clean, "list_not_asked_for")
                shown = Listing(tools, plain)
            if self._listing is None:
                self._write(replace(self._line(), lists=tuple(self._tools)), time.time())
            self._listing = shown

    async def _pages(self, request: Message, ask: Ask) -> list[Json]:
        tools: list[Json] = []
        cursor: Json = None
        for page in range(MOST_PAGES):
            answer = await ask(jsonrpc.own_list(request, f"{self._own}{page}", cursor))
            found = answer.get("result")
            if not isinstance(found, dict) or not isinstance(found.get("tools"), list):
                break
            tools += found["tools"]
            cursor = found.get("nextCursor")
            if cursor is None or len(tools) >= MOST_TOOLS:
                break
        return tools[:MOST_TOOLS]

    def _listed(self, request: Message, answer: Message) -> Message:
        """The client's list: where it is another one than the server's, whole on its first page."""
        found, listing = answer.get("result"), self._listing
        if jsonrpc.params(request).get("cursor") is not None or listing is None:
            return answer
        if not isinstance(found, dict) or not isinstance(found.get("tools"), list):
            return answer
        if listing.offer is None and self.plan.types_after == 0:
            return answer
        body = {name: value for name, value in found.items() if name != "nextCursor"}
        if "ttlMs" in body:  # a client that kept the list would not see that it changes
            body["ttlMs"] = 0
        return {**answer, "result": {**body, "tools": listing.tools}}

    # The hooks

    def before(self, request: Message) -> Pending | Message:
        """What becomes of a request that `prepare` has seen: it goes to the server, or the door's own answer,
        which the client gets after TOGETHER_S."""
        given, pending = jsonrpc.params(request), Pending(request, request)
        arguments = {} if given.get("arguments") is None else given["arguments"]
        # What is no call goes to the server, which says what is wrong with it.
        if (
            request["method"] == "tools/call"
            and isinstance(given.get("name"), str)
            and isinstance(arguments, dict)
        ):
            pending.line = self._numbered(request, arguments)
            answer = self._called(pending, given["name"], arguments)
            if answer is not None:
                self._write(replace(pending.line, executed=0), time.time() + TOGETHER_S)
                return answer
        self.lose(jsonrpc.key(request["id"]), "its id was used again")
        self.open[jsonrpc.key(request["id"])] = pending
        return pending

    def relayed(self, data: bytes) -> bytes:
        """A message of the server's as the client gets it."""
        message = jsonrpc.read(data) if self.open else None
        if message is None or not jsonrpc.is_response(message):
            return data
        pending = self.open.pop(jsonrpc.key(message["id"]), None)
        if pending is None:
            return data
        answer = self._after(pending, message)
        return data if answer is message else jsonrpc.text(answer).encode()

    def lose(self, key: str, why: str) -> Message | None:
        """Ends an open request that gets no answer: the error that the client gets, if it still waits."""
        pending = self.open.pop(key, None)
        if pending is None:
            return None
        if pending.line is not None:
            self._write(replace(pending.line, status=500, error=why), pending.left or time.time())
        return jsonrpc.failure(pending.request, why)

    def too_long(self, head: bytes) -> Message | None:
        """The error of the call that a message of the server's above the limit answers, by its beginning."""
        lost = (self.lose(jsonrpc.key(one), jsonrpc.TOO_LONG) for one in jsonrpc.ids_in(head))
        return next(filter(None, lost), None)

    def close(self) -> None:
        """The session's end: what is still open has its line."""
        for key in list(self.open):
            self.lose(key, "ended before its answer")

    def _after(self, pending: Pending, answer: Message) -> Message:
        if pending.request["method"] == "tools/list":
            return self._listed(pending.request, answer)
        if pending.request["method"] != "tools/call":
            return _announcing(answer)
        line, fault, found = pending.line, pending.fault, answer.get("result")
        if line is None:
            return answer
        called = jsonrpc.params(pending.sent)
        self._memory.keep(called["name"], called.get("arguments"), found, reads=self._reads(called["name"]))
        # A question back, or a task, is no result yet.
        if fault is not None and isinstance(found, dict) and "content" in found:
            met = Replaced(call=str(pending.request["id"]), tool=called["name"], kind=fault.kind)
            line = replace(line, replaced=(met,))
            if fault.kind == "timeout_after_effect":
                found = jsonrpc.text_result(fault.answer, failed=True)
                answer = jsonrpc.result(pending.request, found)
            else:
                content = found["content"] if isinstance(found["content"], list) else []
                added = {"type": "text", "text": fault.answer}
                answer = {**answer, "result": {**found, "content": [*content, added]}}
        failed = answer.get("error")
        if isinstance(failed, dict):
            line = replace(line, status=500, error=str(failed.get("message"))[:1000])
        self._write(line, time.time())
        return answer

    def _called(self, pending: Pending, name: str, arguments: dict[str, Json]) -> Message | None:
        """What a call means; the door's own answer where the server is not asked."""
        request, listing = pending.request, self._listing or Listing([])
        meant, scene, call = listing.meant(name, arguments), listing.scene, str(request["id"])
        assert pending.line is not None
        if scene is not None and scene.text is not None and self._batch < scene.answered:
            label = "no_effect" if meant.own is None else "before_effect"
            met = Replaced(call=call, tool=meant.own or name, kind=scene.code, label=label)
            pending.line = replace(pending.line, replaced=(met,))
            return jsonrpc.result(request, jsonrpc.text_result(scene.text, failed=True))
        if meant.own is None:
            # Clients hold a result against the schema of any tool of that name, but not an error.
            said = NOT_THERE if self._structured(name) else meant.answer
            pending.line = replace(pending.line, held=[{"id": call, "name": name, "answer": said}])
            return jsonrpc.result(request, jsonrpc.text_result(said, failed=said != meant.answer))
        if meant.own != name or json.loads(meant.arguments) != arguments:
            renamed = {**request["params"], "name": meant.own, "arguments": json.loads(meant.arguments)}
            pending.sent = {**request, "params": renamed}
        decision = decide_one(self.plan, self._session, self._number, meant.own)
        return None if decision is None else self._met(pending, decision.fault, meant.own)

    def _met(self, pending: Pending, fault: Fault, tool: str) -> Message | None:
        """A call that meets a fault: the answer of one that comes before the effect."""
        result: dict[str, Json] | None = None
        spared = ""
        if fault.kind in FAULT_KINDS:
            result = jsonrpc.text_result(fault.answer, failed=True)
        elif fault.kind == "silent_no_op":
            result = self._memory.done(tool, fault.text, structured=self._structured(tool))
            spared = "no_answer_fits"
        elif fault.kind == "stale_read" and self._reads(tool):
            result = self._memory.stale(tool, jsonrpc.params(pending.sent).get("arguments"))
            spared = "nothing_older"
        elif fault.kind == "stale_read" or (
            fault.kind == "timeout_after_effect" and not self._repeatable(tool)
        ):
            spared = "may_write"
        else:
            pending.fault = fault
            return None
        assert pending.line is not None
        label = spared if result is None else "before_effect"
        met = Replaced(call=str(pending.request["id"]), tool=tool, kind=fault.kind, label=label)
        if result is None:
            pending.line = replace(pending.line, spared=(met,))
            return None
        pending.line = replace(pending.line, replaced=(met,))
        return jsonrpc.result(pending.request, result)

    def _structured(self, tool: str) -> bool:
        return self._tools.get(tool, {}).get("outputSchema") is not None

    def _hint(self, tool: str, name: str) -> bool:
        hints = self._tools.get(tool, {}).get("annotations")
        return isinstance(hints, dict) and hints.get(name) is True

    def _reads(self, tool: str) -> bool:
        return tool in self.plan.read_only or self._hint(tool, "readOnlyHint")

    def _repeatable(self, tool: str) -> bool:
        """Whether a call that was carried out may be answered as if it were not: the client may repeat it."""
        return may_replace(self.plan, tool) or self._reads(tool) or self._hint(tool, "idempotentHint")

    # The journal

    def _line(self) -> Exchange:
        case, repeat = self._session
        return Exchange(
            door=MCP,
            session=str(self._session),
            case=case,
            repeat=repeat,
            number=self._number,
            began=time.time(),
            opening=self._opening,
        )

    def _numbered(self, request: Message, arguments: dict[str, Json]) -> Exchange:
        """Counts a call, and the batch that it is of; its line."""
        if not any(one.line for one in self.open.values()) and time.time() > self._batch_ended:
            self._batch += 1  # a result was read before this call
        self._number += 1
        scene = None if self._listing is None else self._listing.scene
        call = {
            "id": str(request["id"]),
            "name": request["params"]["name"],
            "arguments": jsonrpc.text(arguments),
        }
        line = replace(self._line(), replies=[{"text": "", "tool_calls": [call]}], executed=1)
        if scene is None:
            return line
        row = None if self.plan.bench is None else scene.row.id
        return replace(line, type=scene.code, row=row, skipped=scene.skipped)

    def _write(self, line: Exchange, ended: float) -> None:
        if line.replies:
            self._batch_ended = max(self._batch_ended, ended)
            self.changed = bool(self.plan.types) and line.number == self.plan.types_after
        self._door.journal.write(replace(line, ended=ended), self.secrets)


def _announcing(answer: Message) -> Message:
    """The server's own description, in which its list of tools may change."""
    found = answer.get("result")
    abilities = found.get("capabilities") if isinstance(found, dict) else None
    tools = abilities.get("tools") if isinstance(abilities, dict) else None
    if not isinstance(found, dict) or not isinstance(abilities, dict) or not isinstance(tools, dict):
        return answer
    changing = {**abilities, "tools": {**tools, "listChanged": True}}
    return {**answer, "result": {**found, "capabilities": changing}}
