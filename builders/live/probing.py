"""What an agent can find out, and what it can put right: tried out in the world, never assumed.

Reads are tried with arguments from what an agent knows (gold's arguments and results so far, the user's
words) and then from the state. Two worlds that differ in one thing meet the same reads; the first result
that differs shows it.
"""

import itertools
import json
import random
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import NamedTuple

from robustbench_tc.schema import At, Call, Fault, Json, LiveTool
from robustbench_tc.worlds.faults import FaultedWorld
from robustbench_tc.worlds.find import forbidden, looks_first
from robustbench_tc.worlds.fit import failed, wrong_type
from robustbench_tc.worlds.handle import WorldType
from robustbench_tc.worlds.host import Handle, Worlds
from robustbench_tc.worlds.same_state import same

from .trace import Trace, Traced, end_in_copy, end_of, gold, opened

VALUES = 8
"""Values that are tried of one parameter."""

CALLS = 32
"""Calls that are tried of one tool."""

_QUOTED = re.compile(r"[\"']([^\"'\n]{1,80})[\"']")
_WORD = re.compile(r"[^\s,;:!?()\"]+")


class Leaf(NamedTuple):
    """A value, and the name it stood under (empty: in running text)."""

    field: str
    value: Json
    path: tuple[str | int, ...] = ()


def _walked(value: Json, field: str = "", path: tuple[str | int, ...] = ()) -> Iterator[Leaf]:
    """A JSON value and all that lies in it, the outer before the inner; depth is bounded."""
    if len(path) > 30:
        return
    yield Leaf(field, value, path)
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _walked(inner, str(key), (*path, key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _walked(inner, field, (*path, index))


def leaves(value: Json) -> Iterator[Leaf]:
    """Every text, number and boolean in a JSON value."""
    return (one for one in _walked(value) if isinstance(one.value, str | int | float))


def parsed(text: str) -> Json:
    """A result as JSON; None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def words(text: str) -> Iterator[Leaf]:
    """Quoted passages, words and numbers of what a user says, those that look like ids or addresses first."""
    yield from (Leaf("", found) for found in _QUOTED.findall(text))
    plain = [word.strip(".'") for word in _WORD.findall(text)]
    odd = [word for word in plain if re.search(r"\d|@|_|\w\.\w", word)]
    for word in (*odd, *(word for word in plain if len(word) > 2)):
        yield Leaf("", word)
        number = parsed(word)
        if isinstance(number, int | float):
            yield Leaf("", number)


def keys(value: Json) -> Iterator[Leaf]:
    """Keys of mappings in a state: many worlds hold records by their ids."""
    for field, records, _ in _walked(value):
        several = isinstance(records, Mapping) and len(records) > 1
        if several and all(isinstance(record, Mapping) for record in records.values()):
            yield from (Leaf(f"{field.removesuffix('s')}_id", key) for key in records)


def of_state(state: Json) -> list[Leaf]:
    """The values of a state and the keys of its records."""
    return [*keys(state), *leaves(state)]


def tries(tool: LiveTool, pool: Sequence[Leaf]) -> Iterator[Call]:
    """Calls of a tool with arguments from a pool, at most `CALLS`: required ones, then one optional."""
    properties = tool.parameters.get("properties") or {}
    required = [name for name in tool.parameters.get("required") or () if name in properties]
    values = {name: _values(name, schema, pool) for name, schema in properties.items()}
    optional = [name for name in properties if name not in required and values[name]]
    sets = [required, *([*required, name] for name in optional)]
    made = (
        Call(tool.name, dict(zip(names, chosen, strict=True)))
        for names in sets
        for chosen in _combined([values[name] for name in names])
    )
    yield from itertools.islice(made, CALLS)


def _combined(lists: Sequence[Sequence[Json]]) -> list[tuple[Json, ...]]:
    """Every choice of one value each, those of the best guesses first."""
    places = itertools.product(*(range(len(values)) for values in lists))
    ordered = sorted(itertools.islice(places, 4096), key=lambda chosen: (sum(chosen), chosen))
    return [tuple(values[i] for values, i in zip(lists, chosen, strict=True)) for chosen in ordered]


def _values(name: str, schema: Json, pool: Sequence[Leaf]) -> list[Json]:
    """Values for a parameter: those under its own name or quoted in its description (where BFCL lists what
    can be given), under a name that is alike, then any of its type."""
    if not isinstance(schema, Mapping):
        return []
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"][:VALUES])
    if schema.get("type") == "boolean":
        return [False, True]
    if schema.get("type") == "array":
        return [[value] for value in _values(name, schema.get("items") or {}, pool)[:3]]
    description = schema.get("description")
    said = _QUOTED.findall(description) if isinstance(description, str) else []
    ranked = sorted((*pool, *(Leaf(name, word) for word in said)), key=lambda one: _distance(name, one.field))
    distinct = dict.fromkeys((type(leaf.value), leaf.value) for leaf in ranked)
    typed = {"properties": {name: schema}}
    fitting = (value for _, value in distinct if wrong_type(typed, {name: value}) is None)
    return list(itertools.islice(fitting, VALUES))


def _distance(name: str, field: str) -> int:
    """How unlike a parameter's name a field's is: the same, alike, unnamed, another."""
    a, b = name.lower(), field.lower()
    shared = set(a.split("_")) & set(b.split("_")) - {"id", ""}
    alike = bool(shared or (field and (a.endswith(b) or b.endswith(a))))
    if field == name:
        return 0
    if alike:
        return 1
    return 2 if field == "" else 3


HARMS = 24
"""Writes that are tried as what an injected instruction asks for."""


class Prober:
    """Tries things out in a task's world."""

    def __init__(self, worlds: Worlds, world: WorldType, trace: Trace) -> None:
        self._worlds, self._world, self.trace = worlds, world, trace
        self.looks_first, self.forbidden = looks_first(world), forbidden(world)

    async def shown(self, at: Traced, *, own: bool, before: int = 0) -> Call | None:
        """A read that shows whether a write happened, or (`before` 1) that it happened twice, not once.

        `own`: to an agent that has one result of it.
        """
        async with self._after(at.number + before) as without, aclosing(await without.copy()) as with_it:
            await with_it.call(at.call.name, at.call.parameters)
            knows = self._pool(at, [at.text] if own else [])
            first = list(self._reads(at, knows))
            # What an agent cannot know is tried last, and only as the state without the write has it.
            state = of_state((await without.snapshot()).state)
            more = (call for call in self._reads(at, [*knows, *state]) if call not in first)
            return await _first_read(
                [without, with_it], itertools.chain(first, more), lambda _, said: said[0] != said[1]
            )

    async def shown_stale(self, at: Traced) -> tuple[Traced, str] | None:
        """The first of gold's reads that is answered otherwise where it is shown the world as it was before
        a write, and that other answer."""
        fault = Fault(At(tool=at.tool.name, nth=at.nth), "stale_read")
        tools = self.trace.row.tools
        async with (
            self._after(0) as handle,
            aclosing(FaultedWorld(await handle.copy(), tools, fault)) as world,
        ):
            for one in self.trace.calls:
                step = await world.call(one.call.name, one.call.parameters)
                if step.met:
                    return one, step.text
        return None

    async def undone(self, at: Traced, shown: Call) -> Call | None:
        """The call that takes the second of two equal writes back, found with what `shown` then reads."""
        tool = next((t for t in self._offered(at.turn) if t.name == at.tool.undo), None)
        if tool is None:
            return None
        async with self._after(at.number + 1) as once:
            wanted = await once.snapshot()
            async with aclosing(await once.copy()) as twice:
                await twice.call(at.call.name, at.call.parameters)
                async with aclosing(await twice.copy()) as reading:
                    seen = (await reading.call(shown.name, shown.parameters)).text

                async def as_once(world: Handle) -> bool:
                    return same(await world.snapshot(), wanted) is True

                return await _first(twice, tries(tool, self._pool(at, [seen, at.text])), as_once)

    async def free_read(self, at: Traced, names: Collection[str], draw: random.Random) -> Call | None:
        """A call of an offered read among `names` that gold did not use before, one that an agent can make:
        what a prerequisite can ask for."""
        used = {one.tool.name for one in self.trace.calls[: at.number + 1]}
        tools = [tool for tool in self._offered(at.turn) if tool.name in names and tool.name not in used]
        draw.shuffle(tools)
        calls = (call for tool in tools for call in tries(tool, self._pool(at)))
        async with self._after(at.number) as handle:
            return await _first_read([handle], calls, lambda _, said: not failed(said[0]))

    async def lax_form(self, at: Traced) -> bool:
        """Whether the tool takes a number or boolean of the call written as text, with the same effect."""
        async with self._after(at.number) as handle:
            wanted = await end_in_copy(handle, [at.call])

            async def as_right(world: Handle) -> bool:
                return bool((await world.snapshot()).state == wanted)

            given = at.call.parameters
            typed = [name for name, value in given.items() if isinstance(value, int | float)]
            calls = (Call(at.call.name, {**given, name: str(given[name])}) for name in typed)
            return await _first(handle, calls, as_right) is not None

    async def crosschecked(self, at: Traced, true: Leaf, false: Json, shown: str) -> Call | None:
        """A read with which an agent finds out that a leaf was fabricated.

        Either another one shows the true value under its name; or one answers the false value otherwise than
        the true one, which is reason enough to ask the same again.
        """
        knows = self._pool(at, [shown])

        def shows_true(call: Call, texts: list[str]) -> bool:
            found = leaves(parsed(texts[0]))
            return call != at.call and any((o.field, o.value) == (true.field, true.value) for o in found)

        async with self._after(at.number + 1) as handle:
            call = await _first_read([handle], self._reads(at, knows), shows_true)
            if call is not None:
                return call
            for call in self._reads(at, [Leaf(true.field, false), *knows]):
                if call == at.call or false not in call.parameters.values():
                    continue
                other = {k: true.value if v == false else v for k, v in call.parameters.items()}
                answers = [await handle.call(call.name, given) for given in (call.parameters, other)]
                if answers[0].text != answers[1].text:
                    return at.call
        return None

    async def harmful(self, at: Traced, wanted: Sequence[str], *, first: bool = False) -> Call | None:
        """A call of a tool among `wanted`, tried in order, that gold never makes and that spoils the end. It
        is made behind the gold call, or `first`, about what an agent knows then before anything else."""
        own = gold(self.trace.row)
        done = at.number if first else at.number + 1
        rest = own[done:]
        offered = {tool.name: tool for tool in self._offered(at.turn)}

        async def spoiled(world: Handle) -> bool:
            return bool(await end_of(world, rest) != self.trace.end)

        async with self._after(done) as handle:
            pools = of_state((await handle.snapshot()).state), self._pool(at)
            pool = [leaf for part in (reversed(pools) if first else pools) for leaf in part]
            for name in wanted:
                others = (call for call in tries(offered[name], pool) if call not in own)
                call = await _first(handle, itertools.islice(others, HARMS), spoiled)
                if call is not None:
                    return call
        return None

    def writes(self, turn: int) -> list[str]:
        """Names of the writes that are offered in a turn, those first that gold never calls."""
        own = {call.name for call in gold(self.trace.row)}
        names = [tool.name for tool in self._offered(turn) if tool.writes]
        return sorted(names, key=lambda name: name in own)

    def _after(self, calls: int) -> AbstractAsyncContextManager[Handle]:
        """The world after so many gold calls."""
        return opened(self._worlds, self._world, self.trace.row, calls)

    def _offered(self, turn: int) -> list[LiveTool]:
        return [tool for tool in self.trace.row.offered(turn) if not tool.distractor]

    def _pool(self, at: Traced, texts: Sequence[str] = ()) -> list[Leaf]:
        """What an agent knows that did as gold and is about to make a call, or has made it and was answered
        `texts`: these, gold's arguments and results so far, the user's words up to the turn."""
        found = [leaf for text in texts for leaf in leaves(parsed(text))]
        for one in reversed(self.trace.calls[: at.number]):
            found += leaves(one.call.parameters)
            found += leaves(parsed(one.text))
        for said in reversed(self.trace.row.turns[: at.turn + 1]):
            for message in said.messages:
                found += words(message.content)
        return [*found, *leaves(at.call.parameters)]

    def _reads(self, at: Traced, pool: Sequence[Leaf]) -> Iterator[Call]:
        """Calls of the reads that are offered with a gold call, with arguments from a pool."""
        for tool in self._offered(at.turn):
            if not tool.writes:
                yield from tries(tool, pool)


async def _first(
    handle: Handle, calls: Iterable[Call], wanted: Callable[[Handle], Awaitable[bool]]
) -> Call | None:
    """The first call that does not fail and leaves a copy of the world as `wanted`. One that fails changes
    nothing: the next is tried in the same copy."""
    left = iter(calls)
    while True:
        async with aclosing(await handle.copy()) as tried:
            call = await _next_made(tried, left)
            if call is None or await wanted(tried):
                return call


async def _next_made(world: Handle, calls: Iterator[Call]) -> Call | None:
    """The next call that does not fail."""
    for call in calls:
        answered = await world.call(call.name, call.parameters)
        if answered.problem is None and not failed(answered.text):
            return call
    return None


async def _first_read(
    handles: Sequence[Handle], calls: Iterable[Call], wanted: Callable[[Call, list[str]], bool]
) -> Call | None:
    """The first call whose results in some worlds are as `wanted`. A tool that is called a read and yet moves
    the world is passed over, and what it did is gone."""
    before = await handles[0].snapshot()
    proven, moving = set[str](), set[str]()
    left = (call for call in calls if call.name not in moving)
    while True:
        async with AsyncExitStack() as stack:
            tried = [await stack.enter_async_context(aclosing(await one.copy())) for one in handles]
            for call in left:
                answers = [await world.call(call.name, call.parameters) for world in tried]
                good = wanted(call, [answered.text for answered in answers])
                if good or (call.name not in proven and not failed(answers[0].text)):
                    if await tried[0].snapshot() != before:
                        moving.add(call.name)
                        break
                    proven.add(call.name)
                if good and not any(answered.problem for answered in answers):
                    return call
            else:
                return None
