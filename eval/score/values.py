"""Comparing values across spellings: text, numbers and their decimal text, lists written as text."""

import ast
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from robustbench_tc.eval.parse.context import ParseContext
from robustbench_tc.eval.parse.json_values import decode
from robustbench_tc.eval.parse.python_values import tree
from robustbench_tc.eval.parse.stored import clean
from robustbench_tc.schema import OMIT, Json

_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,3})?")
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]")


def may_be_left_out(accepted: list[Json]) -> bool:
    """Whether the mark of omission stands beside a value; alone it is the empty text itself."""
    return len(accepted) > 1 and OMIT in accepted


_TYPES: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    tuple: "array",
    dict: "object",
    type(None): "null",
}


def json_type(value: Json) -> str:
    """The JSON type of a value."""
    return _TYPES.get(type(value), "string")


def leaves(value: Json) -> Iterator[Json]:
    """The values inside of lists and objects, in their order."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left += reversed(one.values())
        elif isinstance(one, list | tuple):
            left += reversed(one)
        else:
            yield one


def is_number(value: Json) -> bool:
    """Whether it is a JSON number: true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def folded(text: str) -> str:
    """Trimmed, inner white space collapsed, case-folded."""
    return " ".join(text.split()).casefold()


def decimal(value: Json) -> Decimal | None:
    """A number, or a text that is one in decimal notation (no thousands commas); else None."""
    if is_number(value):
        text = repr(value)
    elif isinstance(value, str):
        text = value.strip()
    else:
        return None
    if len(text) > 900 or _DECIMAL.fullmatch(text) is None:
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def is_text_of(text: str, number: float) -> bool:
    """Whether `text` is that number in decimal notation, no zeros in front."""
    text = text.strip()
    found = decimal(text)
    return found is not None and _LEADING_ZERO.match(text) is None and found == decimal(number)


def json_equal(left: Json, right: Json) -> bool:
    """Equality as JSON sees it: true is not 1, 1 is 1.0."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(json_equal(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(json_equal, left, right))
    return bool(left == right)


def decoded(text: str) -> Json:
    """The list or object that a text stands for, as JSON, else as a Python literal; else None.

    The text may be a model's: it is parsed within the parser's bounds and never evaluated.
    """
    text = text.strip()
    reading = ParseContext("", ())
    if text[:1] not in ("[", "{", "(") or reading.balanced(text, 0) != len(text):
        return None
    try:
        found = decode(text)
    except ValueError:
        node = tree(text, reading)
        try:
            found = None if node is None else clean(ast.literal_eval(node))
        except (ValueError, TypeError, RecursionError):
            return None
    return found if isinstance(found, list | dict) else None
