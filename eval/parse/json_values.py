"""JSON text to values, with bounds: strictly first, then as Python writes it, then as careless writers do."""

import ast
import json
import re

import msgspec

from robustbench_tc.schema import Json

from . import lenient, python_values
from .context import ParseContext
from .stored import clean

_LENIENT = re.compile(r"[\x00-\x1f]|\\u")
"""What a text must hold for the standard library's decoder to read what msgspec refuses."""

_NO_NUMBERS = ("NaN", "Infinity", "nan", "inf")
MAX_RAW = 4_096
"""So many characters of unreadable arguments are kept."""

_LITERAL = re.compile(r"[\[({]\s*+(?:['\"\[({\d-]|[\])}]|True|False|None)")


def decode(text: str) -> Json:
    """The value of one JSON text; raw control characters in strings are let pass. Raises ValueError."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):  # the lenient decoder has the last word
        pass
    if _LENIENT.search(text) is None:
        raise ValueError("not JSON")
    try:
        return clean(json.loads(text, strict=False))
    except RecursionError:
        raise ValueError("nested too deep") from None


def decode_value(text: str, context: ParseContext) -> Json:
    """The JSON object or list that `text` is, else the Python literal, else what careless JSON means; None
    where it is none of them."""
    try:
        return decode(text)
    except ValueError:  # not JSON: a Python literal, or careless JSON
        pass
    node = python_values.tree(text, context) if _LITERAL.match(text) else None
    if node is not None and not any(
        isinstance(one, ast.Name) and one.id in _NO_NUMBERS for one in ast.walk(node)
    ):
        try:
            return python_values.value(node)
        except python_values.Refused:
            return None
    found = lenient.read_container(text, 0, context)
    return None if found is None or text[found[1] :].strip() else found[0]


def value_at(text: str, start: int, context: ParseContext, *, stop: str = "<") -> tuple[Json, int] | None:
    """The object or list that opens at `start`, read as `decode_value` does, and the position behind it.

    Its last bracket may be missing where the text ends, or where the first `stop` stands.
    """
    end = context.balanced(text, start)
    found = decode_value(text[start:end], context) if end is not None else None
    if found is not None and end is not None:
        return found, end
    read = lenient.read_container(text, start, context)
    if read is None and end is None and (last := text.find(stop, start)) > 0:
        read = lenient.read_container(text[:last], start, context)
    return read


_MARK = re.compile(r"</|<[|｜]|<end_|\[/")


def object_at(
    text: str, start: int, context: ParseContext, *, stop: str = "<"
) -> tuple[dict[str, Json], int] | None:
    """The object that opens at `start`, and the position behind it."""
    read = value_at(text, start, context, stop=stop)
    return (read[0], read[1]) if read is not None and isinstance(read[0], dict) else None


def arguments_at(
    text: str, start: int, context: ParseContext
) -> tuple[dict[str, Json], str | None, int] | None:
    """The arguments in the object that opens at `start`, the raw text instead where they are unreadable, and the
    position behind; None for one that was cut off."""
    read = object_at(text, start, context)
    if read is not None:
        return read[0], None, read[1]
    end = context.balanced(text, start)
    if end is None and (mark := _MARK.search(text, start)):
        end = mark.start()
    return None if end is None else ({}, text[start:end][:MAX_RAW], end)


def decode_object(text: str, context: ParseContext) -> dict[str, Json] | None:
    """The object that `text` is, read as `decode_value` does, else None."""
    found = decode_value(text, context)
    return found if isinstance(found, dict) else None
