"""What a type may change, and that the row's diff tells exactly what did."""

from collections.abc import Iterator, Sequence

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.languages import VALUE_MAP
from robustbench_tc.schema import Change, Json, Message, Sample, Tool, dumps
from robustbench_tc.taxonomy import Part

from ..checks import check
from .base import OFFERS, REWRITES, of, perturbed, static, translated


@check("benchmark_rows", for_=perturbed)
def changes_only_what_its_type_may(row: Sample, clean: Sample) -> None:
    """A type perturbs one channel: what else differs would be measured as if it were that channel."""
    extra = differences(row, clean) - set(taxonomy.get(row.type_code).may_change)
    assert not extra, f"it also changes {' and '.join(sorted(extra))}"


def differences(row: Sample, clean: Sample) -> set[Part]:
    """The parts of `row` that differ from `clean`."""
    found: set[Part] = set()
    if row.messages != clean.messages:
        same = [m.role for m in row.messages] == [m.role for m in clean.messages]
        found.add("messages" if same else "the number or roles of messages")
    if row.golden_answers != clean.golden_answers:
        found.add("golden answers")
    if row.tools == clean.tools:
        return found
    # As many tools may have come as have gone.
    whole = any(c.path.count("/") == 2 and c.path.startswith("/tools/") for c in row.changes)
    if whole or len(row.tools) != len(clean.tools):
        found.add("the set of tools")
        return found
    if _same_set(row.tools, clean.tools):
        found.add("the order of tools")
        return found
    for new, old in zip(row.tools, clean.tools, strict=True):
        if new.name != old.name:
            found.add("tool names")
        if new.description != old.description:
            found.add("tool descriptions")
        if new.parameters != old.parameters:
            same = without_descriptions(new.parameters) == without_descriptions(old.parameters)
            found.add("parameter descriptions" if same else "parameter schemas")
    return found


def without_descriptions(schema: Json) -> Json:
    """The schema with the descriptions of its parameters masked, at any depth."""
    if not isinstance(schema, dict):
        return schema
    out = {key: without_descriptions(value) if key == "items" else value for key, value in schema.items()}
    properties = schema.get("properties")
    if isinstance(properties, dict):
        out["properties"] = {
            name: {**without_descriptions(inner), **({"description": ""} if "description" in inner else {})}
            if isinstance(inner, dict)
            else inner
            for name, inner in properties.items()
        }
    return out


@check("benchmark_rows", for_=of("namesake", "siblings"))
def clean_tools_stand_in_order(row: Sample, clean: Sample) -> None:
    """Action types add tools and touch none: the clean registry stands in the row, in its order."""
    assert added_tools(row, clean) is not None, "the clean tools do not stand in it unchanged and in order"


def added_tools(row: Sample, clean: Sample) -> list[Tool] | None:
    """The row's tools beyond the clean ones, which must stand in order; None where they do not."""
    wanted = iter(clean.tools)
    next_clean = next(wanted, None)
    extra = []
    for tool in row.tools:
        if next_clean is not None and tool == next_clean:
            next_clean = next(wanted, None)
        else:
            extra.append(tool)
    return extra if next_clean is None else None


@check("benchmark_rows", for_=OFFERS)
def clean_schemas_stand(row: Sample, clean: Sample) -> None:
    """Reward types annotate and rename, they never touch parameters: every clean schema is in the row."""
    left = [tool.parameters for tool in row.tools]
    for tool in clean.tools:
        assert tool.parameters in left, "a clean tool's parameter schema is missing"
        left.remove(tool.parameters)


@check("benchmark_rows", for_=static)
def static_row_differs_from_clean(row: Sample, clean: Sample) -> None:
    """A row in which nothing was perturbed would count as robustness."""
    assert differences(row, clean), "it equals its clean row"


@check("benchmark_rows", for_=of("tool_result", "result"))
def transition_row_equals_clean(row: Sample, clean: Sample) -> None:
    """A transition error happens at run time: any other difference would be measured with it."""
    assert not differences(row, clean), "it differs from its clean row"


@check("benchmark_rows", for_=perturbed)
def diff_explains_the_row(row: Sample, clean: Sample) -> None:
    """Undoing the published diff gives the clean row, so the diff names every change and no other."""
    # Changes of texts are applied to the clean row's messages, the row's other changes are undone.
    messages: list[Message | None] = list(clean.messages)
    kept: list[Message | None] = list(row.messages)
    golden: Json = None
    tools: list[Json] = list(row.tools)
    removed: set[int] = set()
    reordered = False
    for change in sorted(row.changes, key=lambda c: -1 if c.at is None else c.at, reverse=True):
        head, *rest = _pointer(change.path)
        if head == "messages" and len(rest) == 2 and rest[1] == "content":
            _rewrite(messages, change, int(rest[0]))
        elif head == "messages" and len(rest) == 1:
            index, added = int(rest[0]), change.before is None
            where, stated = (kept, change.after) if added else (messages, change.before)
            assert added != (change.after is None) and index < len(where), (
                f"{change.path} is not a message that was added or removed"
            )
            assert msgspec.to_builtins(where[index]) == stated, f"{change.path} is not that message"
            where[index] = None
        elif head == "golden_answers" and not rest:
            assert golden is None and dumps(change.before) == dumps(clean.golden_answers), (
                "/golden_answers was not that in the clean row"
            )
            golden = dumps(change.after)
        elif head == "tools" and not rest:
            reordered = True
            names = [[tool.name for tool in one.tools] for one in (clean, row)]
            assert [change.before, change.after] == names, "/tools names other registries"
        elif head == "tools" and len(rest) == 1 and change.after is None:
            index = int(rest[0])
            assert index < len(clean.tools) and msgspec.to_builtins(clean.tools[index]) == change.before, (
                f"{change.path} is not the tool that was removed"
            )
            removed.add(index)
        elif head == "tools":
            _undo(tools, change, int(rest[0]), rest[1:])
        else:
            _beside(change, row)
    assert [m for m in messages if m is not None] == [m for m in kept if m is not None], (
        "the messages hold a change that the diff does not name"
    )
    assert dumps(row.golden_answers) == (golden or dumps(clean.golden_answers)), (
        "the golden answers hold a change that the diff does not name"
    )
    left = [tool for tool in tools if tool is not None]
    stayed = [tool for index, tool in enumerate(clean.tools) if index not in removed]
    assert left == stayed or (reordered and _same_set(left, stayed)), (
        "the tools hold a change that the diff does not name"
    )


def _beside(change: Change, row: Sample) -> None:
    """A change that says something of the row which stands in no text: what surfaces values have, what a
    result orders."""
    kind = taxonomy.get(row.type_code)
    if change.path == VALUE_MAP and translated(kind):
        map_of_values = change.before is None and isinstance(change.after, dict)
        assert map_of_values, f"{change.path} is not a map of values"
    else:
        ordered = change.path == "/injected_error" and kind.channel == "result"
        assert ordered, f"{change.path} is not a place in a row"


def _rewrite(messages: list[Message | None], change: Change, index: int) -> None:
    """Applies the change of a passage in `messages`."""
    at, message = change.at or 0, messages[index] if index < len(messages) else None
    assert message is not None and isinstance(change.before, str) and isinstance(change.after, str), (
        f"{change.path} is not a change of a message"
    )
    old, end = message.content, at + len(change.before)
    assert old[at:end] == change.before, f"{change.path} was not that text in the clean row"
    messages[index] = Message(message.role, old[:at] + change.after + old[end:])


def _undo(tools: list[Json], change: Change, index: int, rest: list[str]) -> None:
    """Takes one tool change back in `tools`; a tool that was added becomes None."""
    assert index < len(tools) and tools[index] is not None, f"{change.path} is not a place in the registry"
    plain = msgspec.to_builtins(tools[index])
    if not rest:
        assert change.before is None and change.after == plain, (
            f"{change.path} is not the tool that was added"
        )
        tools[index] = None
        return
    try:
        tools[index] = msgspec.convert(_put_back(plain, rest, change), Tool)
    except (KeyError, TypeError):
        raise AssertionError(f"{change.path} is not that in the row") from None


def _put_back(value: Json, rest: list[str], change: Change) -> Json:
    """A copy of `value` with `before` where `after` stands. Raises KeyError where it does not stand."""
    if not rest:
        if value != change.after:
            raise KeyError(change.path)
        return change.before
    return {**value, rest[0]: _put_back(value[rest[0]], rest[1:], change)}


def _pointer(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]] or [""]


def _same_set(left: Sequence[Json], right: Sequence[Tool]) -> bool:
    return sorted(map(dumps, left)) == sorted(map(dumps, right))


def other_language(code: str) -> bool:
    """Whether the type's texts are in another language than the clean ones: lengths differ by language."""
    return taxonomy.known(code) and "language" in taxonomy.get(code).traits


def rewritten_texts(row: Sample) -> Iterator[tuple[str, str | None, str | None, str, str]]:
    """The rewritten texts of an observation row: path, tool, parameter, before, after."""
    if not taxonomy.known(row.type_code) or not REWRITES(taxonomy.get(row.type_code)):
        return
    for change in row.changes:
        if not isinstance(change.before, str) or not isinstance(change.after, str):
            continue
        parts = _pointer(change.path)
        tool = parameter = None
        if parts[0] == "tools" and len(parts) > 2:
            tool = row.tools[int(parts[1])].name if int(parts[1]) < len(row.tools) else None
            parameter = parts[-2] if "parameters" in parts[2:3] else None
        yield change.path, tool, parameter, change.before, change.after
