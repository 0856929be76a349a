"""One session of the MCP door: what its client is shown, and two hooks, before a request and after its
answer.

The hooks know no transport: `prepared` takes a request of the client's, `relayed` every message of the
server's. Both give back what they got wherever the plan changes nothing.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from robustbench_tc.credentials import NONE, Secrets
from robustbench_tc.result_faults import EFFECTS, Fault
from robustbench_tc.schema import Json, dumps
from robustbench_tc.schema.running import RESULT_FAULTS
from robustbench_tc.worlds.fit import error

from ..journal import MCP, Called, Exchange, Replaced
from ..plan import Plan, Session
from ..scenes import Scenes, clean_ids, inside
from ..sessions import Latest, Sessions
from . import wire
from .wire import Listing, Message, listed

MOST_RESULTS = 1_000
"""Results of a session that are kept."""

OK = '{"status": "ok"}'
"""The answer of a tool of which nothing is known."""


class Memory:
    """What a session's server has answered, errors left out: the answers of calls that are not carried out,
    and of stale reads."""

    def __init__(self, results: Mapping[str, Sequence[Json]]) -> None:
        """`results`: what tools of the session's case answer, in turn."""
        self._results = results
        self._writes = 0
        self._last: dict[str, dict[str, Json]] = {}
        self._reads: Latest[str, tuple[dict[str, Json] | None, int]] = Latest(MOST_RESULTS)
        """Tool and arguments → the last result, and how many writes stood before it."""

    def keep(self, tool: str, arguments: Json, result: Json, *, reads: bool) -> None:
        """A result that the server gave."""
        self._writes += not reads
        if not isinstance(inside(result, "content"), list) or result.get("isError"):
            return
        kept = {name: value for name, value in result.items() if name not in ("_meta", "resultType")}
        self._last[tool] = kept
        if reads:
            key = json.dumps([tool, arguments or {}], sort_keys=True)
            self._reads[key] = kept, self._writes

    def stale(self, tool: str, arguments: Json) -> dict[str, Json] | None:
        """What a read showed before the last write; None where it was not made then, or again since."""
        key = json.dumps([tool, arguments or {}], sort_keys=True)
        shown, writes = self._reads.get(key, (None, 0))
        return shown if writes < self._writes else None

    def done(
        self, tool: str, text: str | None, told: Callable[[str], str], *, structured: bool
    ) -> dict[str, Json] | None:
        """What a call that is not carried out is answered with: `text`, else the tool's last result, else the
        case's, else OK, as it is `told`. None where the tool's answers have a schema that none of these is
        known to fit."""
        if text is None and tool in self._last:
            return self._last[tool]
        known = [OK, *self._results.get(tool, ())][-1]
        text = text or (known if isinstance(known, str) else dumps(known))
        return None if structured else wire.text_result(told(text))


Ask: TypeAlias = Callable[[Message], Awaitable[Message]]
"""Puts a question of the door's own to the server. {} is an answer that cannot be had."""
Tell: TypeAlias = Callable[[], Awaitable[None]]
"""Says to the client, in one place, that its list of tools is another one."""

NOT_THERE = error("this tool is not available")
"""What a tool that the door put there answers where its results would need a schema."""

TOGETHER_S = 0.02
"""How long an answer of the door's own waits for calls that were made at the same time."""

MOST_TOOLS = 10_000
MOST_PAGES = 1_000


BEGINS = ("initialize", "server/discover")
"""What a client says first, one of them or both, a slow server perhaps several times."""


class Door(NamedTuple):
    """What all clients of a door share."""

    by: str
    """As the journal names it."""
    plan: Plan
    idle: bool
    """Whether nothing is to happen at any door of the agent."""
    scenes: Scenes
    sessions: Sessions
    results: Mapping[str, Mapping[str, Sequence[Json]]] = {}
    """By clean id and tool: what the tools of own cases answer, in turn, where a call is not carried out."""


@dataclass
class Pending:
    """A request of the client's whose answer the door looks at, until that has gone out."""

    request: Message
    """As the server gets it: as it came, or what that means."""
    line: Exchange | None = None
    """The journal's, of a call."""
    fault: Fault | None = None
    """What the server's answer is to meet."""
    left: float | None = None
    """When the connection ended that was to carry the answer."""


class Calls:
    """What one client says at one door, from its `initialize` on."""

    def __init__(
        self, door: Door, name: Session | None, secrets: Secrets = NONE, first: Message | None = None
    ) -> None:
        """`name`: of its session, where it has one. `first`: what it has said so far."""
        self._plan, self._door = door.plan, door
        self._run = door.sessions.begin(door.by, Session("-", 0) if door.idle else name)
        self._session = self._run.session
        self.secrets = secrets
        """What no line of the journal may hold: of all requests of the client."""
        self._last = (first or {}).get("method")
        self.open: dict[str, Pending] = {}
        """Requests without an answer so far, by `wire.key` of their ids."""
        self.listening: dict[object, Tell] = {}
        """Where the client waits to hear that its list of tools is another one."""
        self._changed = False
        """Whether it is to hear that now."""
        self._gone: frozenset[str] = frozenset()
        """Tools that were dropped when the client last got the list."""
        self._listing = Listing([], door.scenes.untouched(self._session))
        """What the client was shown."""
        self._learned = False
        self._tools: dict[str, Json] = {}
        self._learning = asyncio.Lock()
        cases = (door.results[one] for one in clean_ids(self._session.case) if one in door.results)
        self._memory = Memory(next(cases, {}))

    # What the client says

    def over(self, message: Message) -> bool:
        """Whether a message of its is the first of another client, or of this one started again."""
        before, said = self._last, message.get("method")
        self._last = said or before
        return said in BEGINS and before not in (None, *BEGINS)

    def looks_at(self, message: Message) -> bool:
        """Whether a message of the client's is a request that the plan is about."""
        method = message.get("method")
        about = (
            method == "tools/call"
            or (method == "tools/list" and inside(message, "params", "cursor") is None)
            or (method in BEGINS and self._plan.changes_lists)
        )
        return about and message.get("id") is not None and not self._door.idle

    async def prepared(self, request: Message, ask: Ask) -> Pending | Message:
        """What becomes of a request that `looks_at` names: it goes to the server, or the door's own answer,
        which has waited for calls that were made at the same time.

        The server's tools are learned before: all pages of them at each list that the client asks for, and
        once before a call of a client that asked for none.
        """
        method = request["method"]
        async with self._learning:
            if method == "tools/list" or (method == "tools/call" and not self._learned):
                await self._learn(request, ask, asked=method == "tools/list")
        pending, key = Pending(request), wire.key(request["id"])
        if method == "tools/call":
            name, arguments = (inside(request, "params", one) for one in ("name", "arguments"))
            arguments = {} if arguments is None else arguments
            if not isinstance(name, str) or not isinstance(arguments, dict):
                return pending  # is no call: the server says what is wrong with it
            scenes, wrong = self._door.scenes, None
            if not scenes.unlisted:  # all servers have been asked for their tools
                wrong = scenes.stray or (scenes.stray_type(self._session) if self._plan.types else None)
            if wrong is not None:
                return wire.failure(request["id"], wrong)
            if (result := self._called(pending, name, arguments)) is not None:
                await asyncio.sleep(TOGETHER_S)
                return wire.result(request, result)
        self.lose(key, "its id was used again")
        self.open[key] = pending
        if pending.fault is not None:
            await asyncio.sleep(pending.fault.waits)
        return pending

    async def _learn(self, request: Message, ask: Ask, *, asked: bool) -> None:
        tools: list[Json] = []
        cursor: Json = None
        for _ in range(MOST_PAGES):
            found = inside(await ask(wire.own_list(request, cursor)), "result")
            page, cursor = inside(found, "tools"), inside(found, "nextCursor")
            tools += page if isinstance(page, list) else []
            if cursor is None or not isinstance(page, list) or len(tools) >= MOST_TOOLS:
                break
        del tools[MOST_TOOLS:]
        self._tools = {one["name"]: one for one in tools if isinstance(inside(one, "name"), str)}
        self._door.scenes.listed(self._tools)
        self._door.scenes.unlisted.discard(self._door.by)
        self._gone = self._plan.gone(self._run.own)
        tools = [one for one in tools if str(inside(one, "name")) not in self._gone]
        if not self._learned:
            self._write(self._line(lists=list(self._tools)), time.time())
        self._learned, plan, scenes = True, self._plan, self._door.scenes
        self._listing = Listing(tools, scenes.untouched(self._session))
        if (plan.types or plan.defend) and self._run.number >= plan.types_after:
            self._listing = listed(tools, scenes, self._session, asked=asked)

    async def tell(self, otherwise: Tell | None = None) -> None:
        """Says that the list of tools is another one, where it just became so: wherever the client listens,
        or `otherwise`."""
        if self._changed:
            self._changed = False
            for tell in [*self.listening.values()] or filter(None, [otherwise]):
                with suppress(ConnectionError):  # who has gone is told nothing
                    await tell()

    def relayed(self, data: bytes) -> bytes:
        """A message of the server's as the client gets it."""
        answer = wire.parse_message(data) if self.open else {}
        key = wire.key(answer.get("id"))
        if "method" in answer or key not in self.open:
            return data
        pending = self.open.pop(key)
        if pending.line is not None:
            changes = self._answered(pending, pending.line, answer)
        elif pending.request["method"] == "tools/list":
            changes = self._listed(answer)
        else:
            # The server's description of itself: its list of tools may change.
            tools = inside(answer, "result", "capabilities", "tools")
            if changes := isinstance(tools, dict):
                tools["listChanged"] = True
        return wire.text(answer).encode() if changes else data

    def lose(self, key: str, why: str) -> Message | None:
        """Ends an open request that gets no answer: the error that the client gets, if it still waits."""
        pending = self.open.pop(key, None)
        if pending is None:
            return None
        if pending.line is not None:
            pending.line.status, pending.line.error = 500, why
            self._write(pending.line, pending.left or time.time())
        return wire.failure(pending.request["id"], why)

    def too_long(self, head: bytes) -> Message | None:
        """The error of the call that a message of the server's above the limit answers, by its beginning."""
        lost = (self.lose(wire.key(one), wire.TOO_LONG) for one in wire.ids_in(head))
        return next(filter(None, lost), None)

    def close(self, why: str = "ended before its answer") -> list[Message | None]:
        """The session's end: the errors of what is still open."""
        return [self.lose(key, why) for key in list(self.open)]

    def _listed(self, answer: Message) -> bool:
        """Puts the client's list, whole, into an answer with the server's first page. Whether it is another
        list, or is to become one."""
        found = inside(answer, "result")
        changes = self._plan.changes_lists or self._listing.offer is not None
        if not changes or not isinstance(inside(found, "tools"), list):
            return False
        found["tools"] = self._listing.tools
        found.pop("nextCursor", None)
        if "ttlMs" in found:  # a client that kept the list would not see that it changes
            found["ttlMs"] = 0
        return True

    # A call and its answer

    def _called(self, pending: Pending, name: str, arguments: dict[str, Json]) -> dict[str, Json] | None:
        """The door's own result of a call; None where the server is asked, for what the call means."""
        self._run.called()
        scene, meant = self._listing.scene, self._listing.meant(name, arguments)
        call, tool = str(pending.request["id"]), meant.own or name
        said: Called = {"id": call, "name": name, "arguments": wire.text(arguments)}
        pending.line = line = self._line(
            replies=[{"text": "", "tool_calls": [said]}],
            executed=1,
            type=scene.code,
            row=scene.put,
            skipped=scene.skipped,
        )
        if meant.own is not None:
            own = {"name": tool, "arguments": json.loads(meant.arguments)}
            if own != {"name": name, "arguments": arguments}:
                pending.request = {**pending.request, "params": {**pending.request["params"], **own}}
            arguments = own["arguments"]
        result, fault = None, None
        if meant.own is not None or self._run.batch <= scene.answered:
            self._run.own += meant.own is not None
            fault = scene.met(self._plan, self._session, self._run.batch, self._run.own, meant[:2])
        else:
            # Clients hold a result against the schema of any tool of that name, but not an error.
            structured = self._is_structured(name)
            answer = NOT_THERE if structured else meant.answer
            line.held = [{"id": call, "name": name, "answer": answer}]
            result = wire.text_result(scene.told(answer), failed=structured)
        if fault is not None:
            result, label = self._instead(fault, tool, arguments)
            if result is not None:
                label = "no_effect" if meant.own is None else "before_effect"
            met = Replaced(call=call, tool=tool, kind=fault.kind, label=label)
            if label == "after_effect":
                pending.fault = fault
            else:
                (line.spared if result is None else line.replaced).append(met)
        if result is not None:
            line.executed = 0
            self._write(line, time.time() + TOGETHER_S)
        return result

    def _instead(self, fault: Fault, tool: str, arguments: Json) -> tuple[dict[str, Json] | None, str]:
        """The result of a fault that comes before the effect of a call; else why it spares the call, or that
        it comes after the effect."""
        reads, told = self._reads(tool), self._listing.scene.told
        if fault.kind not in (*EFFECTS, *RESULT_FAULTS, "latency"):
            return wire.text_result(told(fault.answer(""), injected=True), failed=True), ""
        if fault.kind == "silent_no_op":
            structured = self._is_structured(tool)
            return self._memory.done(tool, fault.text, told, structured=structured), "no_answer_fits"
        if fault.kind == "stale_read" and reads:
            return self._memory.stale(tool, arguments), "nothing_older"
        if fault.kind in RESULT_FAULTS and self._is_structured(tool):
            return None, "no_answer_fits"
        # Of a call that was carried out and looks as if it were not: the client may repeat it.
        hinted = inside(self._tools, tool, "annotations", "idempotentHint") is True
        harmless = fault.kind in ("injected_instruction", "latency")
        if fault.kind != "stale_read" and (harmless or reads or hinted or self._plan.may_replace(tool)):
            return None, "after_effect"
        return None, "may_write"

    def _answered(self, pending: Pending, line: Exchange, answer: Message) -> bool:
        """An answer of the server's to a call, which its fault may change. Whether it does."""
        called, fault, found = pending.request, pending.fault, inside(answer, "result")
        tool, content = called["params"]["name"], inside(found, "content")
        told = self._listing.scene.told
        self._memory.keep(tool, called["params"].get("arguments"), found, reads=self._reads(tool))
        changed = False
        for part in content if isinstance(content, list) else ():  # and so the memory has them
            if isinstance(text := inside(part, "text"), str):
                part["text"] = told(text)
                changed |= part["text"] != text
        # A question back, or a task, is no result yet.
        if fault is not None and content is not None:
            met = Replaced(call=str(called["id"]), tool=tool, kind=fault.kind, seconds=fault.waits)
            line.replaced.append(met)
            before = content if isinstance(content, list) else []
            if fault.kind == "timeout_after_effect":
                failed = wire.text_result(told(fault.answer(""), injected=True), failed=True)
                answer.update(wire.result(called, failed))
            elif fault.kind == "injected_instruction":
                found["content"] = [*before, {"type": "text", "text": told(fault.answer(""))}]
            elif fault.kind in RESULT_FAULTS:
                texts = [text for part in before if isinstance(text := inside(part, "text"), str)]
                found["content"] = [{"type": "text", "text": fault.answer("\n".join(texts))}]
                found.pop("structuredContent", None)
        if isinstance(answer.get("error"), dict):
            line.status, line.error = 500, str(answer["error"].get("message"))[:1000]
        self._write(line, time.time())
        return changed or bool(line.replaced)

    def _reads(self, tool: str) -> bool:
        hinted = inside(self._tools, tool, "annotations", "readOnlyHint") is True
        return hinted or tool in self._plan.read_only

    def _is_structured(self, tool: str) -> bool:
        """Whether its results have to fit a schema."""
        return inside(self._tools, tool, "outputSchema") is not None

    # The journal

    def _line(self, **more: Any) -> Exchange:
        run, began = self._run, time.time()
        place = {"by": self._door.by, "opening": run.opening, "number": run.number}
        return Exchange.of_session(self._session, door=MCP, began=began, **place, **more)

    def _write(self, line: Exchange, ended: float) -> None:
        line.ended = ended
        if line.replies:
            self._run.waiting -= 1
            self._run.answered = max(self._run.answered, ended)
            self._changed = bool(self._plan.types) and line.number == self._plan.types_after
            self._changed |= self._plan.gone(self._run.own) != self._gone
        self._door.sessions.journal.write(line, self.secrets)
