"""The tools that a perturbed row is judged against: those of its clean row; its own where schemas change."""

from functools import cache

from robustbench_tc import taxonomy
from robustbench_tc.schema import Call, Sample, Tool


def scoring_tools(row: Sample, clean: Sample) -> tuple[Tool, ...]:
    """The clean registry, in which a renamed gold tool stands first, under its new name.

    The row's own registry would not do: where two tools share a name the first may be the distractor. A
    golden name that the clean registry lacks was made by renaming, and only one tool of the row has it. Where
    the type changes what tools ask for, the row's own registry counts: such types add no tool.
    """
    if row is clean or row.tools == clean.tools:
        return clean.tools
    if changes_schemas(row.type_code):
        return row.tools
    known = {tool.name for tool in clean.tools}
    renamed = {call.name for golden in row.golden_answers for call in golden} - known
    if not renamed:
        return clean.tools
    gone = {call.name for golden in clean.golden_answers for call in golden} - {
        call.name for golden in row.golden_answers for call in golden
    }
    new = tuple(tool for tool in row.tools if tool.name in renamed)
    return new + tuple(tool for tool in clean.tools if tool.name not in gone)


@cache
def changes_schemas(code: str) -> bool:
    """Whether rows of the type ask for other parameters than their clean rows."""
    return taxonomy.known(code) and "parameter schemas" in taxonomy.get(code).may_change


def types_before(row: Sample, clean: Sample) -> dict[tuple[str, str], object]:
    """Tool and parameter → its type in the clean row, where the row's type makes a text of another one."""
    if not changes_schemas(row.type_code) or len(row.tools) != len(clean.tools):
        return {}
    return {
        (new.name, name): _type(old.properties[name])
        for new, old in zip(row.tools, clean.tools, strict=True)
        for name, inner in new.properties.items()
        if _type(inner) == "string" and name in old.properties and _type(old.properties[name]) != "string"
    }


def in_the_old_type(calls: tuple[Call, ...], row: Sample, clean: Sample) -> bool:
    """Whether a call gives no text where the row's schema, and not the clean one's, wants a text.

    Most scorers forgive that a text is written as a number; where the type is what changed, it is the point.
    """
    texts = types_before(row, clean)
    return any(
        (call.name, name) in texts and not isinstance(value, str)
        for call in calls
        for name, value in call.parameters.items()
    )


def _type(inner: object) -> object:
    return inner.get("type") if isinstance(inner, dict) else None
