"""API-Bank's vectors: ToolRL's judge, and the original one as background."""

from collections.abc import Sequence

from robustbench_tc.eval.prompts.json_schema import type_schema
from robustbench_tc.eval.score import score
from robustbench_tc.eval.score.values import decoded, is_number
from robustbench_tc.schema import Call, Json, Tool

from .rows import AGREED, UNLISTED, Row, calls_of

_TOLERANT = {
    "str_upper",
    "str_lower",
    "str_title",
    "str_leading_space",
    "str_trailing_space",
    "numeric_str_to_num",
}


def check_apibank_toolrl(row: Row) -> str:
    """Against ToolRL's judge of API-Bank: AGREED, a class of CLASSES, or UNLISTED."""
    truth = row["ground_truth"]
    golden = [truth] if isinstance(truth, dict) else truth
    tools = [_apibank_tool(tool) for tool in row["tools"]]
    ours = _is_right(row, golden, tools)
    mutation = row["mutation"]
    if ours == row["upstream_valid"]:
        return AGREED
    if not ours:
        if mutation in ("duplicate_call", "right_then_wrong", "wrong_then_right"):
            return "exact_calls"
        if mutation in ("parameters_only_object", "json_string_call", "name_only_object"):
            return "malformed_item"
        return UNLISTED
    values = [value for call in golden for value in call["parameters"].values()]
    if any(isinstance(value, str) and isinstance(decoded(value), list) for value in values):
        return "python_list"
    if mutation in _TOLERANT and not _lost_leading_zeros(row["prediction"], golden):
        return "tolerant_text"
    if mutation in ("numeric_str_dot0", "numeric_str_leading_zero"):
        return "declared_number" if _differs_in_numbers_only(row["prediction"], golden, tools) else UNLISTED
    return UNLISTED


def check_apibank_damo(row: Row) -> str:
    """Against API-Bank's original judge: AGREED or `background`, since ours follows ToolRL's."""
    truth = row["ground_truth"]
    golden = [{"name": truth["api_name"], "parameters": truth["param_dict"]}]
    ours = _is_right(row, golden, [_apibank_tool(tool) for tool in row["tools"]])
    return AGREED if ours == row["upstream_valid"] else "background"


def _is_right(row: Row, golden: Sequence[Row], tools: Sequence[Tool]) -> bool:
    answer = tuple(
        Call(call["name"], {key: [value] for key, value in call["parameters"].items()}) for call in golden
    )
    calls = calls_of(row["prediction"])
    return score(calls, source="apibank", category="", golden_answers=(answer,), tools=tools).correct


def _apibank_tool(found: Json) -> Tool:
    if isinstance(found, str):
        return Tool(found, "", {})
    properties = {
        key: type_schema(str(spec.get("type", ""))) for key, spec in (found.get("parameters") or {}).items()
    }
    return Tool(found["name"], found.get("description") or "", {"type": "object", "properties": properties})


def _differs_in_numbers_only(prediction: Json, golden: Sequence[Row], tools: Sequence[Tool]) -> bool:
    """Whether every parameter whose value is not the golden one is declared as a number."""
    declared = {(tool.name, key): schema for tool in tools for key, schema in tool.properties.items()}
    return all(
        declared.get((call["name"], key), {}).get("type") in ("integer", "number")
        for item, call in zip(calls_of(prediction), golden, strict=False)
        for key, value in call["parameters"].items()
        if item.parameters.get(key) != value
    )


def _lost_leading_zeros(prediction: Json, golden: Sequence[Row]) -> bool:
    """Whether a golden text with zeros in front became a number."""
    found = calls_of(prediction)
    predicted = found[0].parameters if found else {}
    return any(
        isinstance(value, str)
        and is_number(predicted.get(key))
        and value.strip().lstrip("+-")[:2].startswith("0")
        and value.strip().lstrip("+-")[1:2].isdigit()
        for call in golden
        for key, value in call["parameters"].items()
    )
