"""What a scripted agent knows of its task: gold's results, where gold's values come from, which read shows a
write.

Worked out from the clean row alone, by playing gold in a world of its own in this process. For a world that
another Python runs (BFCL's) there are no results: agents then use gold's values as they stand, and verify
nothing.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Call, Json, LiveRow, LiveTool
from robustbench_tc.worlds.base import World
from robustbench_tc.worlds.find import classes, find
from robustbench_tc.worlds.handle import Start, load_file

from .carrying_out import Path, leaves, parsed

_TRIALS = 60
"""So many calls of one read are tried to see whether it shows a write."""


_ID = "#"
"""Stands for a generated id."""


Origin = tuple[int, Path]
"""A value of gold's that an earlier result has: which of gold's calls, and where in its result."""


class Shown(NamedTuple):
    """A read that shows whether a write happened."""

    read: Call
    none: str
    """Its result where the write did not happen; ids are replaced by a sign, as in the next two."""
    once: str
    twice: str


class Rehearsal:
    """Gold, played once. Calls are counted over all turns, from 0."""

    def __init__(self, row: LiveRow) -> None:
        self.calls = [call for turn in row.golden_calls for call in turn]
        self._start: Start = msgspec.convert(row.initial_state, Start)
        self.tools = {tool.name: tool for tool in reversed(row.tools) if not tool.distractor}
        self._row, self._turns = row, [at for at, calls in enumerate(row.golden_calls) for _ in calls]
        kind, self.classes = _played(row.world)
        self._open = None if kind is None else partial(kind, self._start.state, self._start.seed)
        self.results: list[str] = []
        self._ids: list[str] = []
        if self._open is not None:
            world = self._open()
            self.results = [world.call(call.name, call.parameters) for call in self.calls]
            self._ids = world.generated()
        shapes = {re.sub("[0-9]", r"\\d", re.escape(one)) for one in self._ids}
        self._shape = re.compile("|".join(sorted(shapes, key=len, reverse=True)) or "(?!)")
        """Of generated ids; where there are none, nothing has it."""

    def without_ids(self, text: str) -> str:
        """A result with everything that has the shape of a generated id replaced by a sign."""
        return self._shape.sub(_ID, text)

    def with_ids_of(self, result: str, seen: str) -> str:
        """A result of gold's whose new ids are those that a later read shows, where the two have the same
        number of ids that are new at this point; else the result as it is."""
        here = [one for one in self._ids if one in result]
        there = list(dict.fromkeys(self._shape.findall(seen)))
        if not set(here) <= set(there):
            fresh = [
                one for one in there if one not in self._ids and not any(one in text for text in self.results)
            ]
            if len(fresh) == len(here):
                for mine, theirs in zip(here, fresh, strict=True):
                    result = result.replace(mine, theirs)
        return result

    def others(self, known: str, seen: str, earlier: str) -> list[str]:
        """Ids of the shape of a known one that a read shows, and that were not in the world at the beginning
        nor in an earlier result."""
        start = json.dumps(self._start.state)
        shape = re.compile(re.sub("[0-9]", r"\\d", re.escape(known)))
        return [one for one in dict.fromkeys(shape.findall(seen)) if one not in earlier and one not in start]

    @cache  # noqa: B019 - one rehearsal a row, kept to the end of the process
    def origins(self, number: int) -> dict[Path, Origin]:
        """Arguments of one of gold's calls that stand in no words of the user's and in an earlier result."""
        found = {}
        turns = self._row.turns[: self._turns[number] + 1]
        heard = " ".join(str(message.content) for turn in turns for message in turn.messages)
        for path, value in leaves(self.calls[number].parameters):
            said = rf"(?<![\w-]){re.escape(str(value))}(?![\w-])"
            if isinstance(value, bool) or value is None or re.search(said, heard):
                continue
            places = (
                (earlier, at)
                for earlier, result in enumerate(self.results[:number])
                for at, one in leaves(parsed(result))
                if type(one) is type(value) and one == value
            )
            if (origin := next(places, None)) is not None:
                found[path] = origin
        return found

    @cache  # noqa: B019 - few rehearsals are kept at a time
    def shown_by(self, number: int) -> Shown | None:
        """A read whose result differs with one of gold's writes not made, made, and made twice; the last two
        may be the same where no read tells them apart. One that shows an id for each is preferred."""
        if self._open is None:
            return None
        tool = self.tools[self.calls[number].name]
        worlds = [self._open() for _ in range(3)]
        for times, world in enumerate(worlds):
            for call in [*self.calls[:number], *[self.calls[number]] * times]:
                world.call(call.name, call.parameters)
        found: list[Shown] = []
        for read in self.reads(number):
            shown = Shown(read, *(self.without_ids(one.call(read.name, read.parameters)) for one in worlds))
            if shown.none != shown.once:
                found.append(shown)
                if tool.idempotent or shown.once.count(_ID) < shown.twice.count(_ID):
                    return shown
        return max(found, key=lambda one: one.once != one.twice, default=None)  # the first of equals

    def reads(self, number: int) -> Iterator[Call]:
        """Reads that are offered at one of gold's calls, with arguments from what is known by then."""
        given = (leaf for call in self.calls[: number + 1] for leaf in leaves(call.parameters))
        shown = (leaf for result in self.results[:number] for leaf in leaves(parsed(result)))
        seen = [(str(path[0]), value) for path, value in given]
        seen += [(next((at for at in reversed(path) if isinstance(at, str)), ""), v) for path, v in shown]
        seen = [(name, v) for name, v in seen if isinstance(v, str | int | float) and not isinstance(v, bool)]
        offered = {tool.name for tool in self._row.offered(self._turns[number])}
        reads = [one for one in self.tools.values() if not one.writes and one.name in offered]
        names = {tool.name for tool in reads}
        yield from (call for call in self.calls if call.name in names)
        for tool in reads:
            yield from _trials(tool, seen)


def _trials(tool: LiveTool, seen: Sequence[tuple[str, Json]]) -> Iterator[Call]:
    """Calls of a read with known values: those that were seen under the parameter's name first."""
    made: list[dict[str, Json]] = [{}]
    for name in tool.plain.required:
        schema: dict[str, Any] = tool.plain.properties.get(name) or {}
        kinds = _KINDS.get(str(schema.get("type")), ())
        known = dict.fromkeys([*(v for at, v in seen if at == name), *(v for _, v in seen)])
        values = schema.get("enum") or [one for one in known if isinstance(one, kinds)]
        if schema.get("type") == "array":
            values = [[one] for one in dict.fromkeys(v for _, v in seen)]
        made = [{**one, name: value} for one in made for value in values][:_TRIALS]
    yield from (Call(tool.name, one) for one in made)


_KINDS: dict[str, Any] = {"string": str, "integer": int, "number": (int, float)}


@lru_cache(maxsize=256)
def _rehearsed(row: bytes) -> Rehearsal:
    return Rehearsal(msgspec.json.decode(row, type=LiveRow))


def rehearsal(row: LiveRow) -> Rehearsal:
    """The rehearsal of a clean row, made once for all agents that play it."""
    return _rehearsed(msgspec.json.encode(row))


@cache
def _played(name: str) -> tuple[type[World] | None, Mapping[str, str]]:
    """The class of a world that runs in this process, and what people call the work of each tool; neither of
    a world that is not at hand."""
    try:
        world = find(name)
    except UserError:
        return None, {}
    named = {tool: one.name for one in classes(world) for tool in one.tools}
    return None if world.python is not None else load_file(world.file).WORLD, named
