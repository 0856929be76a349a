"""The scorer of a user's own tools and cases: names, arguments by matcher, calls in any order (docs/own.md).

A reply is right if it fulfils one acceptable answer: as many calls as that has, each golden call met by a
call of its own. What a case says beside its answers stands in the row's category (`eval.score.category`).

An argument that gold does not name is wrong, unless it states its schema's default or the case says
`extra: allow`; one whose golden value is the default may be left out.
"""

from collections.abc import Sequence

import msgspec

from robustbench_tc import sources, taxonomy
from robustbench_tc.eval.score.category import read_category
from robustbench_tc.schema import OMIT, Call, GoldenAnswer, Json, Sample, Tool

from . import matchers
from .matchers import subschemas
from .matching import all_matched
from .result import RIGHT, Score, best, wrong

NAME = "own"
"""Under which a source asks for this scorer."""


def score_own(
    calls: Sequence[Call], category: str, golden_answers: Sequence[GoldenAnswer], tools: Sequence[Tool]
) -> Score:
    """A `Scorer`. Whether a reply without a call asks is not seen here: `has_to_ask`."""
    said = read_category(category)
    return best([_answer(calls, golden, tools, said.ordered, said.extra) for golden in golden_answers])


def _answer(
    calls: Sequence[Call], golden: GoldenAnswer, tools: Sequence[Tool], ordered: bool, extra: bool
) -> Score:
    if len(calls) != len(golden):
        return wrong("call_count" if calls else "no_call")
    if ordered or len(golden) == 1:
        pairs = zip(calls, golden, strict=True)
        reason = next((found for pair in pairs if (found := _reason(*pair, tools, extra))), None)
        return RIGHT if reason is None else wrong(reason)
    fits = [[at for at, call in enumerate(calls) if not _reason(call, one, tools, extra)] for one in golden]
    return RIGHT if all_matched(fits) else wrong("no_match")


def _reason(call: Call, golden: Call, tools: Sequence[Tool], extra: bool) -> str | None:
    if call.name != golden.name:
        return "wrong_name"
    found = first_wrong(call, golden, tools, extra)
    return None if found is None else found[0]


def first_wrong(call: Call, golden: Call, tools: Sequence[Tool], extra: bool) -> tuple[str, str] | None:
    """The first thing wrong with the arguments of a call of the right name: the reason and the parameter.

    Of several tools of that name any may be meant; what is wrong is said of the first.
    """
    schemas = [tool.parameters for tool in tools if tool.name == call.name] or [{}]
    found = [_wrong_under(call, golden, schema, extra) for schema in schemas]
    return None if None in found else found[0]


def _wrong_under(call: Call, golden: Call, schema: dict[str, Json], extra: bool) -> tuple[str, str] | None:
    for key, accepted in golden.parameters.items():
        if key not in call.parameters:
            if not (any(map(matchers.may_be_absent, accepted)) or is_default(key, accepted, schema)):
                return "missing_parameter", key
        elif not fits(call.parameters[key], accepted, key, schema):
            return "wrong_value", key
    for key, value in call.parameters.items():
        if key not in golden.parameters and not extra and not is_default(key, [{"exact": value}], schema):
            return "unexpected_parameter", key
    return None


def fits(value: Json, accepted: Sequence[Json], key: str, schema: dict[str, Json]) -> bool:
    """Whether one of the things expected of a parameter accepts the value. `schema` is the tool's."""
    inner = subschemas.property_of(schema, key, schema)
    return any(matchers.matches(value, one, inner, schema) for one in accepted)


def is_default(key: str, accepted: Sequence[Json], schema: dict[str, Json]) -> bool:
    """Whether the parameter has a default in the tool's schema, and that is accepted."""
    inner = subschemas.property_of(schema, key, schema)
    return any(
        fits(one["default"], accepted, key, schema)
        for one in subschemas.parts(inner, schema)
        if "default" in one
    )


def has_to_ask(row: Sample) -> bool:
    """Whether a reply to the row that calls nothing is right only if it asks.

    Where a type took the tools away or leaves it open to decline, saying so is right too.
    """
    if () not in row.golden_answers or sources.get(row.source).scorer != NAME:
        return False
    if taxonomy.known(row.type_code) and taxonomy.get(row.type_code).no_call != "wrong":
        return False
    kinds = read_category(row.category).kinds
    return "ask" in kinds and "no_call" not in kinds


# --- for diagnosis ------------------------------------------------------------------------------------


def in_plain_values(golden: GoldenAnswer, calls: Sequence[Call], tools: Sequence[Tool]) -> GoldenAnswer:
    """The answer with accepted values in place of matchers, as the other sources' golden answers have them.

    Of each parameter: the values that its matchers state, and those of `calls` that they accept; the mark of
    omission where it may be absent.
    """
    return tuple(_in_plain_values(one, calls, tools) for one in golden)


def _in_plain_values(golden: Call, calls: Sequence[Call], tools: Sequence[Tool]) -> Call:
    tool = next((tool for tool in tools if tool.name == golden.name), None)
    schema = tool.parameters if tool else {}
    given = [call.parameters for call in calls if call.name == golden.name]
    parameters: dict[str, Json] = {}
    for key, accepted in golden.parameters.items():
        inner = subschemas.property_of(schema, key, schema)
        values = [value for one in accepted for value in _stated(one, inner, schema)]
        values += [one[key] for one in given if key in one and fits(one[key], accepted, key, schema)]
        values += [OMIT] if any(map(matchers.may_be_absent, accepted)) else []
        parameters[key] = values
    return msgspec.structs.replace(golden, parameters=parameters)


def _stated(expected: Json, schema: Json, root: Json) -> list[Json]:
    which = matchers.kind(expected)
    if which == "any":
        return []
    if which == "one_of":
        return [value for one in expected["one_of"] for value in _stated(one, schema, root)]
    return [matchers.example(expected, schema, root)]
