"""JSON of a log: strict, bounded, and an error says nothing of the text."""

import json

from robustbench_tc.own.json_text import Unreadable, strict
from robustbench_tc.own.limits import DEPTH, depth_of
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
        return strict(text)
    except json.JSONDecodeError:
        raise Unreadable("not JSON") from None
    except RecursionError:
        raise Unreadable(f"nested deeper than {DEPTH} levels") from None


def check_depth(data: bytes) -> None:
    """Raises Unreadable for a text that is nested too deep."""
    if data.count(b"[") + data.count(b"{") > DEPTH and depth_of(data) > DEPTH:
        raise Unreadable(f"nested deeper than {DEPTH} levels")
