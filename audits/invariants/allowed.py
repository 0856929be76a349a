"""What a type may change, and that the row's diff tells exactly what did."""

from collections.abc import Iterator, Sequence

from robustbench_tc import taxonomy
from robustbench_tc.builders.steps import undone
from robustbench_tc.languages import VALUE_MAP
from robustbench_tc.schema import Json, Sample, Tool, dumps
from robustbench_tc.taxonomy import Part

from ..checks import DoesNotApply, check
from .base import OFFERS, REWRITES, perturbed, static, translated


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


@check("benchmark_rows", for_=perturbed)
def diff_explains_the_row(row: Sample, clean: Sample) -> None:
    """Undoing the published diff gives the clean row, so the diff names every change and no other."""
    if clean.type_code != taxonomy.CLEAN:
        raise DoesNotApply  # a later step of a mixture: taking the row apart has undone it
    kind = taxonomy.get(row.type_code)
    for change in row.changes:
        of_values = change.path == VALUE_MAP and translated(kind) and change.before is None
        of_an_order = change.path == "/injected_error" and kind.channel == "result"
        known = _pointer(change.path)[0] in ("messages", "tools", "golden_answers")
        assert known or of_values or of_an_order, f"{change.path} is not a place in a row"
    try:
        before = undone(row, clean)
    except ValueError as error:
        raise AssertionError(str(error)) from None
    hidden = "hold a change that the diff does not name"
    assert before.messages == clean.messages, f"the messages {hidden}"
    assert dumps(before.golden_answers) == dumps(clean.golden_answers), f"the golden answers {hidden}"
    reordered = any(change.path == "/tools" for change in row.changes)
    same = _same_set(before.tools, clean.tools) if reordered else before.tools == clean.tools
    assert same, f"the tools {hidden}"


def _pointer(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]] or [""]


def _same_set(left: Sequence[Tool], right: Sequence[Tool]) -> bool:
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
