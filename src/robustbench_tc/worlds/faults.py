"""A world with a fault in front of it: what an agent calls, and what is answered instead.

    world = FaultedWorld(handle, row.tools, row.fault)
    step = await world.call("add_coins", {"amount": 2})     # a schema.Step: executed, met, text, true_text

A kind that is about an effect (an error after it, a write that does nothing, an old state shown, a write
done twice) is met by a call that has one: a call that fails leaves the fault for the next. Everything else
passes unchanged, so that an episode with a fault and its clean one agree up to the call that meets it.
"""

import json
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from msgspec.structs import replace

from .. import schema, taxonomy
from ..schema import Fault, Json, LiveTool, Step
from ..schema.running import RESULT_FAULTS, UNMADE
from .fit import error, failed, fits, wrong_type
from .handle import Answered, Snapshot
from .host import Handle

CORE_TEXTS = {kind: taxonomy.get(kind).injected_error or "" for kind in schema.CORE_TEXTS} | UNMADE
"""What a call is answered by kinds that are the core's, and by those of running systems."""


class FaultedWorld:
    """A world as the agent of one episode meets it. Calls come one after the other."""

    def __init__(self, handle: Handle, tools: Sequence[LiveTool], fault: Fault | None = None) -> None:
        self.handle = handle
        self._tools, self._fault = tuple(tools), fault
        self._counts: Counter[str] = Counter()
        self._met = 0
        self._met_by: str | None = None
        self._done: set[str] = set()
        """Tools that were called with success."""
        self._lost: Answered | None = None
        self._before: Handle | None = None
        """`stale_read`: the world as it was before the write, until it has been shown."""

    async def call(
        self,
        name: str,
        arguments: Json,
        *,
        place: int | None = None,
        aside: bool = False,
        lost: Answered | None = None,
    ) -> Step:
        """One call of the agent's. Never raises for what a model said.

        `place`: which tool of the registry is called, where that is known. `aside`: a read that a defence
        makes, so that a fault meets the agent where it meets an undefended one: it is not counted, and meets
        no fault but one that its tool has met before. `lost`: what the world answers to a call that was cut
        off when it was made before, and is not made again.
        """
        self._lost = lost
        tool = meant(self._tools if place is None else self._tools[place : place + 1], name, arguments)
        refused = Step(name=name, arguments=arguments, text=error("this tool is not available"), executed=0)
        if tool is None:
            return replace(refused, text=error(f"there is no tool {name[:80]!r}"), problem="not_offered")
        if not isinstance(arguments, Mapping):
            return replace(refused, text=error("arguments must be a JSON object"), problem="arguments")
        if tool.distractor:
            return refused
        if aside and self._met_by != tool.name:
            return await self._carried_out(tool, arguments)
        if not aside:
            self._counts.update(kind for kind, counts in self._counted(tool).items() if counts)
        step = await self._answer(tool, arguments)
        if step.met:
            self._met += 1
            self._met_by = tool.name
        if step.executed and not aside and not failed(step.true_text or step.text):
            self._done.add(tool.name)
        return step

    async def close(self) -> None:
        """Gives back the world, and the copy that is kept for a stale read."""
        await self._drop_before()
        await self.handle.close()

    def _counted(self, tool: LiveTool) -> dict[str, bool]:
        """As what a call of a tool counts, of the four that a fault can be placed by."""
        pattern = self._fault.at.tool if self._fault is not None else None
        return {
            "call": True,
            "write": tool.writes,
            "read": not tool.writes,
            "tool": pattern is not None and fnmatchcase(tool.name, pattern),
        }

    async def _answer(self, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        fault = self._fault
        if self._before is not None and not tool.writes:
            return await self._old_or_true(self._before, tool, arguments)
        if fault is None or self._before is not None or not self._stands_before(fault, tool):
            return await self._carried_out(tool, arguments)
        if fault.kind in CORE_TEXTS:
            return _unmade(tool, arguments, CORE_TEXTS[fault.kind])
        if fault.kind == "forbidden":
            return _unmade(tool, arguments, fault.text or "")
        return await _ANSWERS[fault.kind](self, fault, tool, arguments)

    def _stands_before(self, fault: Fault, tool: LiveTool) -> bool:
        """Whether this call, which has been counted, may meet the fault."""
        times = {"once": 1, "always": math.inf}.get(str(fault.repeat), fault.repeat)
        if fault.kind not in _UNTIL and self._met >= float(times):
            return False
        if self._met_by is not None and fault.kind not in ("stale_read", "outage"):
            return tool.name == self._met_by
        kind = next(kind for kind in ("call", "write", "read", "tool") if getattr(fault.at, kind) is not None)
        first: int = {"tool": fault.at.nth}.get(kind) or getattr(fault.at, kind)
        return self._counted(tool)[kind] and self._counts[kind] >= first

    async def _carried_out(self, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        text, problem = self._lost or await self.handle.call(tool.name, arguments)
        executed = 0 if problem else 1
        return Step(name=tool.name, arguments=arguments, text=text, executed=executed, problem=problem)

    async def _with_effect(self, tool: LiveTool, arguments: Mapping[str, Json]) -> tuple[Step, bool]:
        """The call carried out, and whether it changed the world."""
        before = await self.handle.snapshot()
        step = await self._carried_out(tool, arguments)
        return step, bool(step.executed) and await self.handle.snapshot() != before

    async def _after_effect(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        step, changed = await self._with_effect(tool, arguments)
        return _instead(step, CORE_TEXTS[schema.AFTER_EFFECT[fault.kind]]) if changed else step

    async def _no_op(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        answered, after = await self._tried(tool, arguments)
        if answered.problem is None and after != await self.handle.snapshot():
            return _unmade(tool, arguments, answered.text)
        return await self._carried_out(tool, arguments)

    async def _tried(self, tool: LiveTool, arguments: Mapping[str, Json]) -> tuple[Answered, Snapshot]:
        """The call in a copy of the world, and the copy's state after it."""
        tried = await self.handle.copy()
        try:
            return await tried.call(tool.name, arguments), await tried.snapshot()
        finally:
            await tried.close()

    async def _begin_stale(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        before = await self.handle.copy()
        step, changed = await self._with_effect(tool, arguments)
        if changed:
            self._before = before
        else:
            await before.close()
        return step

    async def _old_or_true(self, before: Handle, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        """A read while the old state waits to be shown; the copy meets the same reads, so that what they
        themselves move (a working directory) is the same in both."""
        step, moved = await self._with_effect(tool, arguments)
        old = await before.call(tool.name, arguments)
        if moved or not step.executed or old.problem is not None or old.text == step.text:
            return step
        assert self._fault is not None
        if not isinstance(self._fault.repeat, int) or self._met + 1 >= self._fault.repeat:
            await self._drop_before()
        return _instead(step, old.text)

    async def _drop_before(self) -> None:
        if self._before is not None:
            before, self._before = self._before, None
            await before.close()

    async def _fabricated(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        step = await self._carried_out(tool, arguments)
        text = replaced(step.text, fault.path, fault.value) if step.executed else None
        return step if text is None else _instead(step, text)

    async def _duplicate(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        step, changed = await self._with_effect(tool, arguments)
        if not changed or (await self._carried_out(tool, arguments)).problem:
            return step
        return replace(step, executed=2, met=True)

    async def _prerequisite(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        if fault.tool in self._done or fault.tool == tool.name:
            return await self._carried_out(tool, arguments)
        return _unmade(tool, arguments, error(f"{fault.tool} must be called first"))

    async def _strict(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        wrong = wrong_type(tool.parameters, arguments)
        if wrong is not None:
            answered, _ = await self._tried(tool, arguments)
            if answered.problem is None and not failed(answered.text):  # the world itself takes it
                said = f"parameter {wrong.field[:80]!r} must be of type {wrong.expected}"
                return _unmade(tool, arguments, error(said))
        return await self._carried_out(tool, arguments)

    async def _of_a_result(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        step = await self._carried_out(tool, arguments)
        return _instead(step, RESULT_FAULTS[fault.kind](step.text)) if step.executed else step

    async def _instructed(self, fault: Fault, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        step = await self._carried_out(tool, arguments)
        if not step.executed or failed(step.text):
            return step
        return _instead(step, step.text + (fault.text or ""))


def _unmade(tool: LiveTool, arguments: Mapping[str, Json], text: str) -> Step:
    """A call that meets the fault and is not carried out."""
    return Step(name=tool.name, arguments=arguments, text=text, executed=0, met=True)


def _instead(step: Step, text: str) -> Step:
    """The agent is answered `text`, where the world said something else."""
    return replace(step, text=text, met=True, true_text=step.text)


def meant(tools: Sequence[LiveTool], name: str, arguments: Json) -> LiveTool | None:
    """The tool that a call goes to: of several of one name the first whose schema it fits, or else the
    world's own."""
    named = [tool for tool in tools if tool.name == name]
    several = named if len(named) > 1 and isinstance(arguments, Mapping) else []
    fitting = (tool for tool in several if fits(tool.parameters, arguments))
    return next(fitting, None) or min(named, key=lambda tool: tool.distractor, default=None)


_Answer = Callable[[FaultedWorld, Fault, LiveTool, Mapping[str, Json]], Awaitable[Step]]

_ANSWERS: dict[str, _Answer] = {
    **dict.fromkeys(schema.AFTER_EFFECT, FaultedWorld._after_effect),
    "silent_no_op": FaultedWorld._no_op,
    "stale_read": FaultedWorld._begin_stale,
    "fabricated_leaf": FaultedWorld._fabricated,
    "duplicate_effect": FaultedWorld._duplicate,
    "prerequisite": FaultedWorld._prerequisite,
    "strict_types": FaultedWorld._strict,
    "injected_instruction": FaultedWorld._instructed,
    **dict.fromkeys(RESULT_FAULTS, FaultedWorld._of_a_result),
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
    place: Any = whole
    try:
        for step in path[:-1]:
            place = place[step]
        old = place[path[-1]]
    except (KeyError, IndexError, TypeError):
        return None
    if isinstance(place, str) or isinstance(old, dict | list) or (type(old) is type(value) and old == value):
        return None
    place[path[-1]] = value
    return json.dumps(whole, ensure_ascii=ascii_only)
