"""Python source to JSON values without evaluating anything: literals, names as text, folded arithmetic.

The syntax tree comes from the interpreter's own parser, called only on texts whose length, nesting and number
of tokens are bounded. Behaviour: scoring.md sections 1.2 and 9.
"""

import ast
import json
import operator
import re
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from itertools import islice
from typing import Any

from robustbench_tc.schema import Json

from .context import MAX_BITS, MAX_DEPTH, STRING, ParseContext
from .stored import is_number

_ONLY_AST = 0x400
_SMALL = 64
"""Up to this many characters the tokens need no counting."""

_UNITS_PER_TOKEN = 2
_UNITS_PER_TREE = 20
"""What the interpreter's parser costs for one token, and at least, in units of the allowance."""

_TOKEN = re.compile(r"(?i:\b([fbru]{1,2}))?(?:" + STRING + r")|\w++|[^\s\w]", re.DOTALL)
_MAY_WARN = re.compile(r"\\|\d[\da-fA-FxXoObBjJ_.]{0,64}(?:and|else|for|i[fns]|not|or)")
"""Where the parser may warn: an unknown escape, a number that runs into a keyword."""

_ALWAYS_CAUGHT = 2_048
"""Longer sources are not searched for what may warn."""

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}

JSON_LITERALS = {"true": True, "false": False, "null": None}


class Refused(Exception):
    """The source holds something that is not read: see scoring.md section 9."""


def tree(source: str, context: ParseContext) -> ast.expr | None:
    """The expression that `source` is, or None: not Python, too long, too deep, or the allowance is spent."""
    size = len(source)
    if size <= _SMALL:
        cost = _UNITS_PER_TREE + size * _UNITS_PER_TOKEN
    else:
        tokens = 0
        for piece in islice(_TOKEN.finditer(source), max(0, context.left) // _UNITS_PER_TOKEN):
            tokens += 1
            if (prefix := piece[1]) and "f" in prefix.lower():
                return None  # the parser's time for format strings grows with the square of their length
        cost = _UNITS_PER_TREE + tokens * _UNITS_PER_TOKEN  # more than is left if there are more tokens
    context.left -= cost
    if context.left < 0:
        return None
    if source.count("(") + source.count("[") + source.count("{") > MAX_DEPTH and _depth(source) > MAX_DEPTH:
        return None
    may_warn = size > _ALWAYS_CAUGHT or _MAY_WARN.search(source)
    try:
        with warnings.catch_warnings(action="ignore") if may_warn else nullcontext():
            return compile(source, "", "eval", _ONLY_AST).body  # type: ignore[no-any-return]
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def _depth(source: str) -> int:
    """An upper bound of the nesting that the parser meets: brackets, strings not looked into."""
    depth = deepest = 0
    for piece in _TOKEN.finditer(source):
        mark = piece[0]
        if mark in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in ")]}":
            depth -= 1
    return deepest


def value(node: ast.expr, depth: int = 0) -> Json:
    """The JSON value of a syntax node. Raises Refused."""
    kind = type(node)
    if kind is ast.Constant:
        return _constant(node.value)  # type: ignore[attr-defined]
    if depth > MAX_DEPTH:
        raise Refused
    match node:
        case ast.Name(id=name):
            return JSON_LITERALS.get(name, name)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [value(item, depth + 1) for item in items]
        case ast.Dict(keys=keys, values=values):
            # Equal keys (1 and True) are one before they become text.
            raw = {_key(key, depth): value(item, depth + 1) for key, item in zip(keys, values, strict=True)}
            return {key if isinstance(key, str) else json.dumps(key): item for key, item in raw.items()}
        case ast.UnaryOp(op=op, operand=operand):
            return _unary(op, operand, depth)
        case ast.BinOp():
            return _folded(node, depth)
        case ast.Call(keywords=[]):
            return source_of(node)
        case ast.Call():
            return {dotted(node.func): keywords(node, depth + 1)}
        case ast.Subscript(value=base, slice=index):
            return f"{source_of(base)}[{source_of(index)}]"
        case ast.Attribute():
            root: ast.expr = node
            while type(root) is ast.Attribute:
                root = root.value
            if type(root) is ast.Name:
                return dotted(node)
    raise Refused


def keywords(node: ast.Call, depth: int = 0) -> dict[str, Json]:
    """The keyword arguments of a call, a repeated one as its last value. Raises Refused."""
    out: dict[str, Json] = {}
    for item in node.keywords:
        if item.arg is not None:
            out[item.arg] = value(item.value, depth)
        elif isinstance(item.value, ast.Dict):  # `**{"a": 1}`
            out.update(value(item.value, depth))
        else:
            raise Refused
    return out


def dotted(node: ast.expr) -> str:
    """The name that a call calls; behind a call or a subscript only the attributes.

    Raises Refused if that leaves nothing.
    """
    parts: list[str] = []
    while type(node) is ast.Attribute:
        parts.append(node.attr)
        node = node.value
    if type(node) is ast.Name:
        parts.append(node.id)
    if not parts:
        raise Refused
    return ".".join(reversed(parts))


def source_of(node: ast.expr) -> str:
    """The node as normalised source text. Raises Refused where it is nested too deep to write."""
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        raise Refused from None


def _constant(found: Any) -> Json:
    if isinstance(found, str | None) or (isinstance(found, int | float) and is_number(found)):
        return found
    if found is ...:
        return "..."
    raise Refused  # bytes, complex, numbers that JSON has not


def _key(node: ast.expr | None, depth: int) -> Json:
    """A dictionary key: text, number, boolean or None."""
    if node is None:  # {**expansion}
        raise Refused
    key = value(node, depth + 1)
    if isinstance(key, list | dict):
        raise Refused
    return key


def _unary(op: ast.unaryop, operand: ast.expr, depth: int) -> Json:
    if isinstance(op, ast.Not):
        if isinstance(operand, ast.Constant) and isinstance(operand.value, bool):
            return not operand.value
        raise Refused
    if isinstance(op, ast.Invert):
        raise Refused
    if isinstance(operand, ast.Constant) and isinstance(operand.value, bool):
        number: int | float = int(operand.value)
    else:
        number = _number(operand, depth + 1)
    return -number if isinstance(op, ast.USub) else number


def _number(node: ast.expr, depth: int) -> int | float:
    """A number literal with its signs, or arithmetic on such. Raises Refused."""
    if depth > MAX_DEPTH:
        raise Refused
    found: Json = None
    if isinstance(node, ast.Constant):
        found = _constant(node.value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        found = _unary(node.op, node.operand, depth)
    elif isinstance(node, ast.BinOp):
        found = _folded(node, depth)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise Refused
    return found


def _folded(node: ast.BinOp, depth: int) -> Json:
    """Arithmetic between number literals, and + between string literals. Raises Refused."""
    if isinstance(node.op, ast.Add) and (text := _joined(node, depth)) is not None:
        return text
    left = _number(node.left, depth + 1)
    right = _number(node.right, depth + 1)
    try:
        result = _apply(node.op, left, right)
    except ArithmeticError:
        raise Refused from None
    if isinstance(result, complex):
        raise Refused
    return _constant(result)


def _apply(op: ast.operator, left: int | float, right: int | float) -> Any:
    if type(op) not in _OPERATORS:
        raise Refused
    if isinstance(op, ast.Pow) and isinstance(left, int):
        # The size of an integer power is known before it is computed.
        most = MAX_BITS // right if isinstance(right, int) and right > 0 else 1_000
        if left.bit_length() > most:
            raise Refused
    return _OPERATORS[type(op)](left, right)


def _joined(node: ast.BinOp, depth: int) -> str | None:
    """The text of `'a' + 'b' + …`, or None if an operand is not a string literal."""
    parts: list[str] = []
    rest: ast.expr = node
    while isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Add) and depth <= MAX_DEPTH:
        if not (isinstance(rest.right, ast.Constant) and isinstance(rest.right.value, str)):
            return None
        parts.append(rest.right.value)
        rest = rest.left
        depth += 1
    if not (isinstance(rest, ast.Constant) and isinstance(rest.value, str)):
        return None
    return "".join([rest.value, *reversed(parts)])
