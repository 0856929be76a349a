"""Calls as today's models write them: one writer for each style, the counterpart of the readers in `parse`.

They feed the check of the readers (`check`), the null models, the documentation and the tests. Written from the
chat templates' published forms; the texts are our own.
"""

import json
from collections.abc import Callable, Sequence
from html import escape

import msgspec

from robustbench_tc.eval.render import python_calls, react, tool_call_tags
from robustbench_tc.schema import Call, Json, dumps

Writer = Callable[[Sequence[Call]], str]


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """One way of writing calls."""

    name: str
    code: str
    """Of the format, a key of `parse.FORMATS`."""
    write: Writer
    marked: bool
    single: bool = False
    """Has no form for several calls."""
    text_values: bool = False
    """Every value stays text: only calls whose arguments are texts are written right."""
    arguments: bool = False
    """Needs arguments: a call without any has no form, or is a name alone."""
    one_line: bool = False
    """Has no form for a text of several lines."""

    def can_write(self, calls: Sequence[Call]) -> bool:
        """Whether the style has a form for these calls."""
        if self.single and len(calls) > 1:
            return False
        if self.arguments and not all(call.parameters for call in calls):
            return False
        values = [value for call in calls for value in call.parameters.values()]
        if self.one_line and any(isinstance(value, str) and "\n" in value for value in values):
            return False
        return not self.text_values or all(isinstance(value, str) for value in values)

    def stands_in(self, setting: str) -> bool:
        """Whether a reply in this style can stand in a setting: harmony's messages do not nest."""
        return not ("in_harmony" in setting and "harmony" in self.name)


STYLES: dict[str, Style] = {}


def _style(code: str, *, marked: bool, **limits: bool) -> Callable[[Writer], Writer]:
    def add(write: Writer) -> Writer:
        name = write.__name__.strip("_")
        STYLES[name] = Style(name=name, code=code, write=write, marked=marked, **limits)
        return write

    return add


def _joined(one: Callable[[Call], str], calls: Sequence[Call], between: str = "\n") -> str:
    return between.join(one(call) for call in calls)


def _text(value: Json) -> str:
    """A value where the format carries text only."""
    return value if isinstance(value, str) else dumps(value)


def _json(call: Call, name: str = "name", arguments: str = "arguments") -> str:
    return dumps({name: call.name, arguments: call.parameters})


def _spaced(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- between call tags --------------------------------------------------------------------------------


@_style("A1", marked=True)
def hermes(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: (
            f"<tool_call>\n{_spaced({'name': call.name, 'arguments': call.parameters})}\n</tool_call>"
        ),
        calls,
    )


@_style("A1", marked=True)
def toolrl(calls: Sequence[Call]) -> str:
    return tool_call_tags(calls)


@_style("A1", marked=True)
def hermes_text_arguments(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: (
            f"<tool_call>\n{dumps({'name': call.name, 'arguments': dumps(call.parameters)})}\n</tool_call>"
        ),
        calls,
    )


@_style("A1", marked=True)
def hermes_indented(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: (
            "<tool_call>\n"
            + json.dumps({"name": call.name, "arguments": call.parameters}, indent=2, ensure_ascii=False)
            + "\n</tool_call>"
        ),
        calls,
    )


@_style("A1", marked=True)
def hermes_unclosed(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"<tool_call>\n{_json(call)}", calls)


@_style("A1", marked=True)
def nemotron(calls: Sequence[Call]) -> str:
    return f"<TOOLCALL>[{', '.join(map(_json, calls))}]</TOOLCALL>"


@_style("A1", marked=True)
def minimax_m1(calls: Sequence[Call]) -> str:
    return "<tool_calls>\n" + "\n".join(map(_json, calls)) + "\n</tool_calls>"


@_style("A1", marked=True)
def granite_20b(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"<function_call> {_json(call)}", calls)


@_style("A1", marked=True)
def square_tag(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"[tool_call]\n{_json(call)}\n[/tool_call]", calls)


@_style("A1", marked=True)
def tool_request(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"[TOOL_REQUEST]{_json(call)}[END_TOOL_REQUEST]", calls)


@_style("A7", marked=True)
def pipe_tag(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"<|tool_call|>\n{_json(call)}\n<|/tool_call|>", calls)


@_style("A2", marked=True)
def tool_tag(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"<tool>{call.name}</tool>\n{dumps(call.parameters)}", calls)


@_style("A2", marked=True)
def tool_and_input(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: f"<tool>{call.name}</tool><tool_input>{dumps(call.parameters)}</tool_input>", calls
    )


@_style("A3", marked=True)
def object_attribute(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f'<tool name="{call.name}" parameters={dumps(call.parameters)}/>', calls)


@_style("A4", marked=True)
def tool_attribute(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f'<toolcall tool="{call.name}">{dumps(call.parameters)}</toolcall>', calls)


@_style("A5", marked=True)
def name_attribute(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: f'<tool_call tool_name="{call.name}">{dumps(call.parameters)}</tool_call>', calls
    )


@_style("A6", marked=True)
def python_in_tag(calls: Sequence[Call]) -> str:
    return f"<tool_call>\n{python_calls(calls)[1:-1]}\n</tool_call>"


@_style("A6", marked=True)
def nemotron_python(calls: Sequence[Call]) -> str:
    return f"<TOOLCALL>{python_calls(calls)}</TOOLCALL>"


@_style("A6", marked=True)
def olmo3(calls: Sequence[Call]) -> str:
    return f"<function_calls>{_joined(_python, calls)}</function_calls>"


# --- XML ----------------------------------------------------------------------------------------------


@_style("X1", marked=True)
def qwen3_coder(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"<tool_call>\n{_function_xml(call)}\n</tool_call>", calls)


@_style("X1", marked=True)
def seed_oss(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: f"<seed:tool_call>\n{_function_xml(call, inline=True)}\n</seed:tool_call>", calls
    )


@_style("X1", marked=True)
def qwen3_coder_bare(calls: Sequence[Call]) -> str:
    return _joined(_function_xml, calls)


def _function_xml(call: Call, *, inline: bool = False) -> str:
    gap = "" if inline else "\n"
    lines = [
        f"<parameter={key}>{gap}{_text(value)}{gap}</parameter>" for key, value in call.parameters.items()
    ]
    return "\n".join([f"<function={call.name}>", *lines, "</function>"])


def _invoke(call: Call, quoted: Callable[[str], str], space: str = "") -> str:
    lines = [
        f'<{space}parameter name="{quoted(key)}">{quoted(_text(value))}</{space}parameter>'
        for key, value in call.parameters.items()
    ]
    return "\n".join([f'<{space}invoke name="{call.name}">', *lines, f"</{space}invoke>"])


@_style("X2", marked=True)
def anthropic(calls: Sequence[Call]) -> str:
    return "<function_calls>\n" + _joined(lambda call: _invoke(call, _escaped), calls) + "\n</function_calls>"


@_style("X2", marked=True)
def anthropic_name_space(calls: Sequence[Call]) -> str:
    body = _joined(lambda call: _invoke(call, _escaped, "antml:"), calls)
    return f"<function_calls>\n{body}\n</function_calls>"


@_style("X2", marked=True)
def minimax_m2(calls: Sequence[Call]) -> str:
    return (
        "<minimax:tool_call>\n" + _joined(lambda call: _invoke(call, str), calls) + "\n</minimax:tool_call>"
    )


@_style("X2", marked=True)
def step3(calls: Sequence[Call]) -> str:
    one = lambda call: (
        "<｜tool_call_begin｜>function<｜tool_sep｜>" + _invoke(call, str, "steptml:") + "<｜tool_call_end｜>"
    )
    return f"<｜tool_calls_begin｜>{_joined(one, calls, '')}<｜tool_calls_end｜>"


def _dsml(call: Call, mark: str) -> str:
    lines = [
        f'<{mark}parameter name="{key}" string="{str(isinstance(value, str)).lower()}">{_text(value)}</{mark}parameter>'
        for key, value in call.parameters.items()
    ]
    return "\n".join([f'<{mark}invoke name="{call.name}">', *lines, f"</{mark}invoke>"])


@_style("X2", marked=True)
def deepseek_v32(calls: Sequence[Call]) -> str:
    body = _joined(lambda call: _dsml(call, "｜DSML｜"), calls)
    return f"<｜DSML｜function_calls>\n{body}\n</｜DSML｜function_calls>"


@_style("X2", marked=True)
def deepseek_v32_stripped(calls: Sequence[Call]) -> str:
    return "<function_calls>\n" + _joined(lambda call: _dsml(call, ""), calls) + "\n</function_calls>"


@_style("X3", marked=True)
def anthropic_older(calls: Sequence[Call]) -> str:
    one = lambda call: "\n".join(
        [
            "<invoke>",
            f"<tool_name>{call.name}</tool_name>",
            "<parameters>",
            *_elements(call),
            "</parameters>",
            "</invoke>",
        ]
    )
    return "<function_calls>\n" + _joined(one, calls) + "\n</function_calls>"


def _elements(call: Call) -> list[str]:
    return [f"<{key}>{_escaped(_text(value))}</{key}>" for key, value in call.parameters.items()]


def _escaped(text: str) -> str:
    return escape(text, quote=False)


@_style("X4", marked=True)
def cline(calls: Sequence[Call]) -> str:
    return _joined(lambda call: "\n".join([f"<{call.name}>", *_elements(call), f"</{call.name}>"]), calls)


@_style("X5", marked=True)
def attributes(calls: Sequence[Call]) -> str:
    one = lambda call: (
        f'<tool_call name="{call.name}"'
        + "".join(f' {key}="{escape(_text(value))}"' for key, value in call.parameters.items())
        + "/>"
    )
    return _joined(one, calls)


@_style("X5", marked=True)
def function_elements(calls: Sequence[Call]) -> str:
    one = lambda call: "\n".join(
        [
            f'<function name="{call.name}">',
            *(
                f'<parameter name="{key}">{_escaped(_text(value))}</parameter>'
                for key, value in call.parameters.items()
            ),
            "</function>",
        ]
    )
    return _joined(one, calls)


@_style("X6", marked=True)
def children(calls: Sequence[Call]) -> str:
    one = lambda call: (
        f"<tool_call>\n<name>{call.name}</name>\n<arguments>{dumps(call.parameters)}</arguments>\n</tool_call>"
    )
    return _joined(one, calls)


@_style("G1", marked=True)
def glm45(calls: Sequence[Call]) -> str:
    def one(call: Call) -> str:
        pairs = [
            f"<arg_key>{key}</arg_key>\n<arg_value>{_text(value)}</arg_value>"
            for key, value in call.parameters.items()
        ]
        return "\n".join([f"<tool_call>{call.name}", *pairs, "</tool_call>"])

    return _joined(one, calls)


@_style("L1", marked=True)
def llama31_function(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"<function={call.name}>{dumps(call.parameters)}</function>", calls)


# --- behind special tokens ----------------------------------------------------------------------------


@_style("A7", marked=True)
def llama31_python_tag(calls: Sequence[Call]) -> str:
    return f"<|python_tag|>{_joined(lambda call: _json(call, arguments='parameters'), calls, '; ')}<|eom_id|>"


@_style("A7", marked=True, single=True)
def llama31_builtin(calls: Sequence[Call]) -> str:
    call = calls[0]
    return f"<|python_tag|>{_python(Call(call.name + '.call', call.parameters))}"


@_style("A7", marked=True)
def llama4(calls: Sequence[Call]) -> str:
    return f"<|python_start|>{python_calls(calls)}<|python_end|>"


@_style("A7", marked=True)
def lfm2(calls: Sequence[Call]) -> str:
    return f"<|tool_call_start|>{python_calls(calls)}<|tool_call_end|>Looking it up."


@_style("A7", marked=True)
def apertus(calls: Sequence[Call]) -> str:
    return f"<|tools_prefix|>[{_joined(lambda call: dumps({call.name: call.parameters}), calls, ', ')}]<|tools_suffix|>"


@_style("A7", marked=True)
def cohere(calls: Sequence[Call]) -> str:
    items = [
        {"tool_call_id": str(number), "tool_name": call.name, "parameters": call.parameters}
        for number, call in enumerate(calls)
    ]
    return f"<|START_ACTION|>{json.dumps(items, indent=4, ensure_ascii=False)}<|END_ACTION|>"


@_style("A7", marked=True, single=True)
def internlm(calls: Sequence[Call]) -> str:
    return f"<|action_start|><|plugin|>\n{_json(calls[0], arguments='parameters')}<|action_end|>"


@_style("A7", marked=True)
def granite3(calls: Sequence[Call]) -> str:
    return f"<|tool_call|>[{', '.join(map(_json, calls))}]"


@_style("A7", marked=True)
def phi4_mini(calls: Sequence[Call]) -> str:
    return f"functools[{', '.join(map(_json, calls))}]"


@_style("M1", marked=True)
def mistral_v3(calls: Sequence[Call]) -> str:
    return f"[TOOL_CALLS] [{', '.join(map(_json, calls))}]</s>"


@_style("M1", marked=True)
def mistral_v7(calls: Sequence[Call]) -> str:
    items = [
        {"name": call.name, "arguments": call.parameters, "id": f"a1b2c3d4{n}"}
        for n, call in enumerate(calls)
    ]
    return f"[TOOL_CALLS]{dumps(items)}</s>"


@_style("M1", marked=True)
def mistral_v11(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"[TOOL_CALLS]{call.name}[ARGS]{dumps(call.parameters)}", calls, "") + "</s>"


@_style("M1", marked=True)
def mistral_v13(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: f"[TOOL_CALLS]{call.name}[CALL_ID]a1b2c3d4e[ARGS]{dumps(call.parameters)}", calls, ""
    )


@_style("D1", marked=True)
def deepseek_v3(calls: Sequence[Call]) -> str:
    one = lambda call: (
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{call.name}\n```json\n{dumps(call.parameters)}\n```<｜tool▁call▁end｜>"
    )
    return f"<｜tool▁calls▁begin｜>{_joined(one, calls)}<｜tool▁calls▁end｜><｜end▁of▁sentence｜>"


@_style("D1", marked=True)
def deepseek_v31(calls: Sequence[Call]) -> str:
    one = lambda call: (
        f"<｜tool▁call▁begin｜>{call.name}<｜tool▁sep｜>{dumps(call.parameters)}<｜tool▁call▁end｜>"
    )
    return f"<｜tool▁calls▁begin｜>{_joined(one, calls, '')}<｜tool▁calls▁end｜><｜end▁of▁sentence｜>"


@_style("K1", marked=True)
def kimi_k2(calls: Sequence[Call]) -> str:
    body = "".join(
        f"<|tool_call_begin|>functions.{call.name}:{number}<|tool_call_argument_begin|>{dumps(call.parameters)}<|tool_call_end|>"
        for number, call in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{body}<|tool_calls_section_end|>"


@_style("K2", marked=True)
def kimi_k3(calls: Sequence[Call]) -> str:
    kinds = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}

    def one(number: int, call: Call) -> str:
        pairs = "".join(
            f'<|open|>argument key="{escape(key)}" type="{kinds.get(type(value), "null")}"<|sep|>{_text(value)}<|close|>argument<|sep|>'
            for key, value in call.parameters.items()
        )
        return f'<|open|>call tool="{call.name}" index="{number}"<|sep|>{pairs}<|close|>call<|sep|>'

    return f"<|open|>tools<|sep|>{''.join(one(n, call) for n, call in enumerate(calls))}<|close|>tools<|sep|>"


@_style("H1", marked=True, single=True)
def harmony(calls: Sequence[Call]) -> str:
    call = calls[0]
    return (
        f"<|start|>assistant<|channel|>commentary to=functions.{call.name} <|constrain|>json<|message|>"
        f"{dumps(call.parameters)}<|call|>"
    )


@_style("H1", marked=True)
def harmony_messages(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: (
            f"<|start|>assistant to=functions.{call.name}<|channel|>commentary json<|message|>{dumps(call.parameters)}<|call|>"
        ),
        calls,
        "",
    )


@_style("H1", marked=True)
def harmony_stripped(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: f"assistantcommentary to=functions.{call.name} json{dumps(call.parameters)}", calls, ""
    )


@_style("F1", marked=True, single=True)
def functionary_v2(calls: Sequence[Call]) -> str:
    return f"<|from|>assistant\n<|recipient|>{calls[0].name}\n<|content|>{dumps(calls[0].parameters)}"


@_style("F1", marked=True)
def functionary_v3(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f">>>{call.name}\n{dumps(call.parameters)}", calls)


@_style("E1", marked=True)
def functiongemma(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: (
            f"<start_function_call>call:{call.name}{_gemma(call.parameters, '<escape>')}<end_function_call>"
        ),
        calls,
        "",
    )


@_style("E1", marked=True)
def gemma4(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: f"<|tool_call>call:{call.name}{_gemma(call.parameters, QUOTE)}<tool_call|>", calls, ""
    )


QUOTE = '<|"|>'


def _gemma(value: Json, quote: str) -> str:
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_gemma(inner, quote)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_gemma(inner, quote) for inner in value) + "]"
    return dumps(value)


@_style("Q1", marked=True)
def qwen_agent(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"✿FUNCTION✿: {call.name}\n✿ARGS✿: {dumps(call.parameters)}", calls)


# --- ReAct --------------------------------------------------------------------------------------------


@_style("R1", marked=True)
def react_lines(calls: Sequence[Call]) -> str:
    return react(calls)


def _react(action: str, given: str, between: str = "\n") -> Writer:
    def write(calls: Sequence[Call]) -> str:
        return _joined(lambda call: f"{action} {call.name}{between}{given} {_spaced(call.parameters)}", calls)

    return write


for _name, _labels in {
    "react_bold": ("**Action:**", "**Action Input:**"),
    "react_bold_word": ("**Action**:", "**Action Input**:"),
    "react_lower": ("action:", "action input:"),
    "react_upper": ("ACTION:", "ACTION INPUT:"),
    "react_full_width": ("Action：", "Action Input："),
    "react_input": ("Action:", "Input:"),
    "react_arguments": ("Action:", "Arguments:"),
    "react_parameters": ("Action:", "Action Parameters:"),
    "react_numbered": ("Action 1:", "Action Input 1:"),
}.items():
    _writer = _react(*_labels)
    STYLES[_name] = Style(name=_name, code="R1", write=_writer, marked=True)


@_style("R1", marked=True)
def react_fenced(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: (
            f"Action: {call.name}\nAction Input:\n```json\n{json.dumps(call.parameters, indent=1, ensure_ascii=False)}\n```"
        ),
        calls,
    )


@_style("R1", marked=True)
def react_python(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"Action: {_python(call)}", calls)


@_style("R1", marked=True)
def react_json(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"Action: {_json(call)}", calls)


@_style("R1", marked=True)
def react_blob(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"Action:\n```json\n{_json(call, 'action', 'action_input')}\n```", calls)


@_style("R2", marked=True)
def react_code(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"ActionCode: {call.name}\nAction Input: {dumps(call.parameters)}", calls)


# --- bare: Python -------------------------------------------------------------------------------------


@_style("B1", marked=False)
def python_list(calls: Sequence[Call]) -> str:
    return python_calls(calls)


@_style("B1", marked=False)
def python_list_end_marker(calls: Sequence[Call]) -> str:
    return python_calls(calls) + "<|eot_id|>"


@_style("B1", marked=False)
def python_list_fenced(calls: Sequence[Call]) -> str:
    return f"```python\n{python_calls(calls)}\n```"


@_style("B1", marked=False)
def python_list_lines(calls: Sequence[Call]) -> str:
    return "[\n    " + ",\n    ".join(map(_python, calls)) + "\n]"


@_style("B1", marked=False)
def list_of_texts(calls: Sequence[Call]) -> str:
    return json.dumps([_python(call) for call in calls], ensure_ascii=False)


@_style("B2", marked=False, arguments=True)
def python_colons(calls: Sequence[Call]) -> str:
    one = lambda call: (
        f"{call.name}({', '.join(f'{_key(key)}: {value!r}' for key, value in call.parameters.items())})"
    )
    return "[" + _joined(one, calls, ", ") + "]"


@_style("B3", marked=False)
def keyword_list(calls: Sequence[Call]) -> str:
    return (
        "[" + _joined(lambda call: f"func_name={call.name!r}, params={call.parameters!r}", calls, ", ") + "]"
    )


@_style("P", marked=False)
def python_lines(calls: Sequence[Call]) -> str:
    return _joined(_python, calls)


@_style("P", marked=False)
def tool_code(calls: Sequence[Call]) -> str:
    return f"```tool_code\n{_joined(lambda call: f'print({_python(call)})', calls)}\n```"


@_style("P", marked=False)
def default_api(calls: Sequence[Call]) -> str:
    return f"```tool_code\n{_joined(lambda call: f'print(default_api.{_python(call)})', calls)}\n```"


@_style("P", marked=False)
def python_semicolons(calls: Sequence[Call]) -> str:
    return _joined(_python, calls, "; ") + ";"


@_style("P", marked=False)
def python_assigned(calls: Sequence[Call]) -> str:
    return "\n".join(f"result_{number} = {_python(call)}" for number, call in enumerate(calls))


@_style("P", marked=False)
def python_bullets(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"- {_python(call)}", calls)


@_style("P", marked=False)
def python_numbered(calls: Sequence[Call]) -> str:
    return "\n".join(f"{number}. {_python(call)}" for number, call in enumerate(calls, 1))


@_style("P", marked=False, arguments=True)
def python_object(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"{call.name}({call.parameters!r})", calls)


@_style("P", marked=False, arguments=True)
def python_parameters(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"{call.name}(parameters={call.parameters!r})", calls)


def _key(key: str) -> str:
    return key if key.isidentifier() else f'"{key}"'


def _python(call: Call) -> str:
    return python_calls([call])[1:-1]


# --- bare: JSON ---------------------------------------------------------------------------------------


@_style("J", marked=False)
def json_lines(calls: Sequence[Call]) -> str:
    return _joined(lambda call: _json(call, arguments="parameters"), calls)


@_style("J", marked=False)
def json_list(calls: Sequence[Call]) -> str:
    return f"[{', '.join(map(_json, calls))}]"


@_style("J", marked=False)
def json_semicolons(calls: Sequence[Call]) -> str:
    return _joined(lambda call: _json(call, arguments="parameters"), calls, "; ")


@_style("J", marked=False)
def json_fenced(calls: Sequence[Call]) -> str:
    return f"```json\n{json_list(calls)}\n```"


@_style("J", marked=False)
def json_openai(calls: Sequence[Call]) -> str:
    items = [
        {
            "id": f"call_{n}",
            "type": "function",
            "function": {"name": call.name, "arguments": dumps(call.parameters)},
        }
        for n, call in enumerate(calls)
    ]
    return dumps({"tool_calls": items})


@_style("J", marked=False)
def json_tool_uses(calls: Sequence[Call]) -> str:
    return dumps(
        {
            "tool_uses": [
                {"recipient_name": f"functions.{call.name}", "parameters": call.parameters} for call in calls
            ]
        }
    )


for _name, _keys in {
    "json_function": ("function", "arguments"),
    "json_function_name": ("function_name", "parameters"),
    "json_tool_input": ("tool", "tool_input"),
    "json_tool_args": ("tool_name", "tool_args"),
    "json_input": ("name", "input"),
    "json_kwargs": ("name", "kwargs"),
    "json_api": ("api", "arguments"),
    "json_api_name": ("api_name", "parameters"),
    "json_action": ("action", "action_input"),
    "json_capitals": ("Name", "Arguments"),
}.items():
    STYLES[_name] = Style(
        name=_name,
        code="J",
        write=lambda calls, keys=_keys: _joined(lambda call: _json(call, *keys), calls),  # type: ignore[misc]
        marked=False,
    )


@_style("J", marked=False)
def json_by_name(calls: Sequence[Call]) -> str:
    return _joined(lambda call: dumps({call.name: call.parameters}), calls)


@_style("J", marked=False, arguments=True)
def json_flat(calls: Sequence[Call]) -> str:
    return _joined(lambda call: dumps({"tool": call.name, **call.parameters}), calls)


@_style("J", marked=False)
def json_python(calls: Sequence[Call]) -> str:
    return _joined(lambda call: repr({"name": call.name, "arguments": call.parameters}), calls)


@_style("J", marked=False)
def json_script_keys(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"{{name: {dumps(call.name)}, arguments: {dumps(call.parameters)}}}", calls)


@_style("J", marked=False)
def json_comments(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: (
            f'{{\n  "name": {dumps(call.name)}, // the tool\n  "arguments": {dumps(call.parameters)} /* its input */\n}}'
        ),
        calls,
    )


@_style("J", marked=False)
def json_trailing_commas(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: f'{{"name": {dumps(call.name)}, "arguments": {dumps(call.parameters)},}}', calls
    )


@_style("J", marked=False, single=True)
def json_missing_brace(calls: Sequence[Call]) -> str:
    return _json(calls[0])[:-1]


@_style("J", marked=False, single=True)
def json_escaped_twice(calls: Sequence[Call]) -> str:
    return dumps(_json(calls[0]))


# --- bare: the rest -----------------------------------------------------------------------------------


@_style("T1", marked=False)
def name_colon(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"{call.name}: {dumps(call.parameters)}", calls)


@_style("T2", marked=False)
def labelled(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"Function: {call.name}\nParameters: {dumps(call.parameters)}", calls)


@_style("T2", marked=False)
def labelled_tool(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"**Tool:** {call.name}\n**Arguments:** {dumps(call.parameters)}", calls)


@_style("T3", marked=False, text_values=True, arguments=True)
def query(calls: Sequence[Call]) -> str:
    from urllib.parse import quote

    return _joined(
        lambda call: (
            f"`{call.name}?"
            + "&".join(f"{quote(key)}={quote(_text(value))}" for key, value in call.parameters.items())
            + "`"
        ),
        calls,
    )


@_style("T4", marked=False, arguments=True, one_line=True)
def key_lines(calls: Sequence[Call]) -> str:
    return _joined(
        lambda call: "\n".join(
            [f"Tool: {call.name}", *(f"{key}: {_text(value)}" for key, value in call.parameters.items())]
        ),
        calls,
        "\n\n",
    )


@_style("N1", marked=False)
def mistral_v11_stripped(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"{call.name}{dumps(call.parameters)}", calls, "")


@_style("N1", marked=False)
def kimi_k2_stripped(calls: Sequence[Call]) -> str:
    return "".join(f"functions.{call.name}:{n}{dumps(call.parameters)}" for n, call in enumerate(calls))


@_style("N1", marked=False)
def deepseek_v3_stripped(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"function{call.name}\n```json\n{dumps(call.parameters)}\n```", calls)


@_style("N1", marked=False)
def glm4(calls: Sequence[Call]) -> str:
    return _joined(lambda call: f"{call.name}\n{dumps(call.parameters)}", calls)
