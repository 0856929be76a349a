"""RoTBench's vectors: the raw text is parsed, the call scored."""

from collections.abc import Sequence

from robustbench_tc.eval.parse import parse
from robustbench_tc.eval.score import score
from robustbench_tc.eval.score.rotbench import equal, is_control
from robustbench_tc.eval.score.values import json_equal
from robustbench_tc.schema import ANY, Call, GoldenAnswer, Tool

from .rows import AGREED, UNLISTED, Row, calls_of

_SPACING = {
    "no_space_after_colon",
    "name_trailing_space",
    "space_before_newline",
    "double_newline",
    "one_line",
    "trailing_text",
}


_CONTROL = {"finish_word", "finish_tool", "ask_to_user_tool"}
_PLAIN = {"ask_to_user", "finish"}
"""The two control tools of a registry without noise."""


def check_rotbench(row: Row) -> str:
    """Against upstream's verdict on the raw text: AGREED, a class of CLASSES, or UNLISTED."""
    # Upstream's lists end with the two control tools, whatever a noisy list calls them.
    control = {tool["name"] for tool in row["tools"][-2:]}
    golden = tuple(_answer(text, control) for text in row["ground_truth"])
    tools = [Tool(tool["name"], tool.get("description") or "", tool["parameters"]) for tool in row["tools"]]

    def verdict(calls: Sequence[Call]) -> bool:
        return score(calls, source="rotbench", category="", golden_answers=golden, tools=tools).correct

    calls = parse(row["raw_output"], source="rotbench", tools=tools).calls
    ours = verdict(calls)
    mutation = row["mutation"]
    if ours == row["upstream_valid"]:
        return AGREED
    if mutation == "two_actions":
        return "several_actions" if not ours else UNLISTED
    # The row's own reading of the text says what a call in odd spacing deserves.
    deserved = verdict([Call(call.name.strip(), call.parameters) for call in calls_of(row["prediction"])])
    if mutation in _SPACING:
        return "spacing" if ours == deserved else UNLISTED
    if mutation == "python_dict_input":
        return "python_dict_input" if ours == deserved else UNLISTED
    if len(calls) != 1:
        return UNLISTED
    # Upstream takes the word for whatever tool is last.
    last = calls[0].name == "finish" and any(answer[0].name == row["tools"][-1]["name"] for answer in golden)
    if mutation in _CONTROL or last:
        named = any(answer[0].name == calls[0].name for answer in golden)
        return "control_tool" if ours == named else UNLISTED
    # A noisy registry renames the two tools, or calls another one so: upstream finds them by place,
    # ours by name and keys.
    concerned = [calls[0], *(answer[0] for answer in golden if answer[0].name == calls[0].name)]
    if control != _PLAIN and any(is_control(call) != (call.name in control) for call in concerned):
        return "noisy_ask_to_user"
    if not ours:
        return UNLISTED
    if any(answer[0] == calls[0] and not calls[0].parameters for answer in golden):
        return "parameterless"
    if any(_equal_as_text(calls[0], answer[0]) for answer in golden):
        return "numeric_text"
    return UNLISTED


def _answer(text: str, control: set[str]) -> GoldenAnswer:
    """An acceptable ReAct text in the contract's form: "None" and a control tool's values are free."""
    (call,) = parse(text, source="rotbench").calls
    free = call.name in control
    parameters = {key: [ANY if free or value == "None" else value] for key, value in call.parameters.items()}
    return (Call(call.name, parameters),)


def _equal_as_text(call: Call, golden: Call) -> bool:
    """Whether the scorer takes every value, some of them only as the decimal text of a number."""
    if call.name != golden.name or call.parameters.keys() != golden.parameters.keys():
        return False
    values = [(value, golden.parameters[key]) for key, value in call.parameters.items()]
    if not all(any(equal(value, one) for one in accepted) for value, accepted in values):
        return False
    return not all(
        any(one == ANY or json_equal(value, one) for one in accepted) for value, accepted in values
    )
