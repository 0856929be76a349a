"""Calls as today's models write them: one style each, the counterpart of the readers in `eval/parse`.

Written from the chat templates' published forms; the texts are our own. A style is a template of a call (and of a
parameter, where each one is written out), with the names that `_call_fields` and `_pair_fields` give.
"""

import json
from collections.abc import Sequence
from html import escape
from string import Template
from urllib.parse import quote

import msgspec

from robustbench_tc.eval.parse import FORMATS
from robustbench_tc.eval.prompts.calls import python_calls
from robustbench_tc.schema import Call, Json, dumps

_JSON = '{"name":$json_name,"arguments":$arguments}'
_JSON_PARAMETERS = '{"name":$json_name,"parameters":$arguments}'
_PYTHON = "$name($keywords)"
_ELEMENT = "<$key>$escaped</$key>\n"


class Style(msgspec.Struct, frozen=True):
    """One way of writing calls."""

    code: str
    """Of the format, a key of `parse.FORMATS`."""
    call: str
    """Template of one call."""
    between: str = "\n"
    """What stands between two calls."""
    around: str = "$calls"
    """Template of what stands around all calls."""
    pair: str = ""
    """Template of one parameter, `$pairs` in that of a call."""
    pairs_between: str = ""
    single: bool = False
    """Has no form for several calls."""
    text_values: bool = False
    """Every value stays text: only calls whose arguments are texts are written right."""
    arguments: bool = False
    """Needs arguments: a call without any has no form, or is a name alone."""
    one_line: bool = False
    """Has no form for a text of several lines."""

    @property
    def marked(self) -> bool:
        """Whether its calls stand out from prose."""
        return FORMATS[self.code].marked

    def write(self, calls: Sequence[Call]) -> str:
        """The calls in this style."""
        written = []
        for number, call in enumerate(calls):
            pairs = [Template(self.pair).substitute(_pair_fields(*item)) for item in call.parameters.items()]
            fields = {**_call_fields(call, number), "pairs": self.pairs_between.join(pairs)}
            written.append(Template(self.call).substitute(fields))
        return Template(self.around).substitute(calls=self.between.join(written))

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


def _call_fields(call: Call, number: int) -> dict[str, object]:
    python = python_calls([call])[1:-1]
    return {
        "name": call.name,
        "json_name": dumps(call.name),
        "python_name": repr(call.name),
        "number": number,
        "number_from_one": number + 1,
        "arguments": dumps(call.parameters),
        "arguments_text": dumps(dumps(call.parameters)),
        "spaced": json.dumps(call.parameters, ensure_ascii=False),
        "indented": json.dumps(call.parameters, ensure_ascii=False, indent=1),
        "python": repr(call.parameters),
        "keywords": python.removeprefix(f"{call.name}(").removesuffix(")"),
        "python_text": json.dumps(python, ensure_ascii=False),
        "json_text": dumps(dumps({"name": call.name, "arguments": call.parameters})),
        "function_gemma": _gemma(call.parameters, "<escape>"),
        "gemma4": _gemma(call.parameters, '<|"|>'),
    }


def _pair_fields(key: str, value: Json) -> dict[str, object]:
    text = value if isinstance(value, str) else dumps(value)
    kinds = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return {
        "key": key,
        "json_key": dumps(key),
        "word": key if key.isidentifier() else f'"{key}"',
        "url_key": quote(key),
        "escaped_key": escape(key, quote=False),
        "attribute_key": escape(key),
        "text": text,
        "json": dumps(value),
        "python": repr(value),
        "url": quote(text),
        "escaped": escape(text, quote=False),
        "attribute": escape(text),
        "type": kinds.get(type(value), "null"),
        "is_text": str(isinstance(value, str)).lower(),
    }


def _gemma(value: Json, mark: str) -> str:
    if isinstance(value, str):
        return f"{mark}{value}{mark}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_gemma(inner, mark)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_gemma(inner, mark) for inner in value) + "]"
    return dumps(value)


def _invoked(block: str, space: str, parameter: str) -> Style:
    """Anthropic's elements, in a block and a name space."""
    return Style(
        "X2",
        f'<{space}invoke name="$name">\n$pairs</{space}invoke>',
        around=f"<{block}>\n$calls\n</{block}>",
        pair=f"<{space}parameter {parameter}</{space}parameter>\n",
    )


_AS_THEY_ARE = 'name="$key">$text'
_ESCAPED = 'name="$escaped_key">$escaped'
_TYPED = 'name="$key" string="$is_text">$text'
_FUNCTION_XML = "<function=$name>\n$pairs</function>"
_PARAMETER_XML = "<parameter=$key>\n$text\n</parameter>\n"

TAGS = {
    "hermes": Style("A1", '<tool_call>\n{"name": $json_name, "arguments": $spaced}\n</tool_call>'),
    "toolrl": Style("A1", _JSON_PARAMETERS, around="<tool_call>\n$calls\n</tool_call>"),
    "hermes_text_arguments": Style(
        "A1", '<tool_call>\n{"name":$json_name,"arguments":$arguments_text}\n</tool_call>'
    ),
    "hermes_indented": Style(
        "A1", '<tool_call>\n{\n  "name": $json_name,\n  "arguments": $indented\n}\n</tool_call>'
    ),
    "hermes_unclosed": Style("A1", f"<tool_call>\n{_JSON}"),
    "nemotron": Style("A1", _JSON, ", ", "<TOOLCALL>[$calls]</TOOLCALL>"),
    "minimax_m1": Style("A1", _JSON, around="<tool_calls>\n$calls\n</tool_calls>"),
    "granite_20b": Style("A1", f"<function_call> {_JSON}"),
    "square_tag": Style("A1", f"[tool_call]\n{_JSON}\n[/tool_call]"),
    "tool_request": Style("A1", f"[TOOL_REQUEST]{_JSON}[END_TOOL_REQUEST]"),
    "pipe_tag": Style("A7", f"<|tool_call|>\n{_JSON}\n<|/tool_call|>"),
    "tool_tag": Style("A2", "<tool>$name</tool>\n$arguments"),
    "tool_and_input": Style("A2", "<tool>$name</tool><tool_input>$arguments</tool_input>"),
    "object_attribute": Style("A3", '<tool name="$name" parameters=$arguments/>'),
    "tool_attribute": Style("A4", '<toolcall tool="$name">$arguments</toolcall>'),
    "name_attribute": Style("A5", '<tool_call tool_name="$name">$arguments</tool_call>'),
    "python_in_tag": Style("A6", _PYTHON, ", ", "<tool_call>\n$calls\n</tool_call>"),
    "nemotron_python": Style("A6", _PYTHON, ", ", "<TOOLCALL>[$calls]</TOOLCALL>"),
    "olmo3": Style("A6", _PYTHON, around="<function_calls>$calls</function_calls>"),
}

XML = {
    "qwen3_coder": Style("X1", f"<tool_call>\n{_FUNCTION_XML}\n</tool_call>", pair=_PARAMETER_XML),
    "seed_oss": Style(
        "X1",
        f"<seed:tool_call>\n{_FUNCTION_XML}\n</seed:tool_call>",
        pair="<parameter=$key>$text</parameter>\n",
    ),
    "qwen3_coder_bare": Style("X1", _FUNCTION_XML, pair=_PARAMETER_XML),
    "anthropic": _invoked("function_calls", "", _ESCAPED),
    "anthropic_name_space": _invoked("function_calls", "antml:", _ESCAPED),
    "minimax_m2": _invoked("minimax:tool_call", "", _AS_THEY_ARE),
    "step3": Style(
        "X2",
        '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="$name">\n$pairs</steptml:invoke>'
        "<｜tool_call_end｜>",
        "",
        "<｜tool_calls_begin｜>$calls<｜tool_calls_end｜>",
        f"<steptml:parameter {_AS_THEY_ARE}</steptml:parameter>\n",
    ),
    "deepseek_v32": _invoked("｜DSML｜function_calls", "｜DSML｜", _TYPED),
    "deepseek_v32_stripped": _invoked("function_calls", "", _TYPED),
    "anthropic_older": Style(
        "X3",
        "<invoke>\n<tool_name>$name</tool_name>\n<parameters>\n$pairs</parameters>\n</invoke>",
        around="<function_calls>\n$calls\n</function_calls>",
        pair=_ELEMENT,
    ),
    "cline": Style("X4", "<$name>\n$pairs</$name>", pair=_ELEMENT),
    "attributes": Style("X5", '<tool_call name="$name"$pairs/>', pair=' $key="$attribute"'),
    "function_elements": Style(
        "X5",
        '<function name="$name">\n$pairs</function>',
        pair='<parameter name="$key">$escaped</parameter>\n',
    ),
    "children": Style(
        "X6", "<tool_call>\n<name>$name</name>\n<arguments>$arguments</arguments>\n</tool_call>"
    ),
    "glm45": Style(
        "G1",
        "<tool_call>$name\n$pairs</tool_call>",
        pair="<arg_key>$key</arg_key>\n<arg_value>$text</arg_value>\n",
    ),
    "llama31_function": Style("L1", "<function=$name>$arguments</function>"),
}

_DEEPSEEK = "<｜tool▁calls▁begin｜>$calls<｜tool▁calls▁end｜><｜end▁of▁sentence｜>"

SPECIAL_TOKENS = {
    "llama31_python_tag": Style("A7", _JSON_PARAMETERS, "; ", "<|python_tag|>$calls<|eom_id|>"),
    "llama31_builtin": Style("A7", "<|python_tag|>$name.call($keywords)", single=True),
    "llama4": Style("A7", _PYTHON, ", ", "<|python_start|>[$calls]<|python_end|>"),
    "lfm2": Style("A7", _PYTHON, ", ", "<|tool_call_start|>[$calls]<|tool_call_end|>Looking it up."),
    "apertus": Style("A7", "{$json_name:$arguments}", ", ", "<|tools_prefix|>[$calls]<|tools_suffix|>"),
    "cohere": Style(
        "A7",
        '    {\n        "tool_call_id": "$number",\n        "tool_name": $json_name,\n'
        '        "parameters": $indented\n    }',
        ",\n",
        "<|START_ACTION|>[\n$calls\n]<|END_ACTION|>",
    ),
    "internlm": Style("A7", f"<|action_start|><|plugin|>\n{_JSON_PARAMETERS}<|action_end|>", single=True),
    "granite3": Style("A7", _JSON, ", ", "<|tool_call|>[$calls]"),
    "phi4_mini": Style("A7", _JSON, ", ", "functools[$calls]"),
    "mistral_v3": Style("M1", _JSON, ", ", "[TOOL_CALLS] [$calls]</s>"),
    "mistral_v7": Style(
        "M1",
        '{"name":$json_name,"arguments":$arguments,"id":"a1b2c3d4$number"}',
        ",",
        "[TOOL_CALLS][$calls]</s>",
    ),
    "mistral_v11": Style("M1", "[TOOL_CALLS]$name[ARGS]$arguments", "", "$calls</s>"),
    "mistral_v13": Style("M1", "[TOOL_CALLS]$name[CALL_ID]a1b2c3d4e[ARGS]$arguments", ""),
    "deepseek_v3": Style(
        "D1",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>$name\n```json\n$arguments\n```<｜tool▁call▁end｜>",
        around=_DEEPSEEK,
    ),
    "deepseek_v31": Style(
        "D1", "<｜tool▁call▁begin｜>$name<｜tool▁sep｜>$arguments<｜tool▁call▁end｜>", "", _DEEPSEEK
    ),
    "kimi_k2": Style(
        "K1",
        "<|tool_call_begin|>functions.$name:$number<|tool_call_argument_begin|>$arguments<|tool_call_end|>",
        "",
        "<|tool_calls_section_begin|>$calls<|tool_calls_section_end|>",
    ),
    "kimi_k3": Style(
        "X2",
        '<|open|>call tool="$name" index="$number"<|sep|>$pairs<|close|>call<|sep|>',
        "",
        "<|open|>tools<|sep|>$calls<|close|>tools<|sep|>",
        '<|open|>argument key="$attribute_key" type="$type"<|sep|>$text<|close|>argument<|sep|>',
    ),
    "harmony": Style(
        "H1",
        "<|start|>assistant<|channel|>commentary to=functions.$name <|constrain|>json<|message|>$arguments<|call|>",
        single=True,
    ),
    "harmony_messages": Style(
        "H1",
        "<|start|>assistant to=functions.$name<|channel|>commentary json<|message|>$arguments<|call|>",
        "",
    ),
    "harmony_stripped": Style("H1", "assistantcommentary to=functions.$name json$arguments", ""),
    "functionary_v2": Style(
        "F1", "<|from|>assistant\n<|recipient|>$name\n<|content|>$arguments", single=True
    ),
    "functionary_v3": Style("F1", ">>>$name\n$arguments"),
    "functiongemma": Style("E1", "<start_function_call>call:$name$function_gemma<end_function_call>", ""),
    "gemma4": Style("E1", "<|tool_call>call:$name$gemma4<tool_call|>", ""),
    "qwen_agent": Style("Q1", "✿FUNCTION✿: $name\n✿ARGS✿: $arguments"),
}

REACT = {
    "react_lines": Style("R1", "Thought: I use $name.\nAction: $name\nAction Input: $arguments"),
    "react_bold": Style("R1", "**Action:** $name\n**Action Input:** $spaced"),
    "react_bold_word": Style("R1", "**Action**: $name\n**Action Input**: $spaced"),
    "react_lower": Style("R1", "action: $name\naction input: $spaced"),
    "react_upper": Style("R1", "ACTION: $name\nACTION INPUT: $spaced"),
    "react_full_width": Style("R1", "Action： $name\nAction Input： $spaced"),
    "react_input": Style("R1", "Action: $name\nInput: $spaced"),
    "react_arguments": Style("R1", "Action: $name\nArguments: $spaced"),
    "react_parameters": Style("R1", "Action: $name\nAction Parameters: $spaced"),
    "react_numbered": Style("R1", "Action 1: $name\nAction Input 1: $spaced"),
    "react_fenced": Style("R1", "Action: $name\nAction Input:\n```json\n$indented\n```"),
    "react_python": Style("R1", f"Action: {_PYTHON}"),
    "react_json": Style("R1", f"Action: {_JSON}"),
    "react_blob": Style("R1", 'Action:\n```json\n{"action":$json_name,"action_input":$arguments}\n```'),
    "react_code": Style("R2", "ActionCode: $name\nAction Input: $arguments"),
}

BARE_PYTHON = {
    "python_list": Style("B1", _PYTHON, ", ", "[$calls]"),
    "python_list_end_marker": Style("B1", _PYTHON, ", ", "[$calls]<|eot_id|>"),
    "python_list_fenced": Style("B1", _PYTHON, ", ", "```python\n[$calls]\n```"),
    "python_list_lines": Style("B1", _PYTHON, ",\n    ", "[\n    $calls\n]"),
    "list_of_texts": Style("B1", "$python_text", ", ", "[$calls]"),
    "python_colons": Style("B2", "$name($pairs)", ", ", "[$calls]", "$word: $python", ", ", arguments=True),
    "keyword_list": Style("B3", "func_name=$python_name, params=$python", ", ", "[$calls]"),
    "python_lines": Style("P", _PYTHON),
    "tool_code": Style("P", f"print({_PYTHON})", around="```tool_code\n$calls\n```"),
    "default_api": Style("P", f"print(default_api.{_PYTHON})", around="```tool_code\n$calls\n```"),
    "python_semicolons": Style("P", _PYTHON, "; ", "$calls;"),
    "python_assigned": Style("P", f"result_$number = {_PYTHON}"),
    "python_bullets": Style("P", f"- {_PYTHON}"),
    "python_numbered": Style("P", f"$number_from_one. {_PYTHON}"),
    "python_object": Style("P", "$name($python)", arguments=True),
    "python_parameters": Style("P", "$name(parameters=$python)", arguments=True),
}

BARE_JSON = {
    "json_lines": Style("J", _JSON_PARAMETERS),
    "json_list": Style("J", _JSON, ", ", "[$calls]"),
    "json_semicolons": Style("J", _JSON_PARAMETERS, "; "),
    "json_fenced": Style("J", _JSON, ", ", "```json\n[$calls]\n```"),
    "json_openai": Style(
        "J",
        '{"id":"call_$number","type":"function","function":{"name":$json_name,"arguments":$arguments_text}}',
        ",",
        '{"tool_calls":[$calls]}',
    ),
    "json_tool_uses": Style(
        "J", '{"recipient_name":"functions.$name","parameters":$arguments}', ",", '{"tool_uses":[$calls]}'
    ),
    "json_function": Style("J", '{"function":$json_name,"arguments":$arguments}'),
    "json_function_name": Style("J", '{"function_name":$json_name,"parameters":$arguments}'),
    "json_tool_input": Style("J", '{"tool":$json_name,"tool_input":$arguments}'),
    "json_tool_args": Style("J", '{"tool_name":$json_name,"tool_args":$arguments}'),
    "json_input": Style("J", '{"name":$json_name,"input":$arguments}'),
    "json_kwargs": Style("J", '{"name":$json_name,"kwargs":$arguments}'),
    "json_api": Style("J", '{"api":$json_name,"arguments":$arguments}'),
    "json_api_name": Style("J", '{"api_name":$json_name,"parameters":$arguments}'),
    "json_action": Style("J", '{"action":$json_name,"action_input":$arguments}'),
    "json_capitals": Style("J", '{"Name":$json_name,"Arguments":$arguments}'),
    "json_by_name": Style("J", "{$json_name:$arguments}"),
    "json_flat": Style("J", '{"tool":$json_name$pairs}', pair=",$json_key:$json", arguments=True),
    "json_python": Style("J", "{'name': $python_name, 'arguments': $python}"),
    "json_script_keys": Style("J", "{name: $json_name, arguments: $arguments}"),
    "json_comments": Style(
        "J", '{\n  "name": $json_name, // the tool\n  "arguments": $arguments /* its input */\n}'
    ),
    "json_trailing_commas": Style("J", '{"name": $json_name, "arguments": $arguments,}'),
    "json_missing_brace": Style("J", _JSON.removesuffix("}"), single=True),
    "json_escaped_twice": Style("J", "$json_text", single=True),
}

BARE_NAMES = {
    "name_colon": Style("T1", "$name: $arguments"),
    "labelled": Style("T2", "Function: $name\nParameters: $arguments"),
    "labelled_tool": Style("T2", "**Tool:** $name\n**Arguments:** $arguments"),
    "query": Style(
        "T3", "`$name?$pairs`", pair="$url_key=$url", pairs_between="&", text_values=True, arguments=True
    ),
    "key_lines": Style(
        "T4", "Tool: $name$pairs", "\n\n", pair="\n$key: $text", arguments=True, one_line=True
    ),
    "mistral_v11_stripped": Style("N1", "$name$arguments", ""),
    "kimi_k2_stripped": Style("N1", "functions.$name:$number$arguments", ""),
    "deepseek_v3_stripped": Style("N1", "function$name\n```json\n$arguments\n```"),
    "glm4": Style("N1", "$name\n$arguments"),
}

STYLES = TAGS | XML | SPECIAL_TOKENS | REACT | BARE_PYTHON | BARE_JSON | BARE_NAMES
