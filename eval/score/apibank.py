"""API-Bank: one call, exact name and keys, values by declared type (scoring.md section 4.3)."""

from collections.abc import Sequence

from robustbench_tc.schema import ANY, Call, GoldenAnswer, Json, Tool

from .result import RIGHT, Score, best, wrong
from .values import decimal, decoded, folded, is_number, is_text_of, json_type, may_be_left_out

_WORDS = {"true": True, "false": False}


def score_apibank(
    calls: Sequence[Call], category: str, golden_answers: Sequence[GoldenAnswer], tools: Sequence[Tool]
) -> Score:
    """A `Scorer`: the calls of one acceptable answer, in its order; `category` is not looked at."""
    return best([_answer(calls, golden, tools) for golden in golden_answers])


def _answer(calls: Sequence[Call], golden: GoldenAnswer, tools: Sequence[Tool]) -> Score:
    if len(calls) != len(golden):
        return wrong("call_count" if calls else "no_call")
    for call, expected in zip(calls, golden, strict=True):
        reason = _mismatch(call, expected, tools)
        if reason is not None:
            return wrong(reason)
    return RIGHT


def _mismatch(call: Call, golden: Call, tools: Sequence[Tool]) -> str | None:
    if call.name != golden.name:
        return "wrong_name"
    for key, accepted in golden.parameters.items():
        if key not in call.parameters and not may_be_left_out(accepted):
            return "missing_parameter"
    if not call.parameters.keys() <= golden.parameters.keys():
        return "unexpected_parameter"
    properties = next((tool.properties for tool in tools if tool.name == golden.name), {})
    for key, value in call.parameters.items():
        schema = properties.get(key)
        declared = schema if isinstance(schema, dict) else {}
        if not any(answer == ANY or equal(value, answer, declared) for answer in golden.parameters[key]):
            return "wrong_value"
    return None


def equal(value: Json, golden: Json, declared: dict[str, Json]) -> bool:
    """Equality under the declared type; without one, under the type of the golden value."""
    match declared.get("type") or json_type(golden):
        case "integer":
            return _numbers_equal(value, golden, integral=True)
        case "number":
            return _numbers_equal(value, golden, integral=False)
        case "boolean":
            left, right = _truth(value), _truth(golden)
            return _texts_equal(value, golden) if right is None else left is right
        case "array":
            return _lists_equal(value, golden, declared.get("items"))
        case "object":
            return _objects_equal(value, golden)
        case "null":
            return value is None
    # Four of the benchmark's golden texts spell a list: it may be written as the text or as the list.
    return (
        _texts_equal(value, golden)
        or (
            isinstance(golden, str)
            and isinstance(decoded(golden), list)
            and _lists_equal(value, golden, None)
        )
        or (isinstance(golden, str) and isinstance(decoded(golden), dict) and _objects_equal(value, golden))
    )


def _numbers_equal(value: Json, golden: Json, *, integral: bool) -> bool:
    right = decimal(golden)
    if right is None:
        return _texts_equal(value, golden)
    left = decimal(value)
    return left is not None and left == right and (not integral or left == left.to_integral_value())


def _truth(value: Json) -> bool | None:
    return value if isinstance(value, bool) else _WORDS.get(folded(value)) if isinstance(value, str) else None


def _texts_equal(value: Json, golden: Json) -> bool:
    """A scalar as text; a number equals its decimal text, zeros in front excepted."""
    if value is None or isinstance(value, list | dict):
        return False
    if is_number(value):
        return is_text_of(str(golden), value)
    return folded(str(value)) == folded(str(golden))


def _lists_equal(value: Json, golden: Json, items: Json) -> bool:
    left = decoded(value) if isinstance(value, str) else value
    right = decoded(golden) if isinstance(golden, str) else golden
    if not isinstance(right, list):
        return _texts_equal(value, golden)
    if not isinstance(left, list) or len(left) != len(right):
        return False
    declared = items if isinstance(items, dict) else {}
    return all(_element_equal(*pair, declared) for pair in zip(left, right, strict=True))


def _element_equal(value: Json, golden: Json, declared: dict[str, Json]) -> bool:
    """As `equal`, but a text inside a list is not decoded again."""
    if not declared.get("type") and isinstance(golden, str):
        return _texts_equal(value, golden)
    return equal(value, golden, declared)


def _objects_equal(value: Json, golden: Json) -> bool:
    left = decoded(value) if isinstance(value, str) else value
    right = decoded(golden) if isinstance(golden, str) else golden
    if not isinstance(right, dict):
        return _texts_equal(value, golden)
    if not isinstance(left, dict) or left.keys() != right.keys():
        return False
    return all(_element_equal(left[key], right[key], {}) for key in right)
