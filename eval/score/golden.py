"""Golden answers as calls: one accepted value for each parameter."""

from collections.abc import Mapping, Sequence

from robustbench_tc import sources
from robustbench_tc.schema import ANY, OMIT, Call, GoldenAnswer, Json, Tool

from . import matchers
from .matchers import subschemas


def concrete(golden: GoldenAnswer, tools: Sequence[Tool], *, source: str | None = None) -> tuple[Call, ...]:
    """The calls of a golden answer with one accepted value each: the first, or the parameter left out if that
    is the mark of omission; a free value is made up by the declared type.

    `source` says whether the keys of an object have accepted values of their own (BFCL's scorer); without it
    that is taken from the object's shape.
    """
    found = sources.find(source) if source else None
    return tuple(_call(call, tools, found.scorer if found else source) for call in golden)


def with_surfaces(golden: GoldenAnswer, surfaces: Mapping[str, str]) -> GoldenAnswer:
    """A golden answer in which each parameter that a surface stands for accepts that alone.

    `surfaces`: golden value → its text in the user's language. Of several accepted values the first that has
    one is taken; values inside of lists and objects are replaced where they stand.
    """
    return tuple(
        Call(call.name, {key: _surfaced(accepted, surfaces) for key, accepted in call.parameters.items()})
        for call in golden
    )


def _surfaced(accepted: list[Json], surfaces: Mapping[str, str]) -> list[Json]:
    for value in accepted:
        if (other := replaced(value, surfaces)) != value:
            return [other]
    return accepted


def replaced(value: Json, others: Mapping[str, str]) -> Json:
    """A value with whole texts inside of it replaced: `others` is text → the one in its place."""
    if isinstance(value, list):
        return [replaced(inner, others) for inner in value]
    if isinstance(value, dict):
        return {key: replaced(inner, others) for key, inner in value.items()}
    return others.get(value, value) if isinstance(value, str) else value


def _call(golden: Call, tools: Sequence[Tool], scorer: str | None) -> Call:
    tool = next((tool for tool in tools if tool.name == golden.name), None)
    if scorer == "own":
        return _own_call(golden, tool)
    properties = tool.properties if tool else {}
    required = tool.required if tool else ()
    parameters: dict[str, Json] = {}
    for key, accepted in golden.parameters.items():
        if not accepted:
            continue  # nothing is accepted: there is no right answer to write
        schema = properties.get(key)
        if OMIT in accepted and len(accepted) > 1:
            if tool is not None and schema is None:
                continue  # a golden parameter that its tool does not know can only be left out
            if accepted[0] == OMIT and key not in required:
                continue
        elif accepted == [OMIT] and scorer != "apibank" and key not in required:
            continue
        value = (
            next((item for item in accepted if item != OMIT), OMIT) if accepted[0] == OMIT else accepted[0]
        )
        parameters[key] = _value(value, schema if isinstance(schema, dict) else {}, scorer)
    return Call(golden.name, parameters)


def _own_call(golden: Call, tool: Tool | None) -> Call:
    """The same where golden values are matchers."""
    schema = tool.parameters if tool else {}
    parameters = {
        key: matchers.example(accepted[0], subschemas.property_of(schema, key, schema), schema)
        for key, accepted in golden.parameters.items()
        if accepted
    }
    return Call(golden.name, parameters)


def _value(accepted: Json, schema: dict[str, Json], scorer: str | None) -> Json:
    if accepted == ANY:
        enum = schema.get("enum")
        if isinstance(enum, list) and enum:
            return enum[0]
        word = schema.get("type")
        return matchers.SAMPLES.get(word if isinstance(word, str) else "string", "anything")
    if scorer in (None, "bfcl_v3"):
        if _has_choices(accepted, scorer):
            return _chosen(accepted)
        if isinstance(accepted, list) and accepted and all(_has_choices(item, scorer) for item in accepted):
            return [_chosen(item) for item in accepted]
    return accepted


def _has_choices(value: Json, scorer: str | None) -> bool:
    """Whether an object gives a list of accepted values for each key."""
    if not isinstance(value, dict):
        return False
    lists = [isinstance(options, list) for options in value.values()]
    return any(lists) if scorer == "bfcl_v3" else bool(lists) and all(lists)


def _chosen(value: dict[str, Json]) -> Json:
    out: dict[str, Json] = {}
    for key, options in value.items():
        if not isinstance(options, list):
            out[key] = options
        elif options and options[0] != OMIT:
            out[key] = options[0]
    return out
