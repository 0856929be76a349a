"""JSON of a log: strict, bounded, and an error says nothing of the text."""

import json

from robustbench_tc.own.json_text import HOOKS, Unreadable, check_depth, check_surrogates
from robustbench_tc.schema import Json


def decode(data: bytes) -> Json:
    """A JSON value, as strict as of tools files. Raises Unreadable, without anything of the text in it."""
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
    check_surrogates(text, value)
    return value
