"""A world with a fault in front of it: what an agent calls, and what is answered instead.

    world = FaultedWorld(handle, row.tools, row.fault)
    step = await world.call("add_coins", {"amount": 2})     # a schema.Step: executed, met, text, true_text

A kind that is about an effect (an error after it, a write that does nothing, an old state shown, a write
done twice) is met by a call that has one: a call that fails leaves the fault for the next. Everything else
passes unchanged, so that an episode with a fault and its clean one agree up to the call that meets it.
"""

import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from .. import schema, taxonomy
from ..errors import UserError
from ..schema import Fault, Json, LiveTool, Step
from .fit import error, failed, fits, wrong_type
from .handle import Answered, Handle, Snapshot

CORE_TEXTS = {kind: taxonomy.get(kind).injected_error or "" for kind in schema.CORE_TEXTS}
"""What a call is answered by kinds that are the core's."""


class FaultedWorld:
    """A world as the agent of one episode meets it. Calls come one after the other."""

    def __init__(self, handle: Handle, tools: Sequence[LiveTool], fault: Fault | None = None) -> None:
        """Raises UserError for a fault that nothing can meet."""
        self.handle = handle
        self._tools = tuple(tools)
        self._fault = fault
        self._counts = {"call": 0, "write": 0, "read": 0, "tool": 0}
        self._met = 0
        self._met_by: str | None = None
        self._done: set[str] = set()
        """Tools that were called with success."""
        self._before: Handle | None = None
        """`stale_read`: the world as it was before the write, until it has been shown."""
        if fault is not None:
            _check(fault)

    async def call(
        self, name: str, arguments: Json, *, place: int | None = None, aside: bool = False
    ) -> Step:
        """One call of the agent's. Never raises for what a model said.

        `place`: which tool of the registry is called, where that is known. `aside`: a read that a defence
        makes, so that a fault meets the agent where it meets an undefended one: it is not counted, and meets
        no fault but one that its tool has met before.
        """
        tool = meant(self._tools, name, arguments) if place is None else self._at(name, place)
        if tool is None:
            text = error(f"there is no tool {name[:80]!r}")
            return Step(name=name, arguments=arguments, text=text, executed=0, problem="not_offered")
        if not isinstance(arguments, Mapping):
            text = error("arguments must be a JSON object")
            return Step(name=name, arguments=arguments, text=text, executed=0, problem="arguments")
        if tool.distractor:
            text = error("this tool is not available")
            return Step(name=name, arguments=arguments, text=text, executed=0)
        if not aside:
            self._count(tool)
        if aside and self._met_by != tool.name:
            made = await self._carried_out(tool, arguments)
        else:
            made = await self._answer(tool, arguments)
        if made.met:
            self._met += 1
            self._met_by = tool.name
        if made.executed and not aside and not failed(made.true_text or made.text):
            self._done.add(tool.name)
        return Step(
            name=name,
            arguments=arguments,
            text=made.text,
            executed=made.executed,
            met=made.met,
            true_text=made.true_text,
            problem=made.problem,
        )

    async def close(self) -> None:
        """Gives back the world, and the copy that is kept for a stale read."""
        await self._drop_before()
        await self.handle.close()

    def _at(self, name: str, place: int) -> LiveTool:
        tool = self._tools[place] if 0 <= place < len(self._tools) else None
        if tool is None or tool.name != name:
            raise UserError(
                f"tool {place} of the registry is not {name[:80]!r}: the record was changed by hand"
            )
        return tool

    def _count(self, tool: LiveTool) -> None:
        self._counts["call"] += 1
        self._counts["write" if tool.writes else "read"] += 1
        if self._fault is not None and self._fault.at.tool is not None:
            self._counts["tool"] += fnmatchcase(tool.name, self._fault.at.tool)

    async def _answer(self, tool: LiveTool, arguments: Mapping[str, Json]) -> "_Made":
        fault = self._fault
        if self._before is not None and not tool.writes:
            return await self._old_or_true(self._before, tool, arguments)
        if fault is None or self._before is not None or not self._stands_before(fault, tool):
            return await self._carried_out(tool, arguments)
        if fault.kind in schema.CORE_TEXTS:
            return _Made(CORE_TEXTS[fault.kind], 0, met=True)
        return await _ANSWERS[fault.kind](self, fault, tool, arguments)

    def _stands_before(self, fault: Fault, tool: LiveTool) -> bool:
        """Whether this call, which has been counted, may meet the fault."""
        often = fault.repeat
        times = {"once": 1, "always": math.inf}[often] if isinstance(often, str) else often
        if fault.kind not in _UNTIL and self._met >= times:
            return False
        if self._met_by is not None and fault.kind != "stale_read":
            return tool.name == self._met_by
        at = fault.at
        if at.tool is not None:
            return fnmatchcase(tool.name, at.tool) and self._counts["tool"] >= at.nth
        if at.write is not None:
            return tool.writes and self._counts["write"] >= at.write
        if at.read is not None:
            return not tool.writes and self._counts["read"] >= at.read
        return self._counts["call"] >= (at.call or 1)

    async def _carried_out(self, tool: LiveTool, arguments: Mapping[str, Json]) -> "_Made":
        return _Made.of(await self.handle.call(tool.name, arguments))

    async def _with_effect(self, tool: LiveTool, arguments: Mapping[str, Json]) -> tuple["_Made", bool]:
        """The call carried out, and whether it changed the world."""
        before = await self.handle.snapshot()
        made = await self._carried_out(tool, arguments)
        return made, bool(made.executed) and await self.handle.snapshot() != before

    async def _lost(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> "_Made":
        made, changed = await self._with_effect(tool, arguments)
        return made.instead(CORE_TEXTS[schema.AFTER_EFFECT[fault.kind]]) if changed else made

    async def _no_op(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> "_Made":
        answered, after = await self._tried(tool, arguments)
        if answered.problem is None and after != await self.handle.snapshot():
            return _Made(answered.text, 0, met=True)
        return await self._carried_out(tool, arguments)

    async def _tried(self, tool: LiveTool, arguments: Mapping[str, Json]) -> tuple[Answered, Snapshot]:
        """The call in a copy of the world, and the copy's state after it."""
        tried = await self.handle.copy()
        try:
            return await tried.call(tool.name, arguments), await tried.snapshot()
        finally:
            await tried.close()

    async def _begin_stale(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> "_Made":
        before = await self.handle.copy()
        made, changed = await self._with_effect(tool, arguments)
        if changed:
            self._before = before
        else:
            await before.close()
        return made

    async def _old_or_true(self, before: Handle, tool: LiveTool, arguments: Mapping[str, Json]) -> "_Made":
        """A read while the old state waits to be shown; the copy meets the same reads, so that what they
        themselves move (a working directory) is the same in both."""
        made, moved = await self._with_effect(tool, arguments)
        old = await before.call(tool.name, arguments)
        if moved or not made.executed or old.problem is not None or old.text == made.text:
            return made
        fault = self._fault
        assert fault is not None
        if not isinstance(fault.repeat, int) or self._met + 1 >= fault.repeat:
            await self._drop_before()
        return made.instead(old.text)

    async def _drop_before(self) -> None:
        if self._before is not None:
            before, self._before = self._before, None
            await before.close()

    async def _fabricated(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> "_Made":
        made = await self._carried_out(tool, arguments)
        text = replaced(made.text, fault.path, fault.value) if made.executed else None
        return made if text is None else made.instead(text)

    async def _duplicate(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> "_Made":
        made, changed = await self._with_effect(tool, arguments)
        if not changed:
            return made
        second = await self.handle.call(tool.name, arguments)
        return made._replace(executed=1 if second.problem else 2, met=second.problem is None)

    async def _prerequisite(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> "_Made":
        if fault.tool in self._done or fault.tool == tool.name:
            return await self._carried_out(tool, arguments)
        return _Made(error(f"{fault.tool} must be called first"), 0, met=True)

    async def _strict(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> "_Made":
        wrong = wrong_type(tool.parameters, arguments)
        if wrong is None:
            return await self._carried_out(tool, arguments)
        answered, _ = await self._tried(tool, arguments)
        if answered.problem is not None or failed(answered.text):  # the world itself refuses it
            return await self._carried_out(tool, arguments)
        return _Made(error(f"parameter {wrong.field[:80]!r} must be of type {wrong.expected}"), 0, met=True)

    async def _instructed(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> "_Made":
        made = await self._carried_out(tool, arguments)
        if not made.executed or failed(made.text):
            return made
        return made.instead(made.text + (fault.text or ""))


def meant(tools: Sequence[LiveTool], name: str, arguments: Json) -> LiveTool | None:
    """The tool that a call goes to: of several of one name the first whose schema it fits, or else the
    world's own."""
    named = [tool for tool in tools if tool.name == name]
    if len(named) > 1 and isinstance(arguments, Mapping):
        for tool in named:
            if fits(tool.parameters, arguments):
                return tool
    return min(named, key=lambda tool: tool.distractor, default=None)


class _Made(NamedTuple):
    """What came of a call that was let through to the world, or was not."""

    text: str
    executed: int
    met: bool = False
    true_text: str | None = None
    problem: Literal["timeout", "died"] | None = None

    @classmethod
    def of(cls, answered: Answered) -> "_Made":
        return cls(answered.text, 0 if answered.problem else 1, problem=answered.problem)

    def instead(self, text: str) -> "_Made":
        """The agent is answered `text`, where the world said something else."""
        return self._replace(text=text, met=True, true_text=self.text)


_Answer = Callable[[FaultedWorld, Fault, LiveTool, Mapping[str, Json]], Awaitable[_Made]]

_ANSWERS: dict[str, _Answer] = {
    **dict.fromkeys(schema.AFTER_EFFECT, FaultedWorld._lost),
    "silent_no_op": FaultedWorld._no_op,
    "stale_read": FaultedWorld._begin_stale,
    "fabricated_leaf": FaultedWorld._fabricated,
    "duplicate_effect": FaultedWorld._duplicate,
    "prerequisite": FaultedWorld._prerequisite,
    "strict_types": FaultedWorld._strict,
    "injected_instruction": FaultedWorld._instructed,
}

_UNTIL = ("prerequisite", "strict_types")
"""Kinds that end when the agent does what the text asks for, not after a number of calls."""


def replaced(text: str, path: Sequence[str | int], value: Json) -> str | None:
    """A result with one leaf replaced, written as it was; None where there is no such leaf, where it has that
    value already, or where the result cannot be written again byte for byte."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return None
    ascii_only = next((one for one in (False, True) if json.dumps(whole, ensure_ascii=one) == text), None)
    if ascii_only is None or not path:
        return None
    place = whole
    for step in path[:-1]:
        place = _at(place, step)
    old = _at(place, path[-1])
    if old is _ABSENT or isinstance(old, dict | list) or (type(old) is type(value) and old == value):
        return None
    place[path[-1]] = value
    return json.dumps(whole, ensure_ascii=ascii_only)


_ABSENT = object()


def _at(place: Json, step: str | int) -> Json:
    if isinstance(place, dict) and isinstance(step, str):
        return place.get(step, _ABSENT)
    if isinstance(place, list) and isinstance(step, int) and 0 <= step < len(place):
        return place[step]
    return _ABSENT


def _check(fault: Fault) -> None:
    missing = {
        "fabricated_leaf": None if fault.path else "path",
        "prerequisite": None if fault.tool else "tool",
        "injected_instruction": None if fault.text else "text",
    }.get(fault.kind)
    if missing is not None:
        raise UserError(f"a fault of kind {fault.kind} needs {missing!r}: add it to the row's fault")
    if fault.kind == "stale_read" and fault.repeat == "always":
        raise UserError("a fault of kind stale_read cannot repeat 'always': give a number, or leave it out")
