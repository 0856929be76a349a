"""BFCL's vectors: the checker of Python calls, and the decoder of raw text."""

import ast
import json
import math
from collections import Counter
from collections.abc import Iterator

from robustbench_tc.eval.parse import context, parse, python_values
from robustbench_tc.eval.prompts.json_schema import normalise
from robustbench_tc.eval.score import Score, score
from robustbench_tc.eval.score.values import is_number, json_equal
from robustbench_tc.schema import Call, Json, Tool

from .rows import AGREED, UNLISTED, Row, as_pairs, calls_of


def bfcl_verdict(row: Row) -> Score:
    """Our verdict on the calls of a row."""

    def named(name: str) -> str:
        return name.replace(".", "_") if row.get("underscore_to_dot") else name

    tools = [
        Tool(named(tool["name"]), tool.get("description") or "", normalise(tool["parameters"]))
        for tool in row["tools"]
    ]
    golden = tuple(Call(named(name), values) for item in row["ground_truth"] for name, values in item.items())
    calls = calls_of(row["prediction"])
    return score(calls, source="bfcl_v3", category=row["category"], golden_answers=(golden,), tools=tools)


def check_bfcl(row: Row) -> str:
    """Against upstream's `ast_checker`: AGREED, a class of CLASSES, or UNLISTED."""
    ours = bfcl_verdict(row).correct
    if ours == row["upstream_valid"]:
        return AGREED
    if row.get("upstream_exception"):
        return "upstream_crash"
    # Upstream refuses a tuple where an array is declared; JSON, and so a call, has lists only.
    return "tuple" if ours and "tuple" in str(row.get("mutation")) else UNLISTED


def check_bfcl_decoder(row: Row) -> str:
    """Against the calls that upstream decodes from a reply: AGREED, a class of CLASSES, or UNLISTED."""
    text = row["raw_output"]
    ours = as_pairs(parse(text, source="bfcl_v3").calls)
    if row["upstream_error"] is not None:
        return AGREED if not ours else "tolerant"
    upstream = row["upstream_decoded"]
    if upstream is None:
        upstream = _from_repr(row.get("upstream_decoded_repr") or "")
    if upstream == [] or row["upstream_format_ok"] is False:
        return AGREED if not ours else "tolerant"
    if upstream is not None and json_equal(ours, upstream):
        return AGREED
    node = _as_upstream_reads(text, wrapped=row["entry_point"] == "prompting_wrapper")
    if node is None:
        return UNLISTED
    refused = next(_refusals(node), None)
    if not ours:
        # A power may be too large to fold: the limits are ours to set.
        power = any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.Pow) for one in _read_nodes(node))
        return refused or ("arithmetic" if power else UNLISTED)
    if refused:
        return UNLISTED
    found: set[str] = set()
    equal = _equal_but(ours, upstream, _read_otherwise(node), found)
    return min(found) if equal and found else UNLISTED


def _as_upstream_reads(text: str, *, wrapped: bool) -> ast.expr | None:
    """The expression that upstream reads in a text, missing brackets added where its wrapper does that."""
    body = text
    if wrapped:
        body = body.strip("`\n ")
        body = body if body.startswith("[") else "[" + body
        body = body if body.endswith("]") else body + "]"
    return python_values.tree(body.strip("'").strip(), context.ParseContext("", ()))


def _read_nodes(root: ast.expr) -> Iterator[ast.AST]:
    """The nodes whose values count: no positional arguments, nothing inside what becomes source text."""
    left: list[ast.AST] = [root]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, ast.Call):
            left += node.keywords
        elif not isinstance(node, ast.Subscript):
            left += ast.iter_child_nodes(node)


def _refusals(root: ast.expr) -> Iterator[str]:
    """The classes that say "no call" and occur in an expression."""
    for node in _read_nodes(root):
        match node:
            case ast.UnaryOp(op=ast.Invert()):
                yield "unary"
            case ast.UnaryOp(op=ast.Not(), operand=ast.Constant(value=bool())):
                pass
            case ast.UnaryOp(op=ast.Not()):
                yield "unary"
            case ast.BinOp() if not (_is_text(node) or _is_arithmetic(node)):  # section 9 folds both
                yield "arithmetic"
            case ast.Constant(value=bytes() | complex()):
                yield "nonliteral"
            case ast.Constant(value=float(number)) if not math.isfinite(number):
                yield "nonliteral"
            case ast.keyword(arg=None):
                yield "expansion"
            case ast.Dict(keys=keys) if None in keys:
                yield "expansion"
            case ast.Call(func=ast.Call() | ast.Subscript()):
                yield "empty_name"
            case ast.Lambda() | ast.Call(func=ast.Lambda()):
                yield "lambda"


def _is_text(node: ast.expr) -> bool:
    """String literals, also with + between them."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and _is_text(node.left) and _is_text(node.right)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_arithmetic(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int()):
            return True
        case ast.Constant(value=float(number)):
            return math.isfinite(number)
        case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=operand):
            return _is_arithmetic(operand)
        case ast.BinOp(
            op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.FloorDiv() | ast.Mod() | ast.Pow(),
            left=left,
            right=right,
        ):
            return _is_arithmetic(left) and _is_arithmetic(right)
    return False


_LITERALS = {"true": True, "false": False, "null": None}


def _read_otherwise(root: ast.expr) -> Counter[str]:
    """How often an expression holds what upstream reads otherwise than scoring.md section 9 says.

    That is true, false and null as bare words, a unary plus, a `not`.
    """
    found: Counter[str] = Counter()
    for node in _read_nodes(root):
        match node:
            case ast.Name(id=word) if word in _LITERALS:
                found[word] += 1
            case ast.UnaryOp(op=ast.UAdd()):
                found["+"] += 1
            case ast.UnaryOp(op=ast.Not()):
                found["not"] += 1
    return found


def _equal_but(ours: Json, upstream: Json, allowed: Counter[str], found: set[str]) -> bool:
    """Equality but for the leaves that `allowed` explains, whose classes go into `found`."""
    if isinstance(ours, list) and isinstance(upstream, list):
        return len(ours) == len(upstream) and all(
            _equal_but(left, right, allowed, found) for left, right in zip(ours, upstream, strict=True)
        )
    if isinstance(ours, dict) and isinstance(upstream, dict):
        return ours.keys() == upstream.keys() and all(
            _equal_but(ours[key], upstream[key], allowed, found) for key in ours
        )
    if json_equal(ours, upstream):
        return True
    if isinstance(upstream, str) and upstream in _LITERALS:
        cause, explained = upstream, ours is _LITERALS[upstream]
    elif is_number(upstream) and is_number(ours):
        cause, explained = "+", ours == -upstream
    elif is_number(upstream) and isinstance(ours, bool):
        cause, explained = "not", upstream == -(not ours)
    else:
        return False
    allowed[cause] -= 1
    found.add("json_literal" if cause in _LITERALS else "unary")
    return explained and allowed[cause] >= 0


def _from_repr(text: str) -> Json:
    """A Python `repr` as JSON: tuples as lists, keys as text; None where JSON cannot hold it."""
    node = python_values.tree(text, context.ParseContext("", ()))
    try:
        return None if node is None else json.loads(json.dumps(ast.literal_eval(node), allow_nan=False))
    except (ValueError, TypeError):
        return None
