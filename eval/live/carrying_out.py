"""What is done about the calls of a reply, in order: each as it is, and what `--defend retry` adds to it.

    steps = carried_out(wanted, retry)      # yields what to call, is sent what came of it, returns the steps

A call that met a transient error is repeated without the agent. A read and an idempotent write at once; any
other write only where reads show that it has not happened. They are found in the registry alone: a read
that is asked about the very things that the write was called with, or, where there is none, the one that the
write's own description names and that showed its argument before. They are made before the write and behind
the error, and compared. Where they differ it happened, and the agent is told so, with what is new; where
there is none, or one fails or changes by itself, nothing is repeated and the agent decides.
"""

import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from robustbench_tc.schema import Call, Json, LiveTool, Step, dumps
from robustbench_tc.worlds.faults import CORE_TEXTS, meant
from robustbench_tc.worlds.fit import failed

from ..defend.again import transient
from ..defend.shield import POLICY_REFUSAL
from .prompts import MAX_CALLS

Path = tuple[str | int, ...]
"""Keys and positions in a result, from the outside in."""

MOST_REPEATS = 2
"""So often a call is repeated at most."""

MOST_LOOKS = 2
"""So many reads are made to see whether a write happened."""

MAX_ARGUMENTS = 100_000
"""Characters of the arguments of a native call, as text; one with more is answered with an error."""

TOO_LONG = f"Error: the arguments have more than {MAX_ARGUMENTS} characters"
TOO_MANY = f"Error: only the first {MAX_CALLS} calls of a reply are carried out; this one had more"
REFUSALS = (TOO_LONG, TOO_MANY, POLICY_REFUSAL)
"""What a call is answered that never reaches the world, nor the fault before it."""


def refused(name: str, arguments: Json, why: str) -> Step:
    """A call that is not carried out at all: one of `REFUSALS`."""
    return Step(name=name, arguments=arguments, text=why, executed=0)


def is_refused(step: Step) -> bool:
    """Whether a call was not carried out because of its form or number, or of a policy."""
    return step.text in REFUSALS and not step.executed and not step.met


class Seen(NamedTuple):
    """What a retry knows of the episode."""

    registry: Sequence[LiveTool]
    offered: Sequence[LiveTool]
    """In this turn."""
    history: Sequence[tuple[Call, str]]
    """Every call before with its result, as the agent saw them."""


CarryingOut = Generator[Step, Step, tuple[Step, ...]]
"""Calls to make, one by one: yields each as it is before it is made, without a text or with its refusal; is
sent what came of it, returns all."""


def carried_out(calls: Sequence[Step], retry: Seen | None) -> CarryingOut:
    """Every call that the calls of one reply lead to; with `retry` the repeats and looks of that defence."""
    made: list[Step] = []
    for call in calls:
        tool = None
        if retry is not None and not is_refused(call) and isinstance(call.arguments, dict):
            known = retry.registry
            tool = meant(known, call.name, call.arguments) if call.tool is None else known[call.tool]
        if retry is None or tool is None or tool.distractor:
            yield from _do(made, call)
        else:
            yield from _tended(retry, made, call, tool)
    return tuple(made)


def came_of(doing: CarryingOut, steps: Sequence[Step]) -> bool:
    """Whether these steps are what making the calls led to, as their own texts have it."""
    try:
        call = next(doing)
        for step in steps:
            if not _is_of(step, call):
                break
            call = doing.send(msgspec.structs.replace(step, told=None))
    except StopIteration as end:
        return bool(tuple(steps) == end.value)
    return False


def _is_of(step: Step, call: Step) -> bool:
    """Whether a journaled step came of a call: one that was not refused has to be made again."""
    if not is_refused(step):
        step = Step(name=step.name, arguments=step.arguments, text="", tool=step.tool, defence=step.defence)
    return msgspec.json.encode(step) == msgspec.json.encode(call)


def _do(made: list[Step], call: Step) -> Generator[Step, Step, Step]:
    step = yield call
    made.append(step)
    return step


def _tended(seen: Seen, made: list[Step], call: Step, tool: LiveTool) -> Generator[Step, Step, None]:
    """One call, and again as long as its error may pass."""
    unsafe = tool.writes and not tool.idempotent
    before = []
    for read in _looks(seen, made, call, tool) if unsafe else ():
        found = yield from _do(made, read)
        if not looks_failed(found.text):
            before.append((read, found.text))
    at = len(made)
    first = last = yield from _do(made, call)
    told = None
    for _ in range(MOST_REPEATS):
        if last.problem is not None or not looks_failed(last.text) or not transient(last.text):
            break
        if unsafe:
            absent, evidence = yield from _look(made, before)
            if not absent:
                told = evidence or told
                break
        last = yield from _do(made, msgspec.structs.replace(call, defence="repeat"))
        told = last.text
    made[at] = msgspec.structs.replace(first, told=None if told == first.text else told)


def _look(
    made: list[Step], before: Sequence[tuple[Step, str]]
) -> Generator[Step, Step, tuple[bool, str | None]]:
    """Whether it is sure that a write has not happened since the looks `before` it, each with what it showed;
    and what shows that it has."""
    sure = bool(before)
    for read, text in before:
        now = yield from _do(made, read)
        if looks_failed(now.text):
            sure = False
        elif now.text != text:
            again = yield from _do(made, read)
            if again.text == now.text:
                return False, _evidence(read.name, text, now.text)
            sure = False  # it changes by itself
    return sure, None


# --- which reads show a write -------------------------------------------------------------------------


def _looks(seen: Seen, made: Sequence[Step], call: Step, tool: LiveTool) -> list[Step]:
    names = [known.name for known in seen.registry]
    reads = [
        known
        for known in seen.offered
        if not known.writes and not known.distractor and names.count(known.name) == 1
    ]
    about = [
        Call(read.name, given) for read in reads if (given := _given(read, tool, call.arguments)) is not None
    ]
    now = [
        (Call(step.name, step.arguments), step.shown)
        for step in made
        if step.defence is None and isinstance(step.arguments, dict)
    ]
    found = about[:MOST_LOOKS] or _named(reads, tool, call.arguments, [*seen.history, *now])
    return [Step(name=one.name, arguments=one.parameters, text="", defence="look") for one in found]


def _given(read: LiveTool, write: LiveTool, arguments: Mapping[str, Json]) -> dict[str, Json] | None:
    """All required arguments of a read out of a write's, of which there is one at least; else None."""
    asked, known = read.plain.properties, write.plain.properties
    found: dict[str, Json] = {}
    for name in read.plain.required:
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
) -> list[Call]:
    """The latest read that showed what the write is about, its first argument, as a part of something, if the
    argument's description names that read: "the payment's id, as get_order gives it"."""
    name, schema = next(iter(write.plain.properties.items()), ("", None))
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
            return [call]
    return []


# --- what the agent is told ---------------------------------------------------------------------------


def _evidence(read: str, before: str, now: str) -> str:
    """In place of a lost answer: that the call was carried out, and the one record that is new, or the
    whole read."""
    note = f"The answer was lost, but the call was carried out: {read} shows it."
    after = parsed(now)
    try:
        new = _new(parsed(before), after)
        if len(new) == 1 and not new[0].keys() & {"note", "error"}:
            return dumps({"note": note, **new[0]})
        return dumps({"note": note, "now": after})
    except (RecursionError, ValueError):  # nested too deep to be written again
        return f"{note}\n{now}"


def _new(before: Json, after: Json) -> list[dict[str, Json]]:
    """Objects in lists that were not there before."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [one for name in after if name in before for one in _new(before[name], after[name])]
    if isinstance(before, list) and isinstance(after, list):
        known = {dumps(one) for one in before}
        return [one for one in after if isinstance(one, dict) and dumps(one) not in known]
    return []


# --- a tool's result as an agent is shown it: does it read as a failure, and what values are in it ----------


def looks_failed(text: str) -> bool:
    """Whether a result reads as a failure: a core text, or an error of the world's."""
    return text in CORE_TEXTS.values() or failed(text)


def parsed(text: str) -> Json:
    """The object or list that a result begins with, whatever follows it; else its JSON, or its text."""
    try:
        found: Json = json.JSONDecoder().raw_decode(text)[0]
        return found if isinstance(found, dict | list) else json.loads(text)
    except (ValueError, RecursionError):
        return text


def leaves(value: Json, at: Path = (), depth: int = 0) -> Iterator[tuple[Path, Json]]:
    """Every value that is no list and no object, with its place, in order."""
    if depth > 40:
        return
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, (*at, key), depth + 1)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from leaves(one, (*at, number), depth + 1)
    else:
        yield at, value
