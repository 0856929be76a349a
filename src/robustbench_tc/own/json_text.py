"""JSON of a user's file, bounded: one value, or one value a line."""

import json
import math
from typing import Any

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from .limits import BYTES, DEPTH, depth_of


def values(data: bytes, where: str) -> list[Json]:
    """The value of a JSON text, or the values of JSON lines. `where` names the file in errors.

    Refused: what JSON does not have (NaN, numbers beyond a double), a key given twice (readers disagree on
    which counts), half a surrogate pair (no UTF-8 file can hold it), more than `BYTES` or `DEPTH`.
    """
    if len(data) > BYTES:
        raise UserError(f"{where}: {len(data):,} bytes: at most {BYTES:,} are read; split it")
    if (depth := depth_of(data)) > DEPTH:
        raise UserError(f"{where}: nested {depth:,} levels deep: at most {DEPTH} are read")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    if not text.strip():
        raise UserError(f"{where}: the file is empty")
    try:
        return [_decode(text, where, 1)]
    except json.JSONDecodeError as error:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) < 2 or not error.msg.startswith("Extra data"):
            raise _not_json(where, error, 1) from None
    found = []
    for number, line in lines:
        try:
            found.append(_decode(line, where, number))
        except json.JSONDecodeError as error:
            raise _not_json(where, error, number) from None
    return found


def _not_json(where: str, error: json.JSONDecodeError, line: int) -> UserError:
    place = f"line {line + error.lineno - 1}, column {error.colno}"
    return UserError(f"{where}: {place}: not JSON: {error.msg}")


def _decode(text: str, where: str, line: int) -> Json:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise UserError(f"{where}: the key {twice[:60]!r} is given twice in one object; keep one")
        return found

    def constant(word: str) -> Json:
        raise UserError(f"{where}: {word} is not JSON; write a number or null")

    def number(word: str) -> float:
        value = float(word)
        if math.isinf(value):
            raise UserError(f"{where}: the number {word[:20]} is beyond what JSON readers hold")
        return value

    def whole(word: str) -> int:
        if len(word) > 1000:
            raise UserError(f"{where}: a number of {len(word):,} digits; at most 1,000 are read")
        return int(word)

    value = json.loads(
        text, object_pairs_hook=once, parse_constant=constant, parse_float=number, parse_int=whole
    )
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise UserError(f"{where}: a text holds half a surrogate pair (\\ud800 to \\udfff)") from None
    return value
