"""What is done about the calls of a reply, in order: each as it is, and what `--defend retry` adds to it.

    steps = carried_out(wanted, retry)      # yields what to call, is sent what came of it, returns the steps

A call that met a transient error is repeated without the agent. A read and an idempotent write at once; any
other write only where reads show that it has not happened. They are found in the registry alone: a read
that is asked about the very things that the write was called with, or, where there is none, the one that the
write's own description names and that showed its argument before. They are made before the write and behind
the error, and compared. Where they differ it happened, and the agent is told so, with what is new; where
there is none, or one fails or changes by itself, nothing is repeated and the agent decides.
"""

import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from robustbench_tc.schema import Call, Json, LiveTool, Step, dumps
from robustbench_tc.worlds.faults import meant

from ..defend.again import transient
from .prompts import MAX_CALLS
from .shown import leaves, looks_failed, parsed

MOST_REPEATS = 2
"""So often a call is repeated at most."""

MOST_LOOKS = 2
"""So many reads are made to see whether a write happened."""

_DEEPEST = 40

MAX_ARGUMENTS = 100_000
"""Characters of the arguments of a native call, as text; one with more is answered with an error."""

TOO_LONG = f"Error: the arguments have more than {MAX_ARGUMENTS} characters"
TOO_MANY = f"Error: only the first {MAX_CALLS} calls of a reply are carried out; this one had more"
REFUSALS = (TOO_LONG, TOO_MANY)
"""What a call is answered that never reaches the world, nor the fault before it."""


class Wanted(NamedTuple):
    """One call that a reply asks for."""

    name: str
    """Of the registry, whatever the agent was shown."""
    arguments: Json
    refusal: str | None = None
    """Why it is not carried out at all."""
    tool: int | None = None
    """As `Step.tool`."""


class Seen(NamedTuple):
    """What a retry knows of the episode."""

    registry: Sequence[LiveTool]
    offered: Sequence[LiveTool]
    """In this turn."""
    history: Sequence[tuple[Call, str]]
    """Every call before with its result, as the agent saw them."""


class Do(NamedTuple):
    """A call that is to be made."""

    wanted: Wanted
    defence: Literal["look", "repeat"] | None = None

    @property
    def step(self) -> Step:
        """The call before it is made; one that is refused, with the refusal."""
        one = self.wanted
        executed = 0 if one.refusal else 1
        return Step(
            name=one.name, arguments=one.arguments, text=one.refusal or "", executed=executed, tool=one.tool,
            defence=self.defence,
        )  # fmt: skip

    def is_of(self, step: Step) -> bool:
        """Whether a journaled step came of this call: one that was not refused has to be made again."""
        refusal = step.text if step.text in REFUSALS and not step.executed and not step.met else None
        there = (step.name, step.arguments, step.tool, step.defence, refusal)
        here = (*self.wanted[:2], self.wanted.tool, self.defence, self.wanted.refusal)
        return msgspec.json.encode(here) == msgspec.json.encode(there)


class Look(NamedTuple):
    """A read that shows a write, and what it showed before."""

    read: Wanted
    before: str


CarryingOut = Generator[Do, Step, tuple[Step, ...]]
"""Calls to make, one by one: yields each, is sent what came of it, returns all steps."""

_Doing = Generator[Do, Step, Step]


def carried_out(wanted: Sequence[Wanted], retry: Seen | None) -> CarryingOut:
    """Every call that the calls of one reply lead to; with `retry` the repeats and looks of that defence."""
    made: list[Step] = []
    for one in wanted:
        tool = None
        if retry is not None and one.refusal is None and isinstance(one.arguments, dict):
            known = retry.registry
            tool = meant(known, one.name, one.arguments) if one.tool is None else known[one.tool]
        if retry is None or tool is None or tool.distractor:
            yield from _do(made, Do(one))
        else:
            yield from _tended(retry, made, one, tool)
    return tuple(made)


def came_of(doing: CarryingOut, steps: Sequence[Step]) -> bool:
    """Whether these steps are what making the calls led to, as their own texts have it."""
    at = 0
    try:
        what = next(doing)
        while at < len(steps) and what.is_of(steps[at]):
            at += 1
            what = doing.send(msgspec.structs.replace(steps[at - 1], told=None))
    except StopIteration as end:
        return bool(tuple(steps) == end.value)
    return False


def _do(made: list[Step], what: Do) -> _Doing:
    step = yield what
    made.append(step)
    return step


def _tended(seen: Seen, made: list[Step], one: Wanted, tool: LiveTool) -> Generator[Do, Step, None]:
    """One call, and again as long as its error may pass."""
    unsafe = tool.writes and not tool.idempotent
    looks = []
    for read in _looks(seen, made, one, tool) if unsafe else ():
        found = yield from _do(made, Do(read, "look"))
        if not looks_failed(found.text):
            looks.append(Look(read, found.text))
    at = len(made)
    first = last = yield from _do(made, Do(one))
    told = None
    for _ in range(MOST_REPEATS):
        if last.problem is not None or not looks_failed(last.text) or not transient(last.text):
            break
        if unsafe:
            happened, evidence = yield from _look(made, looks)
            if happened is not False:
                told = evidence or told
                break
        last = yield from _do(made, Do(one, "repeat"))
        told = last.text
    made[at] = msgspec.structs.replace(first, told=None if told == first.text else told)


def _look(made: list[Step], looks: Sequence[Look]) -> Generator[Do, Step, tuple[bool | None, str | None]]:
    """Whether a write has happened since the looks before it, None where that cannot be told; and what shows
    that it has."""
    sure = bool(looks)
    for look in looks:
        now = yield from _do(made, Do(look.read, "look"))
        if looks_failed(now.text):
            sure = False
        elif now.text != look.before:
            again = yield from _do(made, Do(look.read, "look"))
            if again.text == now.text:
                return True, _evidence(look, now.text)
            sure = False  # it changes by itself
    return (False if sure else None), None


# --- which reads show a write -------------------------------------------------------------------------


def _looks(seen: Seen, made: Sequence[Step], one: Wanted, tool: LiveTool) -> list[Wanted]:
    names = [known.name for known in seen.registry]
    reads = [
        known
        for known in seen.offered
        if not known.writes and not known.distractor and names.count(known.name) == 1
    ]
    about = [
        Wanted(read.name, given) for read in reads if (given := _given(read, tool, one.arguments)) is not None
    ]
    now = [
        (Call(step.name, step.arguments), step.shown)
        for step in made
        if step.defence is None and isinstance(step.arguments, dict)
    ]
    return about[:MOST_LOOKS] or _named(reads, tool, one.arguments, [*seen.history, *now])


def _given(read: LiveTool, write: LiveTool, arguments: Mapping[str, Json]) -> dict[str, Json] | None:
    """All required arguments of a read out of a write's, of which there is one at least; else None."""
    asked, known = _properties(read), _properties(write)
    required = read.parameters.get("required")
    names = [one for one in required if isinstance(one, str)] if isinstance(required, list | tuple) else []
    found: dict[str, Json] = {}
    for name in names:
        same = (
            other
            for other in known
            if other in arguments and _is_same(name, asked.get(name), other, known[other])
        )
        if (other := next(same, None)) is None:
            return None
        found[name] = arguments[other]
    return found or None


def _is_same(name: str, schema: Json, other: str, known: Json) -> bool:
    """Whether two parameters mean the same thing: equal types and descriptions; where one has none, equal
    names."""
    if not isinstance(schema, dict) or not isinstance(known, dict) or schema.get("type") != known.get("type"):
        return False
    said = schema.get("description"), known.get("description")
    return said[0] == said[1] if all(said) else name == other


def _named(
    reads: Sequence[LiveTool],
    write: LiveTool,
    arguments: Mapping[str, Json],
    seen: Sequence[tuple[Call, str]],
) -> list[Wanted]:
    """The latest read that showed what the write is about, its first argument, as a part of something, if the
    argument's description names that read: "the payment's id, as get_order gives it"."""
    name, schema = next(iter(_properties(write).items()), ("", None))
    said, value = schema.get("description") if isinstance(schema, dict) else None, arguments.get(name)
    if not isinstance(said, str) or not isinstance(value, str) or not value:
        return []
    named = {read.name for read in reads if re.search(rf"(?<!\w){re.escape(read.name)}(?!\w)", said)}
    for call, text in reversed(seen):
        found = leaves(parsed(text)) if call.name in named else ()
        # In a list inside an object: a record's own id does not show what is done with it elsewhere.
        if any(
            leaf == value and at[-1:] == (name,) and isinstance(at[0], str) and {int} & {*map(type, at)}
            for at, leaf in found
        ):
            return [Wanted(call.name, call.parameters)]
    return []


def _properties(tool: LiveTool) -> dict[str, Any]:
    found = tool.parameters.get("properties")
    return found if isinstance(found, dict) else {}


# --- what the agent is told ---------------------------------------------------------------------------


def _evidence(look: Look, now: str) -> str:
    """In place of a lost answer: that the call was carried out, and the one record that is new, or the
    whole read."""
    note = f"The answer was lost, but the call was carried out: {look.read.name} shows it."
    before, after = parsed(look.before), parsed(now)
    try:
        new = _new(before, after)
        if len(new) == 1 and not new[0].keys() & {"note", "error"}:
            return dumps({"note": note, **new[0]})
        return dumps({"note": note, "now": after})
    except (RecursionError, ValueError):  # nested too deep to be written again
        return f"{note}\n{now}"


def _new(before: Json, after: Json, depth: int = 0) -> list[dict[str, Json]]:
    """Objects in lists that were not there before."""
    if depth > _DEEPEST:
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        return [one for name in after if name in before for one in _new(before[name], after[name], depth + 1)]
    if isinstance(before, list) and isinstance(after, list):
        known = {dumps(one) for one in before}
        return [one for one in after if isinstance(one, dict) and dumps(one) not in known]
    return []
