"""A user's files, bounded: their bytes, and strict JSON. What lies beyond is refused before it is read.

Refused: what JSON does not have (NaN, numbers beyond a double), a key given twice (readers disagree on which
counts), half a surrogate pair (no UTF-8 file can hold it).
"""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

BYTES = 8_000_000
DEPTH = 200
"""Lists and objects inside each other."""
LARGE = 64 * BYTES
"""Bytes of what is made of a user's files."""


_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BETWEEN = {True: re.compile(r"[ \t\r\n]*,?[ \t\r\n]*"), False: re.compile(r"[ \t\r\n]*")}
"""What stands between the values of a text: of a list, a comma too."""
_BRACKETS = re.compile(rb"[][{}]")


def read_bytes(path: Path, what: str, most: int = BYTES) -> bytes:
    """The bytes of a file that may be read. `what` names it in the error: "a tools file"."""
    size_of(path, what, most)
    return path.read_bytes()


def size_of(path: Path, what: str, most: int) -> int:
    """The bytes of a file. Raises UserError for what is none, and for more than `most`."""
    if path.is_dir():
        raise UserError(f"{path}: not {what}: it is a folder")
    if not path.exists():
        raise UserError(f"{path}: not {what}: there is no such file")
    if not path.is_file():
        raise UserError(f"{path}: not {what}: it is no regular file; save what it gives in a file")
    size = path.stat().st_size
    if size > most:
        raise UserError(f"{path}: {size:,} bytes: {what} has at most {most:,}; split it")
    return size


def depth_of(data: bytes) -> int:
    """How deep the brackets of a JSON text go, texts left out; counted without recursion."""
    depth = deepest = 0
    for bracket in _BRACKETS.findall(_TEXT.sub(b"", data)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


DIGITS = 1000
"""Digits of a whole number."""


class Unreadable(ValueError):
    """Why a text cannot be read. Its message holds nothing of the text, `detail` may."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(why)
        self.detail = detail


def values(data: bytes, where: str) -> list[Json]:
    """The values of a JSON text, one or several in its lines. `where` names the file in errors."""
    text = decoded(data, where)
    try:
        return [value for _, value in scan(text)]
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UserError(f"{where}: {place}: not JSON: {error.msg}") from None
    except Unreadable as error:
        raise UserError(f"{where}: {error}{error.detail and f': {error.detail[:60]!r}'}") from None


def decoded(data: bytes, where: str) -> str:
    """The text of a file. Raises UserError."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{where}:{line}: not UTF-8; save it as UTF-8") from None


def check_depth(data: bytes) -> None:
    """Raises Unreadable for a text that is nested too deep."""
    if data.count(b"[") + data.count(b"{") > DEPTH and depth_of(data) > DEPTH:
        raise Unreadable(f"nested deeper than {DEPTH} levels")


def check_surrogates(text: str, value: Json) -> None:
    """Raises Unreadable where a value, read from a text, holds half a surrogate pair."""
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise Unreadable("a text holds half a surrogate pair (\\ud800 to \\udfff)") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Unreadable("a key is given twice in one object", key)
        found[key] = value
    return found


def _constant(word: str) -> NoReturn:
    raise Unreadable(f"{word} is not JSON; write a number or null")


def _number(word: str) -> float:
    value = float(word)
    if math.isinf(value):
        raise Unreadable("a number is beyond what JSON readers hold", word)
    return value


def _whole(word: str) -> int:
    if len(word) > DIGITS:
        raise Unreadable(f"a number has more than {DIGITS:,} digits", word)
    return int(word)


HOOKS: dict[str, Any] = {
    "object_pairs_hook": _once,
    "parse_constant": _constant,
    "parse_float": _number,
    "parse_int": _whole,
}
"""Of `json`'s decoders."""


def scan(text: str, hooks: dict[str, Any] = HOOKS, *, is_list: bool = False) -> Iterator[tuple[int, Json]]:
    """The values of a text one after the other, each with its line. Raises ValueError.

    `is_list`: they are the entries of a list, whose opening bracket is left out.
    """
    check_depth(text.encode(errors="replace"))
    decoder = json.JSONDecoder(**hooks)
    line, at, end = 1, 0, _after(text, 0, is_list)
    while end < len(text) and not (is_list and text[end] == "]"):
        line += text.count("\n", at, end)
        value, at = decoder.raw_decode(text, end)
        check_surrogates(text[end:at], value)
        yield line, value
        line += text.count("\n", end, at)
        end = _after(text, at, is_list)
    if is_list and text[end:].strip() != "]":
        raise ValueError


def decode_text(text: str, hooks: dict[str, Any] = HOOKS) -> Json:
    """A JSON value, as strict as of tools files. Raises Unreadable, without anything of the text in it."""
    check_depth(text.encode(errors="replace"))
    try:
        value = json.loads(text, **hooks)
    except json.JSONDecodeError:
        raise Unreadable("not JSON") from None
    check_surrogates(text, value)
    return value


def _after(text: str, at: int, is_list: bool) -> int:
    found = _BETWEEN[is_list].match(text, at)
    return found.end() if found else at
