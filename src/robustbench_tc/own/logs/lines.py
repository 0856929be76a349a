"""A log file as JSON values with the lines that they begin on: bounded, and one bad line harms no other."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from robustbench_tc.errors import UserError
from robustbench_tc.own.json_text import (
    HOOKS,
    Unreadable,
    after_blanks,
    check_depth,
    check_surrogates,
    decode,
)
from robustbench_tc.own.limits import BYTES, size_of
from robustbench_tc.schema import Json

from .chat import is_message
from .types import Refused

LINE = BYTES
"""Bytes of a line."""
FILE = 32 * BYTES
"""Bytes of a log."""
_UTF_16_OR_32 = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")


def values(path: Path) -> Iterator[tuple[int, Json] | Refused]:
    """The values of a log with their lines, and the lines that are none.

    JSON lines; or one JSON text, or several one after the other, over as many lines as they take, if such a
    file has at most `LINE` bytes. Of a list that fills the file the entries are given. Raises UserError where
    nothing of the file can be read.
    """
    size = size_of(path, "a log", FILE)
    with path.open("rb") as file:
        if file.read(4).startswith(_UTF_16_OR_32):
            raise UserError(f"{path}: not UTF-8; save it as UTF-8")
        file.seek(0)
        if size <= LINE and not _is_json(file.readline().removeprefix(b"\xef\xbb\xbf")):
            file.seek(0)
            found = _texts(file.read())
            if found is not None:
                yield from found
                return
        file.seek(0)
        yield from _lines(file)


def _is_json(line: bytes) -> bool:
    try:
        decode(line)
    except Unreadable:
        return False
    return True


def _lines(file: Any) -> Iterator[tuple[int, Json] | Refused]:
    number = 0
    while line := file.readline(LINE + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if len(line) > LINE and not line.endswith(b"\n"):
            size = len(line)
            while rest := file.readline(LINE):  # passed over, never held in one piece
                size += len(rest)
                if rest.endswith(b"\n"):
                    break
            yield Refused(number, f"{size:,} bytes: at most {LINE:,} a line are read")
            continue
        if not line.strip():
            continue
        try:
            yield number, decode(line)
        except Unreadable as error:
            yield Refused(number, str(error))


def _texts(data: bytes) -> list[tuple[int, Json]] | None:
    """The values of a file that is not JSON lines; None where it is not JSON from beginning to end."""
    try:
        text = data.decode("utf-8-sig")
        check_depth(data)
        found, is_list = _scan(text)
        check_surrogates(text, [value for _, value in found])
    except (ValueError, RecursionError):
        return None
    if is_list and found and all(is_message(value) for _, value in found):
        return [(found[0][0], [value for _, value in found])]
    return found


def _scan(text: str) -> tuple[list[tuple[int, Json]], bool]:
    """The values with their lines, and whether they are the entries of one list. Raises ValueError."""
    decoder = json.JSONDecoder(**HOOKS)
    found = []
    line, counted = 1, 0
    at = after_blanks(text, 0)
    if is_list := text.startswith("[", at):
        at = after_blanks(text, at + 1)
    while at < len(text) and not (is_list and text[at] == "]"):
        line, counted = line + text.count("\n", counted, at), at
        value, at = decoder.raw_decode(text, at)
        found.append((line, value))
        at = after_blanks(text, at)
        if is_list and text.startswith(",", at):
            at = after_blanks(text, at + 1)
        elif is_list and not text.startswith("]", at):
            raise ValueError
    if is_list and after_blanks(text, at + 1) < len(text):
        raise ValueError
    return found, is_list
