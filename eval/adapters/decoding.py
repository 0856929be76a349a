"""JSON of foreign logs, decoded into the form that is expected: strictly first, then as Python takes it."""

import json
from typing import Any, TypeVar

import msgspec

from robustbench_tc.errors import UserError

from .foreign import text

T = TypeVar("T")


def decoded(data: bytes, kind: type[T], where: str, *, writer: str, most: int) -> T:
    """What `writer` wrote. Raises UserError that names `where`.

    Harnesses write NaN as it is, which is no JSON: up to `most` bytes are decoded once more by a decoder that
    takes it, and more memory.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise UserError(f"{where} is not as {writer} writes it: {text(error)}") from None
    except (ValueError, RecursionError):
        pass  # NaN perhaps: the lenient decoder says what is wrong with the rest
    try:
        return msgspec.convert(lenient(data, most), kind)
    except (ValueError, RecursionError, OverflowError) as error:
        raise UserError(f"{where} cannot be read: {text(error)}") from None


def lenient(data: bytes, most: int) -> Any:
    """JSON in which NaN may stand, as harnesses write it. Raises ValueError and RecursionError."""
    if len(data) > most:
        raise ValueError("it is not JSON")
    return json.loads(data)
