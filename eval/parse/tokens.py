"""Calls behind special tokens, one reader for each family; a token is looked up by its name, lower case, with
its word separators as underscores and without its brackets."""

import re
from collections.abc import Callable

from robustbench_tc.schema import Call, Json

from .context import TOOL_NAME, ParseContext
from .found import Finding, Found
from .json_calls import arguments_of
from .payload import read_payload, value_at
from .typed import unescaped

TokenReader = Callable[[str, int, int, ParseContext], Found | None]

_END = re.compile(
    r"\s*+(?:<[|｜]?/?[|｜]?(?:end_function_call|tool_call|python_end|tool_call_end|tool_call:end|tools_suffix|action_end|END_ACTION|end_message"
    r"|tool[▁_ ]calls?[▁_ ]end|tool_calls_section_end|call)[|｜]?>)"
)
_PLUGIN = re.compile(r"\s*+<\|(?:plugin|interpreter)\|>")
_KIMI = re.compile(
    rf"\s*+(?:functions\.)?(?P<name>{TOOL_NAME})(?::\d{{1,4}})?\s*+(?:<\|tool_call_argument_begin\|>)\s*+(?=\{{)"
)
_SOLAR = re.compile(
    rf"[^<>]{{0,64}}<\|tool_call:name\|>\s*+(?P<name>{TOOL_NAME})\s*+<\|tool_call:args\|>\s*+(?=\{{)"
)
_SEPARATOR = r"(?:<[|｜]tool[▁_ ]sep[|｜]>)"
_DEEPSEEK = re.compile(
    rf"\s*+(?:function\s*+{_SEPARATOR}\s*+)?(?P<name>{TOOL_NAME})\s*+{_SEPARATOR}?\s*+(?:```(?:json)?\s*+)?(?=\{{)"
)
_DEEPSEEK_END = re.compile(r"\s*+(?:```)?\s*+(?:<[|｜]tool[▁_ ]call[▁_ ]end[|｜]>)?")
_WORD_BEFORE = re.compile(rf"({TOOL_NAME})\s*\Z")
_BRACE_NEXT = re.compile(r"\s*+(?:```(?:json)?\s*+)?(?=\{)")
_RECIPIENT = re.compile(rf"\s*+(?P<name>{TOOL_NAME})\s*+(?:<\|content\|>)?\s*+(?=\{{)")
_QWEN = re.compile(
    rf"\s*+[:：]\s*+(?P<name>{TOOL_NAME})\s*+(?:✿ARGS✿\s*+[:：]?\s*+(?:```(?:json)?\s*+)?(?P<at>\{{)?)"
)
_K3_CALL = re.compile(r"\s*+call\s([^<>]{1,400})<\|sep\|>")
_K3_ARGUMENT = re.compile(r"\s*+<\|open\|>\s*argument\s([^<>]{1,400})<\|sep\|>")
_K3_ATTRIBUTE = re.compile(r'(\w{1,32})="([^"]{0,200})"')
_K3_VALUE_END = "<|close|>argument<|sep|>"
_K3_END = re.compile(r"\s*+<\|close\|>\s*call\s*<\|sep\|>")
_UNITS = 8
_MAX_ARGUMENTS = 128


def _payload(code: str) -> TokenReader:
    """A reader of whatever calls stand behind the token: JSON, Python, or names with objects."""

    def read(text: str, start: int, at: int, context: ParseContext) -> Found | None:
        plugin = _PLUGIN.match(text, at)
        found = read_payload(text, plugin.end() if plugin else at, context)
        if found is None:
            return None
        findings, end, kind = found
        tail = _END.match(text, end)
        return Found(start, tail.end() if tail else end, findings, "E1" if kind == "gemma" else code)

    return read


def _object(text: str, at: int, name: str, context: ParseContext) -> tuple[Finding, int] | None:
    read = value_at(text, at, context)
    if read is None or not isinstance(read[0], dict):
        return None
    parameters, raw = arguments_of(read[0], context)
    return Finding(Call(name, parameters), raw=raw), read[1]


def _tool_call_begin(text: str, start: int, at: int, context: ParseContext) -> Found | None:
    """Kimi K2 and Solar (K1), or DeepSeek V3, R1-0528 and V3.1 (D1)."""
    kimi = _KIMI.match(text, at) or _SOLAR.match(text, at)
    match = kimi or _DEEPSEEK.match(text, at)
    if match is None or not context.spend(_UNITS):
        return None
    read = _object(text, match.end(), match["name"], context)
    if read is None:
        return None
    tail = (_END if kimi else _DEEPSEEK_END).match(text, read[1])
    return Found(start, tail.end() if tail else read[1], (read[0],), "K1" if kimi else "D1")


def _recipient(text: str, start: int, at: int, context: ParseContext) -> Found | None:
    """F1, Functionary v2: `<|recipient|>f`, `<|content|>{…}`. The recipient `all` is the user."""
    match = _RECIPIENT.match(text, at)
    if match is None or match["name"] == "all" or not context.spend(_UNITS):
        return None
    read = _object(text, match.end(), match["name"], context)
    return None if read is None else Found(start, read[1], (read[0],), "F1")


def qwen_labels(text: str, start: int, at: int, context: ParseContext) -> Found | None:
    """Q1: `✿FUNCTION✿: f`, `✿ARGS✿: {…}`."""
    match = _QWEN.match(text, at)
    if match is None or not context.spend(_UNITS):
        return None
    if match["at"] is None:
        return Found(start, match.end(), (Finding(Call(match["name"], {})),), "Q1")
    read = _object(text, match.start("at"), match["name"], context)
    return None if read is None else Found(start, read[1], (read[0],), "Q1")


def kimi_k3(text: str, start: int, at: int, context: ParseContext) -> Found | None:
    """K2: `<|open|>call tool="f"<|sep|>` and one `argument` element for each argument, typed by itself."""
    opening = _K3_CALL.match(text, at)
    name = dict(_K3_ATTRIBUTE.findall(opening[1])).get("tool") if opening else None
    if opening is None or not name:
        return None
    parameters: dict[str, Json] = {}
    at = opening.end()
    while len(parameters) < _MAX_ARGUMENTS and (argument := _K3_ARGUMENT.match(text, at)):
        attributes = dict(_K3_ATTRIBUTE.findall(argument[1]))
        end = context.find(text, _K3_VALUE_END, argument.end())
        if end < 0 or not context.spend(_UNITS):
            return None
        content = text[argument.end() : end]
        value: Json = content
        if attributes.get("type", "string") != "string":
            read = value_at(f"[{content.strip()}]", 0, context)
            value = read[0][0] if read is not None and len(read[0]) == 1 else content
        parameters[unescaped(attributes.get("key", ""))] = value
        at = end + len(_K3_VALUE_END)
    tail = _K3_END.match(text, at)
    if tail is None and not parameters:
        return None
    return Found(start, tail.end() if tail else at, (Finding(Call(unescaped(name), parameters)),), "K2")


def _tool_sep(text: str, start: int, at: int, context: ParseContext) -> Found | None:
    """D1 where a server has stripped the token in front: `function<｜tool▁sep｜>f` or `f<｜tool▁sep｜>{…}`."""
    word = _WORD_BEFORE.search(text, max(0, start - 160), start)
    if word is None or not context.spend(_UNITS):
        return None
    if word[1] == "function":
        match = _DEEPSEEK.match(text, at)
        name, opening = (match["name"], match.end()) if match is not None else ("", 0)
    else:
        gap = _BRACE_NEXT.match(text, at)
        name, opening = (word[1], gap.end()) if gap is not None else ("", 0)
    read = _object(text, opening, name, context) if name else None
    if read is None:
        return None
    tail = _DEEPSEEK_END.match(text, read[1])
    return Found(word.start(1), tail.end() if tail else read[1], (read[0],), "D1")


TOKENS: dict[str, TokenReader] = {
    "tool_call": _payload("A7"),
    "tool_calls": _payload("A7"),
    "function_call": _payload("A7"),
    "python_tag": _payload("A7"),
    "python_start": _payload("A7"),
    "tool_call_start": _payload("A7"),
    "tools_prefix": _payload("A7"),
    "start_action": _payload("A7"),
    "action_start": _payload("A7"),
    "content_invoke_tool_json": _payload("A7"),
    "tool_call_begin": _tool_call_begin,
    "tool_call:begin": _tool_call_begin,
    "recipient": _recipient,
    "tool_sep": _tool_sep,
}
"""Every token that calls stand behind."""
