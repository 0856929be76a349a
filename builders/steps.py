"""A mixed type's row taken apart: the row that each of its parts was applied to, and the row that it made.

The diff of such a row names its parts one after the other: a change of `/type_code` begins each, and the
changes that follow are against the row before it. Undone from the last to the first they give the clean row.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.schema import Change, GoldenAnswer, Json, Message, Sample, Tool, dumps

TYPE_CODE = "/type_code"
"""Path of the change with which a part begins."""


@contextmanager
def _undoing() -> Iterator[None]:
    """Where a diff is undone: ValueError for one that does not fit its row."""
    try:
        yield
    except (TypeError, KeyError, IndexError, AttributeError, msgspec.ValidationError) as error:
        raise ValueError(f"its diff cannot be undone: {str(error)[:120]}") from None


class Step(NamedTuple):
    """One part."""

    before: Sample
    after: Sample
    """The part's row of `before`: under its code, with its changes."""


@_undoing()
def undone(row: Sample, clean: Sample) -> Sample:
    """The row that a type (no mixture) was applied to, from its diff. Raises ValueError where the diff says
    what is not so."""
    return _undone(row, clean, taxonomy.CLEAN, taxonomy.get(row.type_code), ())


@_undoing()
def steps(row: Sample, clean: Sample) -> list[Step]:
    """The parts in the order in which they were applied. Raises ValueError where they do not lead back to
    `clean`, with the reason in a few words."""
    codes = taxonomy.parts(row.type_code)
    if not all(map(taxonomy.known, codes)):
        raise ValueError("a part of its type is not known")
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
    golden = after.golden_answers
    for change in after.changes:
        if change.path == "/golden_answers":
            _expect(dumps(golden) == dumps(change.after), change)
            golden = msgspec.convert(change.before, tuple[GoldenAnswer, ...])
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


def _expect(is_so: bool, change: Change) -> None:
    """Raises ValueError for a change whose `after` is not in its row."""
    if not is_so:
        raise ValueError(f"{change.path[:80]} is not that in its row")


def _of(after: Sample, part: str) -> Iterator[tuple[list[str], Change]]:
    """The changes of a part of the row, each with the rest of its pointer."""
    for change in after.changes:
        head, *rest = (name.replace("~1", "/").replace("~0", "~") for name in change.path.split("/")[1:])
        if head == part:
            yield rest, change


def _place(name: str, size: int, change: Change) -> int:
    _expect(name.isdecimal() and int(name) < size, change)
    return int(name)


def _messages(after: Sample) -> tuple[Message, ...]:
    whole = [(rest[0], change) for rest, change in _of(after, "messages") if len(rest) == 1]
    added = {
        _place(place, len(after.messages), change): change for place, change in whole if change.before is None
    }
    for at, change in added.items():
        _expect(msgspec.to_builtins(after.messages[at]) == change.after, change)
    found = [message for place, message in enumerate(after.messages) if place not in added]
    for place, change in whole:
        if change.before is not None:
            found.insert(_place(place, len(found) + 1, change), msgspec.convert(change.before, Message))
    texts = [(rest, change) for rest, change in _of(after, "messages") if rest[1:] == ["content"]]
    for rest, change in sorted(texts, key=lambda one: one[1].at or 0):
        index, at = _place(rest[0], len(found), change), change.at or 0
        new, old = str(change.after), found[index]
        _expect(old.content.startswith(new, at), change)
        text = old.content[:at] + str(change.before) + old.content[at + len(new) :]
        found[index] = Message(old.role, text)
    return tuple(found)


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
    there: list[dict[str, Json]] = [msgspec.to_builtins(tool) for tool in after.tools]
    gold = None if after.gold_tool_index is None else there[after.gold_tool_index]
    found, order, removed = list(there), None, list[tuple[int, Change]]()
    for rest, change in _of(after, "tools"):
        if not rest:
            _expect(change.after == [tool["name"] for tool in there], change)
            order = change.before
        elif len(rest) == 1 and change.after is None:
            removed.append((_place(rest[0], len(there) + len(after.changes), change), change))
        elif len(rest) == 1:
            tool = there[_place(rest[0], len(there), change)]
            _expect(tool == change.after and any(one is tool for one in found), change)
            found = [one for one in found if one is not tool]
        else:
            place, *way, last = rest
            about = there[_place(place, len(there), change)]
            for name in way:
                about = about[name]
            _expect(about[last] == change.after, change)
            about[last] = change.before
    for at, change in sorted(removed, key=lambda one: one[0]):
        found.insert(at, dict(change.before))
    if order is not None:
        found = _in_order(found, order, earlier)
    index = next((place for place, tool in enumerate(found) if tool is gold), None)
    return msgspec.convert(found, tuple[Tool, ...]), index


def _in_order(
    tools: list[dict[str, Json]], names: Sequence[str], earlier: Sequence[Change]
) -> list[dict[str, Json]]:
    """The tools in the order of these names; of namesakes, the one that came in with the part before stands
    where that part put it."""
    if sorted(names) != sorted(tool["name"] for tool in tools):
        raise ValueError("/tools names other registries")
    rest, found = list(tools), dict[int, dict[str, Json]]()
    added = {change.path: change.after for change in earlier if change.before is None}
    for place in range(len(names)):
        if (tool := added.get(f"/tools/{place}")) in rest:
            found[place] = rest.pop(rest.index(tool))
    for place, name in enumerate(names):
        if place not in found:
            found[place] = rest.pop([tool["name"] for tool in rest].index(name))
    return [found[place] for place in range(len(names))]
