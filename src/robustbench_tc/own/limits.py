"""How large the files of a user may be: what lies beyond is refused in one line, before it is read."""

import re
from pathlib import Path

from robustbench_tc.errors import UserError

BYTES = 8_000_000
DEPTH = 200
"""Lists and objects inside each other."""
LARGE = 64 * BYTES
"""Bytes of what is made of a user's files."""


_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(rb"[][{}]")


def read_bytes(path: Path, what: str, most: int = BYTES) -> bytes:
    """The bytes of a file that may be read. `what` names it in the error: "a tools file"."""
    size_of(path, what, most)
    return path.read_bytes()


def size_of(path: Path, what: str, most: int) -> int:
    """The bytes of a file. Raises UserError for what is none, and for more than `most`."""
    if path.is_dir():
        raise UserError(f"{path}: not {what}: it is a folder")
    if not path.is_file():
        raise UserError(f"{path}: not {what}: there is no such file")
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
