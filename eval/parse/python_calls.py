"""Variants B1, B2 and B3: lists of calls written as Python.

B1 is a bracketed list of calls, or calls that are the whole text; B2 the same with `:` between key and value;
B3 a list of name and parameter pairs.
"""

import ast
import re
from collections.abc import Iterator

from robustbench_tc.schema import Call, Json

from . import loose_python, python_literals
from .context import NAME, STRING, TOOL_NAME, Finding, Found, ParseContext, bare_name, end_of, unfenced
from .json_calls import NAME_KEYS, PARAMETER_KEYS
from .json_values import decode_value
from .python_values import Refused, dotted, keywords, tree, value

_STARTS_WITH_CALL = re.compile(r"[\s\[({'\"]*+(?:#[^\n]*+\n\s*+)*+[\s\[({]*+" + NAME + r"\s*+\(")
_LIST_OF_CALLS = re.compile(r"\[\s*+" + TOOL_NAME + r"\s*+\(")
_LIST_OF_STRINGS = re.compile(r"""\[\s*+["']\s*+\[?""" + TOOL_NAME + r"\s*+\(")
_KEYWORD_LIST = re.compile(r"\s*+(?:" + "|".join(NAME_KEYS) + r")\s*+=")
_BRACKETED_KEYWORDS = re.compile(r"\[\s*+(?:" + "|".join(NAME_KEYS) + r")\s*+=")
_ELLIPSIS = re.compile(r"[=(,]\s*+(?:\.\.\.|…)\s*+[,)]")
_COMMENTS = re.compile(r"(?:\s*+```[^\n]*+\n)?(?:\s*+#[^\n]*+\n)*+")
_COMMENTS_BEHIND = re.compile(r"(?<=[\])])[\s`;]*+(?:#[^\n]*+[\s`]*+)++\Z")
_LONGEST_COMMENT = 600
_UNITS_PER_LIST = 4
_WRITERS = ("print", "str", "repr")
WRAPPING_KEYS = frozenset({"parameters", "arguments", "params", "args", "kwargs", "input"})
"""Keywords whose one value may be the object of all arguments: `f(parameters={…})`."""

_OPEN_VALUE = re.compile(r"""[:=,(\[{]\s{0,4}(?:"(?:[^"\\\n]|\\.)*|'(?:[^'\\\n]|\\.)*)\Z""")
_ANNOTATED = re.compile(
    rf"{STRING}|(?<=[(,\s])(?P<name>[^\W\d]\w*)\??\s*:\s*(?i:str|string|int|integer|float|double|number|bool|boolean|list"
    r"|array|dict|object|any|optional|union|literal|date|datetime|none)\b(?:\[[^()\n]{0,64}?\])?(?:\s*\|\s*None)?\s*(?:(?P<sign>=)|(?=[,)]))",
    re.DOTALL,
)
"""A parameter with its type, or a string."""

_TYPE_WORDS = frozenset(
    "str string int integer float number double bool boolean list array dict object any optional"
    " none date".split()
)


def bracketed(text: str, context: ParseContext) -> list[Found]:
    """B1. Where the text around the list is prose, every list of calls in it is found, in order."""
    body = unfenced(text)
    if _STARTS_WITH_CALL.match(body):
        calls = [unwrapped(call, context) for call in python_literals.calls(body) or ()] or whole(
            body, context
        )
        if calls and any(is_signature(body, call, context) for call in calls):
            return []
        if calls:
            return _as_whole(calls, text, "B1")
    return list(_in_prose(text, context, colons=False))


def colon_separated(text: str, context: ParseContext) -> list[Found]:
    """B2, tried only after B1 found nothing."""
    if ":" not in text:
        return []
    body = unfenced(text)
    wrapped = body if body.startswith("[") else f"[{body}]"
    calls = list_at(wrapped, context, colons=True) if _STARTS_WITH_CALL.match(body) else []
    if calls and not any(_has_types_for_values(call) for call in calls):
        return _as_whole(calls, text, "B2")
    return list(_in_prose(text, context, colons=True))


def keyword_list(text: str, context: ParseContext) -> list[Found]:
    """B3: names and parameters are paired in order of appearance."""
    body = unfenced(text)
    inner = body[1:] if body[:1] in "[(" else body
    if _KEYWORD_LIST.match(inner) and (calls := _keyword_calls(inner, context)):
        return _as_whole(calls, text, "B3")
    found: list[Found] = []
    position = 0
    while match := _BRACKETED_KEYWORDS.search(text, position):
        end = context.balanced(text, match.start()) if context.spend(_UNITS_PER_LIST) else None
        position = end or match.end()
        if end is not None and (calls := _keyword_calls(text[match.start() + 1 : end], context)):
            found.append(Found(match.start(), end, tuple(map(Finding, calls)), "B3"))
        if context.left <= 0:
            break
    return found


def _keyword_calls(inner: str, context: ParseContext) -> list[Call]:
    node = tree(f"_({inner.rstrip('])')})", context)
    if not isinstance(node, ast.Call):
        return []
    names: list[Json] = []
    parameters: list[Json] = []
    try:
        for item in node.keywords:
            if item.arg in NAME_KEYS:
                names.append(value(item.value))
            elif item.arg in PARAMETER_KEYS:
                parameters.append(value(item.value))
    except Refused:
        return []
    if len(parameters) != len(names):
        return []
    if not all(isinstance(name, str) and bare_name(name) for name in names):
        return []
    if not all(isinstance(item, dict) for item in parameters):
        return []
    return [Call(bare_name(name), item) for name, item in zip(names, parameters, strict=True)]


def _as_whole(calls: list[Call], text: str, code: str) -> list[Found]:
    behind = _COMMENTS_BEHIND.search(text, max(0, len(text) - _LONGEST_COMMENT))
    end = behind.start() if behind else len(text)
    return [Found(end_of(_COMMENTS, text, 0), end, tuple(map(Finding, calls)), code)]


def whole(body: str, context: ParseContext) -> list[Call]:
    """Upstream's wrapper: a missing bracket at either end is added; otherwise the text as it stands."""
    wrapped = body if body.startswith("[") else "[" + body
    if not wrapped.endswith("]"):
        wrapped += "]"
    calls = _calls(wrapped, context)
    if not calls and wrapped != body:
        calls = _calls(body.strip("'"), context)
    return calls


def list_at(source: str, context: ParseContext, *, colons: bool = False) -> list[Call]:
    """The calls of a bracketed list, keys that Python cannot spell included; [] where some item is none."""
    if not colons and (calls := _calls(source, context, prose=True)):
        return calls
    loose = loose_python.read_list(source, 0, context, colons=colons)
    if loose is None or source[loose[1] :].strip():
        return []
    # What colons explain is B2's: read without them, the next key would be a part of the text before it.
    explained = not colons and ":" in source and list_at(source, context, colons=True)
    return [] if explained and explained != loose[0] else loose[0]


def _in_prose(text: str, context: ParseContext, *, colons: bool) -> Iterator[Found]:
    """The bracketed lists of calls that stand in other text."""
    position = 0
    while match := _LIST_OF_CALLS.search(text, position):
        if not context.spend(_UNITS_PER_LIST):
            return
        start = match.start()
        end = context.balanced(text, start)
        calls: list[Call] = []
        if not _is_a_value(text, start, context):
            calls = list_at(text[start:end], context, colons=colons) if end is not None else []
            if (
                not calls
                and end is None
                and (loose := loose_python.read_list(text, start, context, colons=colons))
            ):
                calls, end = loose
        if calls and not any(is_signature(text[start:end], call, context) for call in calls):
            yield Found(start, end or start, tuple(map(Finding, calls)), "B2" if colons else "B1")
        if end is None and context.left <= 0:
            return
        position = end or match.end()
    if not colons:
        yield from _lists_of_strings(text, context)


def _lists_of_strings(text: str, context: ParseContext) -> Iterator[Found]:
    """`["f(a=1)", "g(b=2)"]`: every string is a call, or a list of calls."""
    position = 0
    while match := _LIST_OF_STRINGS.search(text, position):
        end = context.balanced(text, match.start())
        items = decode_value(text[match.start() : end], context) if end is not None else None
        position = end or match.end()
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            if context.left <= 0:
                return
            continue
        calls: list[Call] = []
        for item in items:
            source = item if item.lstrip().startswith("[") else f"[{item}]"
            here = list_at(source, context) or list_at(source, context, colons=True)
            if not here:
                break
            calls += here
        else:
            yield Found(match.start(), position, tuple(map(Finding, calls)), "B1")


def _is_a_value(body: str, start: int, context: ParseContext) -> bool:
    """Whether the list that opens at `start` is an argument or an entry, so that its calls are values."""
    if is_in_value(body, start):
        return True
    before = body[max(0, start - 64) : start].rstrip(" \t\n\r")[-1:]
    if before == ":":  # in a dictionary, or behind "my call:"
        if not context.spend(50):
            return True
        near = body[max(0, start - 4_096) : start]
        return near.count("{") > near.count("}")
    if before == "=":  # `calls = […]` is code, `f(x=[…]` an argument
        line = body[body.rfind("\n", max(0, start - 256), start) + 1 : start]
        return "(" in line or "[" in line or "{" in line
    if before == "[":  # doubled brackets, or a list of lists as a value
        outside = body[max(0, start - 64) : start].rstrip(" \t\n\r[")[-1:]
        return outside != "" and outside in "(,{:="
    return before != "" and before in "(,{"


def _calls(source: str, context: ParseContext, *, prose: bool = False) -> list[Call]:
    """The calls of an expression that is a call or a list, tuple or set of calls; else none."""
    node = tree(source, context)
    if node is None:
        return []
    items = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else [node]
    try:
        return [call_of_node(item, context, prose=prose) for item in items]
    except Refused:
        return []


def single(source: str, context: ParseContext) -> Call | None:
    """The one call that `source` is, or None."""
    node = tree(source, context)
    if type(node) is ast.Call:
        try:
            return call_of_node(node, context, prose=True)
        except Refused:
            return None
    for colons in (False, True) if node is None else ():
        loose = loose_python.read_call(source, 0, context, colons=colons)
        if loose is not None and not source[loose[1] :].strip():
            return loose[0]
    return None


def call_of_node(node: ast.expr, context: ParseContext, *, prose: bool = False) -> Call:
    """The call that a syntax node is. Raises Refused.

    `f.call(…)` is f; an object as the only argument holds the parameters, and so does the value of
    `parameters=`; positional arguments mean the declared parameters in order.
    """
    if type(node) is not ast.Call:
        raise Refused
    name = dotted(node.func)
    if (
        name in _WRITERS
        and len(node.args) == 1
        and type(node.args[0]) is ast.Call
        and not context.knows(name)
    ):
        return call_of_node(node.args[0], context, prose=prose)
    if name.endswith(".call") and context.resolve(name) is None and context.may_name(name[:-5]):
        name = name[:-5]
    parameters = keywords(node)
    declared = context.parameters_of(name)
    if not node.args:
        return unwrapped(Call(name, parameters), context)
    if len(node.args) == 1 and isinstance(node.args[0], ast.Dict) and not parameters and context.tools:
        inner = value(node.args[0])
        schema = context.schemas_of(name)
        first = schema.get(declared[0]) if declared else None
        takes_object = isinstance(first, dict) and first.get("type") == "object"
        if not takes_object or any(key in schema for key in inner):
            return Call(name, inner)
    if declared is None and (prose or (context.tools and not parameters)):  # `[sin(x)]` is not a call
        raise Refused
    # Upstream drops positional arguments; they mean the declared parameters in order.
    for key, argument in zip(declared or (), node.args, strict=False):
        if type(argument) is ast.Starred:
            break
        if key not in parameters:
            try:
                parameters[key] = value(argument)
            except Refused:  # the call stays, without this argument
                continue
    return Call(name, parameters)


def unwrapped(call: Call, context: ParseContext) -> Call:
    """`f(parameters={…})` as `f(…)`, where the tool has no such parameter, and `f.call(…)` too."""
    if call.name.endswith(".call") and context.resolve(call.name) is None and context.resolve(call.name[:-5]):
        call = Call(call.name[:-5], call.parameters)
    if len(call.parameters) == 1:
        (key,) = call.parameters
        inner = call.parameters[key]
        if key in WRAPPING_KEYS and isinstance(inner, dict):
            declared = context.parameters_of(call.name)
            if declared is not None and key not in declared:
                return Call(call.name, inner)
    return call


def is_signature(source: str, call: Call, context: ParseContext) -> bool:
    """Whether `f(city, days)`, `f(city: str)` or `f(city=...)` names a known tool's parameters without values."""
    if not call.parameters or context.resolve(call.name) is None:
        return False
    if _ELLIPSIS.search(source):
        return True
    if '"' in source or "'" in source:
        return False
    if _has_types_for_values(call):
        return True
    return all(isinstance(value, str) and value == key for key, value in call.parameters.items())


def without_annotations(source: str) -> str | None:
    """`f(city: str = "Oslo")` as `f(city="Oslo")`, parameters without a value left out; None without annotations."""
    if ":" not in source:
        return None
    plain = _ANNOTATED.sub(
        lambda one: one[0] if one["name"] is None else one["name"] * bool(one["sign"]) + (one["sign"] or ""),
        source,
    )
    return None if plain == source else plain


def is_in_value(text: str, at: int) -> bool:
    """Whether a place lies in a double-quoted value: of an object, a list or a call, as far as its line tells."""
    line = text[max(0, at - 256, text.rfind("\n", 0, at) + 1) : at]
    return _OPEN_VALUE.search(line) is not None


def _has_types_for_values(call: Call) -> bool:
    return bool(call.parameters) and all(
        isinstance(value, str) and value.lower() in _TYPE_WORDS for value in call.parameters.values()
    )
