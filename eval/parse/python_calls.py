"""Variants B1, B2, B3 and P: calls written as Python.

B1 is a bracketed list of calls, or calls that are the whole text; B2 the same with `:` between key and value;
B3 a list of name and parameter pairs; P a call on lines of its own.
"""

import ast
import re

from robustbench_tc.schema import Call, Json

from . import python_literals
from .json_calls import NAME_KEYS, PARAMETER_KEYS
from .python_values import Refused, as_identifier, dotted, keywords, tree, value
from .reading import MAX_DEPTH, NAME, STRING, Reading, bare_name, unfenced

_STARTS_WITH_CALL = re.compile(r"[\s\[({'\"]*+(?:#[^\n]*+\n\s*+)*+[\s\[({]*+" + NAME + r"\s*+\(")
_LIST_OF_CALLS = re.compile(r"\[\s*+" + NAME + r"\s*+\(")
_LINE_WITH_CALL = re.compile(r"(?m)^[ \t`>*-]{0,8}(" + NAME + r")[ \t]{0,4}\(")
_REST_OF_LINE = re.compile(r"[ \t`,;.]*+(?:#[^\n]*+)?(?:\n|\Z)")
_KEY = re.compile(
    r"""\s*+(?:"([^"\\\n]{1,128})"|'([^'\\\n]{1,128})'|([^\s"'()\[\]{}=:,]{1,128}))\s*+([:=])(?!=)"""
)
_MARK = re.compile(STRING + r"""|[\[\](){},"']""", re.DOTALL)
_KEYWORD_LIST = re.compile(r"\s*+(?:" + "|".join(NAME_KEYS) + r")\s*+=")
_PLACEHOLDER = "rbtc_key_{}_"


def bracketed(text: str, reading: Reading) -> list[Call]:
    """B1. Where the text around the list is prose, every list of calls in it counts, in order."""
    body = unfenced(text)
    if _STARTS_WITH_CALL.match(body):
        if calls := python_literals.calls(body):
            return calls
        if calls := whole(body, reading, {}):
            return calls
        if (new := _renamed(body, reading, colons=False)) and (calls := whole(*new)):
            return calls
    return _in_prose(body, reading, colons=False)


def colon_separated(text: str, reading: Reading) -> list[Call]:
    """B2, tried only after B1 found nothing."""
    if ":" not in text:
        return []
    body = unfenced(text)
    new = _renamed(body, reading, colons=True) if _STARTS_WITH_CALL.match(body) else None
    if new and (calls := whole(*new)):
        return calls
    return _in_prose(body, reading, colons=True)


def keyword_list(text: str, reading: Reading) -> list[Call]:
    """B3: names and parameters are paired in order of appearance."""
    body = unfenced(text)
    inner = body[1:] if body[:1] in "[(" else body
    if not _KEYWORD_LIST.match(inner):
        return []
    node = tree(f"_({inner.rstrip('])')})", reading)
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
    if len(parameters) not in (0, len(names)):
        return []
    parameters = parameters or [{} for _ in names]
    if not all(isinstance(name, str) and bare_name(name) for name in names):
        return []
    if not all(isinstance(item, dict) for item in parameters):
        return []
    return [Call(bare_name(name), item) for name, item in zip(names, parameters, strict=True)]


def own_lines(text: str, reading: Reading) -> list[Call]:
    """P. In prose only names of the registry count; calls that are the whole text count under any name."""
    body = unfenced(text)
    calls: list[Call] = []
    alone = True
    position = 0
    while match := _LINE_WITH_CALL.search(body, position):
        end = reading.balanced(body, match.end() - 1)
        rest = _REST_OF_LINE.match(body, end) if end is not None else None
        call = _single(body[match.start(1) : end], reading) if rest else None
        if rest is None or call is None:
            alone = False
            position = match.end()
            if reading.left <= 0:
                break
            continue
        alone = alone and not body[position : match.start()].strip()
        calls.append(call)
        position = rest.end()
    if alone and not body[position:].strip("`\n "):
        return calls
    return [call for call in calls if reading.parameters_of(call.name) is not None]


def _single(source: str, reading: Reading) -> Call | None:
    node = tree(source, reading)
    if not isinstance(node, ast.Call):
        return None
    try:
        return _call(node, reading, {})
    except Refused:
        return None


def whole(body: str, reading: Reading, keys: dict[str, str]) -> list[Call]:
    """Upstream's wrapper: a missing bracket at either end is added; otherwise the text as it stands."""
    wrapped = body if body.startswith("[") else "[" + body
    if not wrapped.endswith("]"):
        wrapped += "]"
    calls = _calls(wrapped, reading, keys)
    if not calls and wrapped != body:
        calls = _calls(body.strip("'"), reading, keys)
    return calls


def _in_prose(body: str, reading: Reading, *, colons: bool) -> list[Call]:
    """The bracketed lists of calls that stand in other text."""
    calls: list[Call] = []
    position = 0
    while match := _LIST_OF_CALLS.search(body, position):
        end = reading.balanced(body, match.start())
        if end is None:
            if reading.left <= 0:
                break
            position = match.end()
            continue
        if end - match.start() < len(body) and not _is_a_value(body, match.start(), reading):
            source = body[match.start() : end]
            here = [] if colons else _calls(source, reading, {}, prose=True)
            if not here and (new := _renamed(source, reading, colons=colons)):
                here = _calls(*new, prose=True)
            calls += here
        position = end
    return calls


def _is_a_value(body: str, start: int, reading: Reading) -> bool:
    """Whether the list that opens at `start` is an argument or an entry, so that its calls are values."""
    before = body[max(0, start - 64) : start].rstrip()[-1:]
    if before == ":":  # in a dictionary, or behind "my call:"
        reading.spend(50)
        return body.count("{", 0, start) > body.count("}", 0, start)
    return before != "" and before in "=(,{"


def _calls(source: str, reading: Reading, keys: dict[str, str], *, prose: bool = False) -> list[Call]:
    """The calls of an expression that is a call or a list, tuple or set of calls; else none."""
    node = tree(source, reading)
    if node is None:
        return []
    items = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else [node]
    try:
        return [_call(item, reading, keys, prose=prose) for item in items]
    except Refused:
        return []


def _call(node: ast.expr, reading: Reading, keys: dict[str, str], *, prose: bool = False) -> Call:
    if type(node) is not ast.Call:
        raise Refused
    name = dotted(node.func)
    parameters = keywords(node)
    if keys:
        parameters = {keys.get(key, key): item for key, item in parameters.items()}
    if node.args:
        order = reading.parameters_of(name)
        if order is None and prose:  # `[sin(x)]` in a sentence is no call
            raise Refused
        # Upstream drops positional arguments; they mean the declared parameters in order.
        for key, argument in zip(order or (), node.args, strict=False):
            if type(argument) is ast.Starred:
                break
            if key not in parameters:
                try:
                    parameters[key] = value(argument)
                except Refused:
                    continue
    return Call(name, parameters)


def _renamed(source: str, reading: Reading, *, colons: bool) -> tuple[str, Reading, dict[str, str]] | None:
    """The source with placeholders for keys that Python cannot spell (`from`, `user-id`), and what they mean.

    With `colons`, `key: value` becomes `placeholder=value`. Only keys directly inside a call's parentheses
    count. None if there is no such key.
    """
    pieces: list[str] = []
    keys: dict[str, str] = {}
    copied = 0
    stack = ""
    position = 0
    while mark := _MARK.search(source, position):
        if not reading.spend(1):
            return None
        sign = mark[0]
        position = mark.end()
        if sign in "([{":
            stack += sign
            if len(stack) > MAX_DEPTH:
                return None
        elif sign in ")]}":
            stack = stack[:-1]
        elif len(sign) == 1 and sign != ",":
            return None
        if sign in "(," and stack in ("(", "[(") and (key := _KEY.match(source, position)):
            name = key[1] or key[2] or key[3]
            if key[4] == ":" and not colons:
                return None
            if key[4] == ":" or as_identifier(name) is None:
                placeholder = _PLACEHOLDER.format(len(keys))
                keys[placeholder] = name
                pieces += (source[copied:position], placeholder, "=")
                copied = key.end()
            position = key.end()
    if not keys:
        return None
    return "".join(pieces) + source[copied:], reading, keys
