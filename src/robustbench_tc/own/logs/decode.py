"""JSON of a log: strict, bounded, and an error says nothing of the text."""

import json
import math
from typing import Any, NoReturn

from robustbench_tc.own.limits import DEPTH, depth_of
from robustbench_tc.schema import Json

from .types import Unreadable

DIGITS = 1000
"""Digits of a whole number."""


def decode(data: bytes) -> Json:
    """A JSON value. Raises Unreadable, without anything of the text in it.

    As strict as of tools files: what JSON does not have, keys given twice and half a surrogate pair are
    refused.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Unreadable("not UTF-8") from None
    return decode_text(text)


def decode_text(text: str) -> Json:
    """The same of a text, for JSON within JSON."""
    check_depth(text.encode(errors="replace"))
    try:
        value = json.loads(text, **HOOKS)
    except json.JSONDecodeError:
        raise Unreadable("not JSON") from None
    except RecursionError:
        raise Unreadable(f"nested deeper than {DEPTH} levels") from None
    check_surrogates(text, value)
    return value


def check_depth(data: bytes) -> None:
    if data.count(b"[") + data.count(b"{") > DEPTH and depth_of(data) > DEPTH:
        raise Unreadable(f"nested deeper than {DEPTH} levels")


def check_surrogates(text: str, value: Any) -> None:
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise Unreadable("a text holds half a surrogate pair") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unreadable("a key is given twice in one object")
    return found


def _constant(word: str) -> NoReturn:
    raise Unreadable(f"{word} is not JSON")


def _number(word: str) -> float:
    value = float(word)
    if math.isinf(value):
        raise Unreadable("a number is beyond what JSON readers hold")
    return value


def _whole(word: str) -> int:
    if len(word) > DIGITS:
        raise Unreadable(f"a number has more than {DIGITS:,} digits")
    return int(word)


HOOKS: dict[str, Any] = {
    "object_pairs_hook": _once,
    "parse_constant": _constant,
    "parse_float": _number,
    "parse_int": _whole,
}
