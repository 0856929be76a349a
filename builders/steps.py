"""A mixed type's row taken apart: the row that each of its parts was applied to, and the row that it made.

The diff of such a row names its parts one after the other: a change of `/type_code` begins each, and the
changes that follow are against the row before it. Undone from the last to the first they give the clean row.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.schema import Change, GoldenAnswer, Json, Message, Sample, Tool, dumps

TYPE_CODE = "/type_code"
"""Path of the change with which a part begins."""


class Step(NamedTuple):
    """One part."""

    before: Sample
    after: Sample
    """The part's row of `before`: under its code, with its changes."""


def steps(row: Sample, clean: Sample) -> list[Step]:
    """The parts in the order in which they were applied. Raises ValueError where they do not lead back to
    `clean`, with the reason in a few words."""
    if not all(map(taxonomy.known, taxonomy.parts(row.type_code))):
        raise ValueError("a part of its type is not known")
    try:
        return _taken_apart(row, clean)
    except (TypeError, KeyError, IndexError, AttributeError, msgspec.MsgspecError) as error:
        raise ValueError(f"its diff cannot be undone: {str(error)[:120]}") from None


def _taken_apart(row: Sample, clean: Sample) -> list[Step]:
    codes = taxonomy.parts(row.type_code)
    marks = [place for place, change in enumerate(row.changes) if change.path == TYPE_CODE]
    named = [(row.changes[place].before, row.changes[place].after) for place in marks]
    if not codes or marks[:1] != [0] or named != list(zip((taxonomy.CLEAN, *codes), codes, strict=False)):
        raise ValueError("the diff does not name the parts of its type in their order")
    own = [row.changes[a + 1 : b] for a, b in zip(marks, (*marks[1:], len(row.changes)), strict=True)]
    found: list[Step] = []
    state = row
    for place in range(len(codes) - 1, -1, -1):
        kind = taxonomy.get(codes[place])
        after = msgspec.structs.replace(
            state,
            id=f"{row.clean_id}::{kind.code}",
            type_code=kind.code,
            component=kind.component,
            changes=own[place],
            generator=row.generator if kind.method == "llm" else "rule",
        )
        earlier = own[place - 1] if place else ()
        state = _undone(after, clean, (taxonomy.CLEAN, *codes)[place], kind, earlier)
        found.append(Step(state, after))
    if any(getattr(state, name) != getattr(clean, name) for name in _ASKED):
        raise ValueError("undoing its parts does not give the clean row")
    found[-1] = Step(clean, found[-1].after)
    return found[::-1]


_ASKED = ("messages", "tools", "golden_answers", "gold_tool_index", "injected_error", "flags")


def _undone(
    after: Sample, clean: Sample, code: str, kind: taxonomy.PerturbationType, earlier: Sequence[Change]
) -> Sample:
    """The row that the part was applied to; `earlier`: the changes of the part before."""
    golden = _golden(after)
    tools, index = _tools(after, earlier)
    if index is None or golden != after.golden_answers:
        index = _gold_tool(tools, index, golden, earlier)
    return msgspec.structs.replace(
        after,
        id=f"{after.clean_id}::{code}",
        type_code=code,
        component=taxonomy.component_of(code),
        messages=_messages(after),
        tools=tools,
        golden_answers=golden,
        gold_tool_index=index,
        changes=(),
        generator="rule",
        injected_error=None if kind.injected_error is not None else after.injected_error,
        flags=tuple(flag for flag in after.flags if flag in clean.flags or flag not in kind.flags),
    )


def _pointer(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _place(part: str, rows: Sequence[object], path: str) -> int:
    if not part.isdecimal() or int(part) >= len(rows):
        raise ValueError(f"{path[:80]} is not a place in its row")
    return int(part)


def _messages(after: Sample) -> tuple[Message, ...]:
    kept: list[Message | None] = list(after.messages)
    whole = [(change, _pointer(change.path)) for change in after.changes]
    whole = [(change, path) for change, path in whole if path[:1] == ["messages"]]
    for change, path in whole:
        if len(path) == 2 and change.before is None:
            kept[_place(path[1], kept, change.path)] = None
    found = [message for message in kept if message is not None]
    for change, path in whole:
        if len(path) == 2 and change.before is not None:
            at = _place(path[1], (*found, None), change.path)
            found.insert(at, msgspec.convert(change.before, Message))
    texts = [(change, path) for change, path in whole if len(path) == 3 and path[2] == "content"]
    for change, path in sorted(texts, key=lambda one: one[0].at or 0):
        index, at = _place(path[1], found, change.path), change.at or 0
        before, new, old = str(change.before), str(change.after), found[index]
        if old.content[at : at + len(new)] != new:
            raise ValueError(f"{change.path[:80]} is not that text in its row")
        found[index] = Message(old.role, old.content[:at] + before + old.content[at + len(new) :])
    return tuple(found)


def _golden(after: Sample) -> tuple[GoldenAnswer, ...]:
    golden = after.golden_answers
    for change in after.changes:
        if change.path == "/golden_answers":
            if dumps(change.after) != dumps(golden):
                raise ValueError("/golden_answers is not that in its row")
            golden = msgspec.convert(change.before, tuple[GoldenAnswer, ...])
    return golden


def _gold_tool(
    tools: Sequence[Tool], index: int | None, golden: Sequence[GoldenAnswer], earlier: Sequence[Change]
) -> int | None:
    """The place of the tool that the golden call names, for a part that made another tool the gold one, or
    none: of namesakes, one that did not come in with the part before."""
    name = next((call.name for answer in golden for call in answer), None)
    if index is not None and tools[index].name == name:
        return index
    added = [change.after for change in earlier if change.before is None]
    named = [place for place, tool in enumerate(tools) if tool.name == name]
    own = [place for place in named if msgspec.to_builtins(tools[place]) not in added]
    return next(iter(own or named), None)


def _tools(after: Sample, earlier: Sequence[Change]) -> tuple[tuple[Tool, ...], int | None]:
    """The registry before the part, and the place of the gold tool in it."""
    tools: list[Tool | None] = list(after.tools)
    order: Sequence[str] | None = None
    removed: list[tuple[int, Tool]] = []
    for change in after.changes:
        head, rest = _pointer(change.path)[:1], _pointer(change.path)[1:]
        if head != ["tools"]:
            continue
        if not rest:
            order = change.before
            continue
        if len(rest) == 1 and change.after is None:
            known = range(len(after.tools) + len(after.changes))
            removed.append((_place(rest[0], known, change.path), msgspec.convert(change.before, Tool)))
            continue
        place = _place(rest[0], tools, change.path)
        tool = tools[place]
        if tool is None or (len(rest) == 1 and msgspec.to_builtins(tool) != change.after):
            raise ValueError(f"{change.path[:80]} is not that tool in its row")
        plain = msgspec.to_builtins(tool)
        tools[place] = None if len(rest) == 1 else msgspec.convert(_put_back(plain, rest[1:], change), Tool)
    left = [(tool, place == after.gold_tool_index) for place, tool in enumerate(tools) if tool is not None]
    for place, tool in sorted(removed, key=lambda one: one[0]):
        left.insert(place, (tool, False))
    if order is not None:
        left = _in_order(left, order, earlier)
    index = next((place for place, (_, gold) in enumerate(left) if gold), None)
    return tuple(tool for tool, _ in left), index


def _put_back(value: Json, rest: Sequence[str], change: Change) -> Json:
    """A copy of `value` with `before` where `after` stands."""
    if not rest:
        if value != change.after:
            raise ValueError(f"{change.path[:80]} is not that in its row")
        return change.before
    if not isinstance(value, dict) or rest[0] not in value:
        raise ValueError(f"{change.path[:80]} is not a place in its row")
    return {**value, rest[0]: _put_back(value[rest[0]], rest[1:], change)}


def _in_order(
    tools: list[tuple[Tool, bool]], names: Sequence[str], earlier: Sequence[Change]
) -> list[tuple[Tool, bool]]:
    """The tools in the order of these names; of namesakes, the one that came in with the part before stands
    where that part put it."""
    added = {change.path: change.after for change in earlier if change.before is None}
    rest = list(tools)
    found: dict[int, tuple[Tool, bool]] = {}
    for place in range(len(names)):
        wanted = added.get(f"/tools/{place}")
        here = next((one for one in rest if wanted == msgspec.to_builtins(one[0])), None) if wanted else None
        if here is not None:
            found[place] = here
            rest = [one for one in rest if one is not here]
    for place, name in enumerate(names):
        if place not in found:
            here = next((one for one in rest if one[0].name == name), None)
            if here is None:
                raise ValueError("/tools names other registries")
            found[place] = here
            rest = [one for one in rest if one is not here]
    if rest:
        raise ValueError("/tools names other registries")
    return [found[place] for place in range(len(names))]
