"""JSON text to values, with bounds: strictly first, then as Python writes it, then as careless writers do."""

import json
import math
import re
from typing import NoReturn

import msgspec

from robustbench_tc.schema import Json

from . import lenient, python_values
from .context import MAX_BITS, MAX_DEPTH, ParseContext

_LENIENT = re.compile(r"[\x00-\x1f]|\\u")
"""What a text must hold for the standard library's decoder to read what msgspec refuses."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_MAX_DIGITS = 3_900
_LITERAL = re.compile(r"[\[({]\s*+(?:['\"\[({\d-]|[\])}]|True|False|None)")


def decode(text: str) -> Json:
    """The value of one JSON text; raw control characters in strings are let pass. Raises ValueError."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):  # the lenient decoder has the last word
        pass
    if _LENIENT.search(text) is None:
        raise ValueError("not JSON")
    try:
        found = json.loads(
            text, strict=False, parse_constant=_not_json, parse_float=_finite, parse_int=_integer
        )
    except RecursionError:
        raise ValueError("nested too deep") from None
    return clean(found)


def decode_value(text: str, context: ParseContext) -> Json:
    """The JSON object or list that `text` is, else the Python literal, else what careless JSON means; None
    where it is none of them."""
    try:
        return decode(text)
    except ValueError:  # not JSON: a Python literal, or careless JSON
        pass
    node = python_values.tree(text, context) if _LITERAL.match(text) else None
    if node is not None:
        try:
            return python_values.value(node)
        except python_values.Refused:
            return None
    found = lenient.read(text, 0, context)
    if found is None or text[found[1] :].strip():
        return None
    try:
        return clean(found[0])
    except ValueError:
        return None


def decode_object(text: str, context: ParseContext) -> dict[str, Json] | None:
    """The object that `text` is, read as `decode_value` does, else None."""
    found = decode_value(text, context)
    return found if isinstance(found, dict) else None


def clean(value: Json, depth: int = 0) -> Json:
    """The value without lone surrogates, which no file can hold. Raises ValueError for what is not JSON."""
    if isinstance(value, str):
        return value if value.isascii() else clean_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise ValueError("integer too long")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("not a JSON number")
        return value
    if depth > 3 * MAX_DEPTH:  # calls as values add levels of their own
        raise ValueError("nested too deep")
    if isinstance(value, list | tuple):
        return [clean(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean_text(str(key)): clean(item, depth + 1) for key, item in value.items()}
    raise ValueError(f"{type(value).__name__} is not JSON")


def clean_text(text: str) -> str:
    """Surrogate pairs joined, lone ones replaced by U+FFFD."""
    if _SURROGATE.search(text) is None:
        return text
    return _SURROGATE.sub("\ufffd", _PAIR.sub(_joined, text))


def _joined(pair: re.Match[str]) -> str:
    high, low = map(ord, pair[0])
    return chr(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF))


def _not_json(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("number out of range")
    return number


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError("integer too long")
    return int(text)
