"""BFCL's syntax-tree check for Python calls (scoring.md section 3).

Upstream: bfcl_eval/eval_checker/ast_eval/ast_checker.py. A golden parameter is the list of its accepted
values, "" meaning that it may be left out; in an object-valued parameter so is each of the object's keys.
"""

from collections.abc import Sequence
from functools import lru_cache

from robustbench_tc.schema import OMIT, Call, GoldenAnswer, Json, Tool

from .result import RIGHT, Score, best, wrong

_TYPES: dict[str, type] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}
_IGNORED = {ord(sign): None for sign in " ,./-_*^"} | {ord("'"): '"'}


def score_bfcl(
    calls: Sequence[Call], category: str, golden_answers: Sequence[GoldenAnswer], tools: Sequence[Tool]
) -> Score:
    """A `Scorer`; `category` says whether order counts (`parallel`) and whose schema applies (`multiple`)."""
    return best([_answer(calls, category, golden, tools) for golden in golden_answers])


def _answer(calls: Sequence[Call], category: str, golden: GoldenAnswer, tools: Sequence[Tool]) -> Score:
    if len(calls) != len(golden):
        return wrong("call_count" if calls else "no_call")
    if "parallel" in category:
        return _in_any_order(calls, golden, tools)
    if "multiple" in category:
        tool = _named(golden[0].name, tools)
    else:  # the one tool of the sample is meant, whatever the golden answer calls it
        tool = tools[0] if tools else None
    reason = "unknown_tool" if tool is None else _mismatch(calls[0], golden[0].parameters, tool)
    return RIGHT if reason is None else wrong(reason)


def _in_any_order(calls: Sequence[Call], golden: GoldenAnswer, tools: Sequence[Tool]) -> Score:
    """Greedy: each golden call in order takes the first unused prediction that passes."""
    left = list(calls)
    for expected in golden:
        tool = _named(expected.name, tools)
        if tool is None:
            return wrong("unknown_tool")
        for index, call in enumerate(left):
            if _mismatch(call, expected.parameters, tool) is None:
                del left[index]
                break
        else:
            return wrong("no_match")
    return RIGHT


def _named(name: str, tools: Sequence[Tool]) -> Tool | None:
    return next((tool for tool in tools if tool.name == name), None)


def _mismatch(call: Call, golden: dict[str, list[Json]], tool: Tool) -> str | None:
    """The first reason why a call is not the golden one, or None."""
    if call.name != tool.name:
        return "wrong_name"
    parameters = call.parameters
    schema = tool.parameters
    for key in schema.get("required") or ():
        if key not in parameters:
            return "missing_parameter"
    properties = schema.get("properties") or {}
    for key, value in parameters.items():
        accepted = golden.get(key)
        if accepted is None or key not in properties:
            return "unexpected_parameter"
        reason = value_reason(value, accepted, properties[key])
        if reason is not None:
            return reason
    if len(parameters) < len(golden):
        for key, accepted in golden.items():
            if key not in parameters and OMIT not in accepted:
                return "missing_parameter"
    return None


def _declared(schema: Json) -> type:
    """The Python type of a declared parameter. One without a type word (BFCL's `any`) expects text."""
    word = schema.get("type") if type(schema) is dict else None
    if type(word) is list:
        word = next((item for item in word if isinstance(item, str) and item in _TYPES), None)
    return _TYPES.get(word, str) if type(word) is str else str


def value_reason(value: Json, accepted: list[Json], declared: Json) -> str | None:
    """`wrong_type`, `wrong_value` or None for one parameter."""
    expected = _declared(declared)
    kind = type(value)
    if expected is float and kind is int:
        try:
            value = float(value)
        except OverflowError:
            return "wrong_value"
        kind = float
    known = next((type(item) for item in accepted if item != OMIT), None)
    if kind is not expected:
        # A variable or another spelling: its type is the answer's, it is compared literally.
        if kind is not known:
            return "wrong_type"
        return None if value in accepted else "wrong_value"
    item_type: type | None = None
    if expected is list:
        items = declared.get("items")
        item_type = _declared(items) if isinstance(items, dict) else None
        if item_type is not None and not _items_fit(value, accepted, item_type):
            return "wrong_type"
    if known is not None and known is not expected:
        return None if value in accepted else "wrong_value"
    if expected is str:
        return None if _is_among(value, accepted) else "wrong_value"
    if expected is dict:
        return None if _object_fits(value, accepted) else "wrong_value"
    if expected is list:
        fits = _objects_fit if item_type is dict else _list_fits
        return None if fits(value, accepted) else "wrong_value"
    return None if value in accepted else "wrong_value"


@lru_cache(maxsize=8_192)
def _plain(text: str) -> str:
    """The text without spaces and , . / - _ * ^, in lower case, ' as "."""
    return text.translate(_IGNORED).lower()


def _is_among(value: str, accepted: list[Json]) -> bool:
    plain = _plain(value)
    return value in accepted or any(type(item) is str and _plain(item) == plain for item in accepted)


def _items_fit(value: list[Json], accepted: list[Json], declared: type) -> bool:
    """Whether the items' types fit some accepted value: all of the declared type, or of its first item's.

    An accepted value that is not a list (mostly the mark of omission) fits anything.
    """
    for answer in accepted:
        if type(answer) is not list:
            return True
        known = next((type(item) for item in answer if item != OMIT), None)
        if all(type(item) is declared or type(item) is known for item in value):
            return True
    return False


def _normal(item: Json) -> Json:
    return _plain(item) if type(item) is str else item


def _list_fits(value: list[Json], accepted: list[Json]) -> bool:
    """Order and length matter; text items are compared loosely, whatever lies deeper literally."""
    plain = [_normal(item) for item in value]
    return any(
        isinstance(answer, list | str) and plain == [_normal(item) for item in answer] for answer in accepted
    )


def _object_fits(value: Json, accepted: Sequence[Json]) -> bool:
    return type(value) is dict and any(
        all(
            key in answer and _normal(item) in [_normal(option) for option in _options(answer[key])]
            for key, item in value.items()
        )
        and all(key in value or OMIT in _options(options) for key, options in answer.items())
        for answer in accepted
        if type(answer) is dict
    )


def _options(found: Json) -> list[Json]:
    """The accepted values of one key of an object; a bare value is the only one."""
    return found if type(found) is list else [found]


def _objects_fit(value: list[Json], accepted: list[Json]) -> bool:
    """A list of objects, in order; the mark of omission stands for the empty list."""
    return any(
        isinstance(answer, list | str)
        and len(value) == len(answer)
        and all(_object_fits(item, (option,)) for item, option in zip(value, answer, strict=True))
        for answer in accepted
    )
