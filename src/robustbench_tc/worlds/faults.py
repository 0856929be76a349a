"""A world with a fault in front of it: what an agent calls, and what is answered instead.

    world = FaultedWorld(handle, row.tools, row.fault)
    step = await world.call("add_coins", {"amount": 2})     # a schema.Step: executed, met, text, true_text

A kind that is about an effect (an error after it, a write that does nothing, an old state shown, a write
done twice) is met by a call that has one: a call that fails leaves the fault for the next. Everything else
passes unchanged, so that an episode with a fault and its clean one agree up to the call that meets it.

Of several faults (`Fault.then`) each counts all calls, and a call is for the first that stands before it.
"""

import functools
import json
import math
import operator
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from fnmatch import fnmatchcase

from msgspec.structs import replace

from .. import schema, taxonomy
from ..schema import Fault, Json, LiveTool, Step
from ..schema.running import RESULT_FAULTS, UNMADE
from .fit import error, failed, fits, wrong_type
from .handle import Answered, Snapshot
from .host import Handle

CORE_TEXTS = {kind: taxonomy.get(kind).injected_error or "" for kind in schema.CORE_TEXTS} | UNMADE
"""What a call is answered by kinds that are the core's, and by those of running systems."""


class _Standing:
    """A fault in one episode, with what it has counted and met."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.counts: Counter[str] = Counter()
        self.met = 0
        self.met_by: str | None = None
        self.before: Handle | None = None
        """`stale_read`: the world as it was before the write, until it has been shown."""

    def counted(self, tool: LiveTool) -> dict[str, bool]:
        """As what a call of a tool counts, of the four that a fault can be placed by."""
        pattern = self.fault.at.tool
        return {
            "call": True,
            "write": tool.writes,
            "read": not tool.writes,
            "tool": pattern is not None and fnmatchcase(tool.name, pattern),
        }

    def stands_before(self, tool: LiveTool) -> bool:
        """Whether a call of a tool, which has been counted, may meet the fault."""
        fault = self.fault
        times = {"once": 1, "always": math.inf}.get(str(fault.repeat), fault.repeat)
        if fault.kind not in _UNTIL and self.met >= float(times):
            return False
        if self.met_by is not None and fault.kind not in ("stale_read", "outage"):
            return tool.name == self.met_by
        kind = next(kind for kind in ("call", "write", "read", "tool") if getattr(fault.at, kind) is not None)
        first: int = {"tool": fault.at.nth}.get(kind) or getattr(fault.at, kind)
        return self.counted(tool)[kind] and self.counts[kind] >= first


class FaultedWorld:
    """A world as the agent of one episode meets it. Calls come one after the other."""

    def __init__(self, handle: Handle, tools: Sequence[LiveTool], fault: Fault | None = None) -> None:
        self.handle = handle
        self._tools = tuple(tools)
        self._faults = [_Standing(one) for one in (fault, *fault.then)] if fault is not None else []
        self._done: set[str] = set()
        """Tools that were called with success."""
        self._lost: Answered | None = None

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
        for one in self._faults if not aside else ():
            one.counts.update(kind for kind, counts in one.counted(tool).items() if counts)
        step = await self._answer(tool, arguments, aside)
        if step.executed and not aside and not failed(step.true_text or step.text):
            self._done.add(tool.name)
        return step

    async def aclose(self) -> None:
        """Gives back the world, and the copies that are kept for stale reads."""
        for one in self._faults:
            await self._drop_before(one)
        await self.handle.aclose()

    async def _answer(self, tool: LiveTool, arguments: Mapping[str, Json], aside: bool) -> Step:
        for number, one in enumerate(self._faults):
            if aside and one.met_by != tool.name:
                continue
            if one.before is not None and not tool.writes:
                step = await self._old_or_true(one, one.before, tool, arguments)
            elif one.before is not None or not one.stands_before(tool):
                continue
            elif one.fault.kind in CORE_TEXTS:
                step = _unmade(tool, arguments, CORE_TEXTS[one.fault.kind])
            elif one.fault.kind == "forbidden":
                step = _unmade(tool, arguments, one.fault.text or "")
            else:
                step = await _ANSWERS[one.fault.kind](self, one, tool, arguments)
            if step.met:
                one.met, one.met_by, step = one.met + 1, tool.name, replace(step, fault=number)
            return step
        return await self._carried_out(tool, arguments)

    async def _carried_out(self, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        text, problem = self._lost or await self.handle.call(tool.name, arguments)
        executed = 0 if problem else 1
        return Step(name=tool.name, arguments=arguments, text=text, executed=executed, problem=problem)

    async def _with_effect(self, tool: LiveTool, arguments: Mapping[str, Json]) -> tuple[Step, bool]:
        """The call carried out, and whether it changed the world."""
        before = await self.handle.snapshot()
        step = await self._carried_out(tool, arguments)
        return step, bool(step.executed) and await self.handle.snapshot() != before

    async def _after_effect(self, one: _Standing, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        step, changed = await self._with_effect(tool, arguments)
        return _instead(step, CORE_TEXTS[schema.AFTER_EFFECT[one.fault.kind]]) if changed else step

    async def _no_op(self, one: _Standing, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        answered, after = await self._tried(tool, arguments)
        if answered.problem is None and after != await self.handle.snapshot():
            return _unmade(tool, arguments, answered.text)
        return await self._carried_out(tool, arguments)

    async def _tried(self, tool: LiveTool, arguments: Mapping[str, Json]) -> tuple[Answered, Snapshot]:
        """The call in a copy of the world, and the copy's state after it."""
        async with aclosing(await self.handle.copy()) as tried:
            return await tried.call(tool.name, arguments), await tried.snapshot()

    async def _begin_stale(self, one: _Standing, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        before = await self.handle.copy()
        step, changed = await self._with_effect(tool, arguments)
        if changed:
            one.before = before
        else:
            await before.aclose()
        return step

    async def _old_or_true(
        self, one: _Standing, before: Handle, tool: LiveTool, arguments: Mapping[str, Json]
    ) -> Step:
        """A read while the old state waits to be shown; the copy meets the same reads, so that what they
        themselves move (a working directory) is the same in both."""
        step, moved = await self._with_effect(tool, arguments)
        old = await before.call(tool.name, arguments)
        if moved or not step.executed or old.problem is not None or old.text == step.text:
            return step
        repeat = one.fault.repeat
        if not isinstance(repeat, int) or one.met + 1 >= repeat:
            await self._drop_before(one)
        return _instead(step, old.text)

    async def _drop_before(self, one: _Standing) -> None:
        if one.before is not None:
            before, one.before = one.before, None
            await before.aclose()

    async def _altered(self, one: _Standing, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        step = await self._carried_out(tool, arguments)
        text = _altered(one.fault, step.text) if step.executed else None
        return step if text is None else _instead(step, text)

    async def _duplicate(self, one: _Standing, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        step, changed = await self._with_effect(tool, arguments)
        if not changed or (await self._carried_out(tool, arguments)).problem:
            return step
        return replace(step, executed=2, met=True)

    async def _prerequisite(self, one: _Standing, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        wanted = one.fault.tool
        if wanted in self._done or wanted == tool.name:
            return await self._carried_out(tool, arguments)
        return _unmade(tool, arguments, error(f"{wanted} must be called first"))

    async def _strict(self, one: _Standing, tool: LiveTool, arguments: Mapping[str, Json]) -> Step:
        wrong = wrong_type(tool.parameters, arguments)
        if wrong is not None:
            answered, _ = await self._tried(tool, arguments)
            if answered.problem is None and not failed(answered.text):  # the world itself takes it
                said = f"parameter {wrong.field[:80]!r} must be of type {wrong.expected}"
                return _unmade(tool, arguments, error(said))
        return await self._carried_out(tool, arguments)


def _altered(fault: Fault, text: str) -> str | None:
    """What the agent gets of a result; None where that is the result."""
    if fault.kind == "fabricated_leaf":
        return replaced(text, fault.path, fault.value)
    if fault.kind == "injected_instruction":
        return None if failed(text) else text + (fault.text or "")
    return RESULT_FAULTS[fault.kind](text)


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


_Answer = Callable[[FaultedWorld, _Standing, LiveTool, Mapping[str, Json]], Awaitable[Step]]

_ANSWERS: dict[str, _Answer] = {
    **dict.fromkeys(schema.AFTER_EFFECT, FaultedWorld._after_effect),
    "silent_no_op": FaultedWorld._no_op,
    "stale_read": FaultedWorld._begin_stale,
    "duplicate_effect": FaultedWorld._duplicate,
    "prerequisite": FaultedWorld._prerequisite,
    "strict_types": FaultedWorld._strict,
    **dict.fromkeys(("fabricated_leaf", "injected_instruction", *RESULT_FAULTS), FaultedWorld._altered),
}

_UNTIL = ("prerequisite", "strict_types")
"""Kinds that end when the agent does what the text asks for, not after a number of calls."""


def replaced(text: str, path: Sequence[str | int], value: Json) -> str | None:
    """A result with one leaf replaced, written as it was; None where there is no such leaf, where it has that
    value already, or where the result cannot be written again byte for byte."""
    try:
        whole: Json = json.loads(text)
        *way, last = path
        place = functools.reduce(operator.getitem, way, whole)
        old = place[last]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    ascii_only = next((one for one in (False, True) if json.dumps(whole, ensure_ascii=one) == text), None)
    same = type(old) is type(value) and old == value
    if ascii_only is None or isinstance(place, str) or isinstance(old, dict | list) or same:
        return None
    place[last] = value
    return json.dumps(whole, ensure_ascii=ascii_only)
