"""The trials of a drill: which there are, and how a server goes through them."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress
from types import MappingProxyType
from typing import NamedTuple

from robustbench_tc.option import Tell
from robustbench_tc.own import texts
from robustbench_tc.own.mcp_tools import Server
from robustbench_tc.own.tools import Entry
from robustbench_tc.schema import Json

from .effects import Effect, Facts, changes, facts, tokens
from .inputs import Inputs, Missing, NoAnswer, new_keys
from .link import Answer, Link, connected

NO_WRITE, ONCE, AGAIN, UNREAD = "no write", "once", "once again", "once, unread before"
TWICE, LOST, AT_ONCE, NEW_KEY = "twice", "answer lost", "at the same moment", "a new key"
REPEATED = (TWICE, LOST, AT_ONCE)
"""Trials in which a write is made twice as one that is retried."""

TICK_S = 1.1
"""How long nothing is done before the trial without a write, in it, and between a write and the same again:
clocks of whole seconds move."""
SETTLE_S = 0.2
"""How long a server has to carry a write out after its answer."""


class Seen(NamedTuple):
    """What reads showed, and the arguments with which they were called."""

    results: dict[str, Json]
    arguments: dict[str, dict[str, Json]]


class Trial(NamedTuple):
    """One trial of a server."""

    before: Facts
    after: Facts
    answers: tuple[Answer, ...] = ()
    arguments: Mapping[str, Json] = {}


class Drill:
    """A server, and what is known of it so far."""

    trials = 0
    is_repeatable = False
    """Whether two fresh servers showed the same before anything was written."""
    is_touched = False
    """Whether a fresh server showed what an earlier trial had written."""
    idle = Trial(Facts(), Facts())
    """The trial without a write."""

    def __init__(self, server: Server, tools: list[Entry], inputs: Inputs, progress: Tell) -> None:
        self._server, self.tools, self.inputs, self._progress = server, tools, inputs, progress
        self.reads: list[Entry] = []
        """Those that can be called: they show the state."""
        self.untried: dict[str, str] = {}
        """Tools that were not called, or gave no answer, and why."""
        self.stale: list[str] = []
        """Reads that go on to show what was before a write, once they were called before it."""
        self._first = Seen({}, {})
        """What the reads showed of a fresh server."""

    async def survey(self) -> None:
        """Finds out which reads can be called, and what changes by itself. Raises NoAnswer."""
        kinds = {tool.name: self.inputs.kind_of(tool) for tool in self.tools}
        self.untried |= {
            name: "left out by the inputs file" for name, kind in kinds.items() if kind == "skip"
        }
        wanted = [tool for tool in self.tools if kinds[tool.name] == "read"]
        self.reads = [tool for tool in wanted if texts.verb_of(tool.name) in texts.READS]
        by_hint = [tool for tool in wanted if tool not in self.reads]
        await self._look_twice()
        for tool in by_hint:  # where another read shows that one was called, it is drilled as a write
            with suppress(NoAnswer):  # as one that gives no answer is, and that says why
                if self.inputs.lacking(tool, self._first.results) or not self._unlike(
                    *(await self._trial(ONCE, tool))[:2]
                ):
                    self.reads.append(tool)
        if by_hint:
            await self._look_twice()
        for tool in [tool for tool in self.reads if tool.name not in self._first.results]:
            self.reads.remove(tool)
            self.untried[tool.name] = str(self.inputs.lacking(tool, self._first.results))

    async def _look_twice(self) -> None:
        """Two fresh servers without a write, in the second one before and after a clock has moved. A read
        that does not answer is left out from here on."""
        self._progress(NO_WRITE)
        shown = Seen({}, {})
        try:
            async with self._fresh(NO_WRITE) as link:
                await self._look(link, shown)
        except NoAnswer as error:
            silent = {name: str(error) for name in shown.arguments.keys() - shown.results.keys()}
            if not silent:
                raise
            self.untried |= silent
            self.reads = [tool for tool in self.reads if tool.name not in silent]
            return await self._look_twice()
        await asyncio.sleep(TICK_S)
        async with self._fresh(NO_WRITE) as link:
            self._first = await self._look(link, Seen({}, {}))
            await asyncio.sleep(TICK_S)
            after = await self._look(link, Seen({}, {}), self._first.arguments)
        self.idle = Trial(facts(self._first.results), facts(after.results))
        self.is_repeatable = not self._unlike(facts(shown.results), self.idle.before)

    @property
    def asked(self) -> dict[str, dict[str, Json]]:
        """The arguments with which reads are called."""
        return self._first.arguments

    def by_itself(self, stable: frozenset[str]) -> frozenset[tuple[str, str]]:
        """The kinds of changes that come without a write."""
        found = changes(self.idle.before, self.idle.after, stable)
        return frozenset(change.kind(stable) for change in found)

    def _unlike(self, before: Facts, after: Facts) -> frozenset[str]:
        """The reads that show a change which does not come by itself."""
        stable = tokens(before) & tokens(after) & tokens(self.idle.before)
        found = Effect(changes(before, after, stable), stable, self.by_itself(stable)).changes
        return frozenset(
            name
            for name in self._first.results
            if any(f"{change.path}.".startswith(f"{name}.") for change in found)
        )

    def _fresh(self, doing: str) -> AbstractAsyncContextManager[Link]:
        self.trials += 1
        return connected(self._server, self.tools, self.inputs.reset, doing)

    async def _look(
        self, link: Link, seen: Seen, known: Mapping[str, dict[str, Json]] = MappingProxyType({})
    ) -> Seen:
        """Calls the reads, those first that need nothing which others return; with the same arguments where
        they are known. What `seen` has already is not asked; it holds what was seen so far where a read
        does not answer."""
        for tool in [*self.reads] * len(self.reads):  # each round may return what another read needs
            if tool.name not in seen.results:
                with suppress(Missing):
                    arguments = known.get(tool.name) or self.inputs.arguments(tool, seen.results, {})
                    seen.arguments[tool.name] = arguments
                    answer = await link.call(tool.name, arguments)
                    seen.results[tool.name] = {"error": answer.text} if answer.failed else answer.value
        return seen

    async def _trial(self, kind: str, tool: Entry) -> Trial:
        """One trial of a write. Raises NoAnswer."""
        self._progress(f"{tool.name}: {kind}")
        left_out = [*self._first.results] if kind == UNREAD else self.stale
        known = ({name: one[name] for name in left_out} for one in self._first)
        async with self._fresh(kind) as link:
            seen = await self._look(link, Seen(*known))
            first = self.inputs.arguments(tool, seen.results, new_keys(tool, seen.results))
            second = first | new_keys(tool, seen.results) if kind == NEW_KEY else first
            calls = [first] if kind in (ONCE, AGAIN, UNREAD) else [first, second]
            if kind == LOST:
                link.lose_next(tool.name)
            if kind == AT_ONCE:
                answers = await asyncio.gather(*(link.call(tool.name, one) for one in calls))
            else:
                answers = [await link.call(tool.name, one) for one in calls]
            await asyncio.sleep(SETTLE_S)
            after = await self._look(link, Seen({}, {}), seen.arguments)
        before = facts(seen.results)
        if self.is_repeatable and not left_out:
            self.is_touched |= bool(self._unlike(self.idle.before, before))
        return Trial(before, facts(after.results), tuple(answers), first)

    async def write(self, tool: Entry) -> dict[str, Trial]:
        """The trials of a write. Raises NoAnswer where one has no answer, and where the first is an error."""
        if (lacking := self.inputs.lacking(tool, self._first.results)) is not None:
            raise NoAnswer(lacking)
        once = await self._trial(ONCE, tool)
        shown = self._unlike(once.before, once.after)
        if once.answers[0].failed and not shown:
            raise NoAnswer(f"the call is an error: {' '.join(once.answers[0].text.split())[:300]}")
        await asyncio.sleep(TICK_S)  # what both bring is no clock's
        found = {ONCE: once, AGAIN: await self._trial(AGAIN, tool)}
        if self.is_repeatable and not self.is_touched:
            unread = await self._trial(UNREAD, tool)
            hidden = self._unlike(once.before, unread.after) - shown
            if hidden and not unread.answers[0].failed:
                self.stale += sorted(hidden)
                found = {kind: await self._trial(kind, tool) for kind in (ONCE, AGAIN)}
        kinds = (*REPEATED, NEW_KEY) if new_keys(tool, self._first.results) else REPEATED
        return found | {kind: await self._trial(kind, tool) for kind in kinds}
